"""Damaged files, a full disk, lost permission, a clock that goes back: told, and not made worse."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from proof_kit import Clock, child_environment, contents, open_store

from lance_memory import StorageError
from lance_memory.storage.files.inventory import take_stock
from lance_memory.storage.files.readable import unreadable
from lance_memory.testing import check

CHILD = str(Path(__file__).with_name("damage_child.py"))


def made(path):
    """A small store with every kind of file: tags, branches, deletions, all indices, an audit."""
    clock = Clock()
    store = open_store(path, clock)
    store.add_many([{"content": f"apple {n}", "user": "ann", "key": f"k{n}"} for n in range(30)])
    store.tag("first")
    clock.tick()
    store.update("k3", importance=0.9)
    store.delete("k4")
    store.optimize(vector_index_from=20)
    clock.tick()
    store.branch("side").add("on the side", user="bob")
    store.supersede(["k5", "k6"], "pear instead")
    clock.tick()
    store.add("the last one", user="bob")
    return store


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The store, and beside it the numbers of its versions."""
    folder = tmp_path_factory.mktemp("sound")
    store = made(folder / "store")
    numbers = [entry.version for entry in store.log(upkeep=True)]
    (folder / "versions.json").write_text(json.dumps(numbers))
    return folder / "store"


def truncated(content, _):
    return content[: len(content) // 2]


def emptied(content, _):
    return b""


def flipped(content, draw):
    """One bit."""
    if not content:
        return b"x"
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]


def zeroed(content, _):
    """The middle third: a block that was never written."""
    third = len(content) // 3
    return content[:third] + bytes(len(content) - 2 * third) + content[-third:]


def one_of_each(names):
    """A file of each kind, and of each part of an index; all manifests but the middle ones."""
    found = {}
    for name in sorted(names):
        folder, _, base = name.rpartition("/")
        part = base if "_indices" in folder else ""
        found.setdefault((folder.partition("_indices")[0], part), []).append(name)
    return sorted({name for group in found.values() for name in (group[0], group[-1])})


class Damaged:
    """Copies of the store, each with one damaged file, and what they answer."""

    def __init__(self, sound, folder, harm, *, seed=0):
        self.folder = folder
        draw = random.Random(seed)
        names = sorted(str(p.relative_to(sound)) for p in sound.rglob("*") if p.is_file())
        chosen = names if ALL else one_of_each(names)
        self.files = {f"{number:03}": name for number, name in enumerate(chosen)}
        shutil.copy(sound.parent / "versions.json", folder)
        for copy, name in self.files.items():
            shutil.copytree(sound, folder / copy)
            place = folder / copy / name
            place.write_bytes(harm(place.read_bytes(), draw))
        shutil.copytree(sound, folder / "sound")
        self.truth = self.ask(["sound"])["sound"]
        self.told = self.answers()

    def answers(self):
        """Copy -> question -> answer; None where the process died over it."""
        found, left = {}, list(self.files)
        while left:
            told = self.ask(left)
            found |= told
            found |= dict.fromkeys(left[len(told) :][:1])
            left = left[len(told) + 1 :]
        return found

    def ask(self, names):
        process = subprocess.run(
            [sys.executable, CHILD, str(self.folder)],
            input="\n".join(names),
            capture_output=True,
            text=True,
            env=child_environment(),
        )
        lines = [json.loads(line) for line in process.stdout.splitlines()]
        assert lines, process.stderr
        return {line["read"]: line["found"] for line in lines if "read" in line}

    def each(self):
        """The damaged file, the copy, and question -> (answer or error, its text)."""
        for copy, name in self.files.items():
            if self.told[copy] is not None:
                yield name, copy, self.told[copy]


TORN = ("damage", "damage of the branch")
"""What a store that was opened at an earlier version answers otherwise."""

ALL = "SOAK_SECONDS" in os.environ
"""Whether `make soak` runs this: then each file has its turn, and not one of each kind."""


def named(name, text):
    """Whether an error names the file, or the index that it is a part of."""
    return name in text or ("_indices" in name and ("index" in text or name[:60] in text))


@pytest.mark.slow
@pytest.mark.parametrize("harm", [truncated, zeroed] if ALL else [truncated])
def test_a_file_that_lacks_a_part_is_named_and_hides_nothing_else(sound, tmp_path, harm):
    """Also: no process dies of it, and whatever is answered is true, or the store says what is torn.

    `log` tells a version whose manifest is damaged as such.
    """
    damaged = Damaged(sound, tmp_path, harm)
    assert None not in damaged.told.values()
    unnamed, untrue, strange = [], [], []
    for name, _, answers in damaged.each():
        torn = any(answers[question] != damaged.truth[question] for question in TORN)
        for question, (kind, text) in answers.items():
            strange += [(name, text)] if kind == "stranger" else []
            unnamed += [(name, question, text)] if kind == "error" and not named(name, text) else []
            if kind == "answer" and question not in ("log", *TORN) and not torn:
                untrue += [(name, question)] if [kind, text] != damaged.truth[question] else []
    assert (strange, unnamed, untrue) == ([], [], [])


@pytest.mark.slow
def test_a_flipped_bit_is_an_error_of_ours_or_stays_within_its_file(sound, tmp_path):
    """Versions without the file answer as before. Where the process dies of it, the deep look, which
    reads each file in a process of its own, names the file."""
    damaged = Damaged(sound, tmp_path, flipped, seed=20250303)
    strange, spread, deadly = [], [], []
    stock = take_stock(open_store(sound)._table)
    for copy, name in damaged.files.items():
        answers = damaged.told[copy]
        if answers is None:
            file = str(tmp_path / copy / name)
            deadly += [] if unreadable([file]) else [name]
            continue
        strange += [(name, text) for kind, text in answers.values() if kind == "stranger"]
        for branch, number in stock.versions:
            apart = name not in stock.versions[branch, number] and "_refs" not in name
            question = f"version {number}"
            if branch == "main" and apart and answers[question] != damaged.truth[question]:
                spread.append((name, question, answers[question]))
    assert (strange, deadly, spread) == ([], [], [])


def test_a_damaged_file_of_rows_is_named_and_older_versions_answer(tmp_path):
    store = open_store(tmp_path / "store")
    store.add_many([f"apple {n}" for n in range(20)])
    before, version = contents(store), store.version
    known = {p.name for p in tmp_path.rglob("*.lance")}
    store.add_many([f"pear {n}" for n in range(20)])
    (fresh,) = [p for p in tmp_path.rglob("data/*.lance") if p.name not in known]
    content = fresh.read_bytes()
    fresh.write_bytes(content[:-400] + bytes(400 - 4) + content[-4:])
    again = open_store(tmp_path / "store")
    with pytest.raises(StorageError, match=f"damaged: memories.lance/data/{fresh.name}"):
        contents(again)
    assert contents(again.at(version)) == before
    health = again.doctor(deep=True)
    (found,) = [one for one in health.findings if one.code == "damaged_file"]
    assert found.sample[0].startswith(f"memories.lance/data/{fresh.name} (of {again.version}")
    assert not health.sound


def test_a_content_that_was_changed_on_the_disk_is_told_from_the_one_that_was_written(tmp_path):
    """The engine reads it without an error: the hash of the content is what tells."""
    store = open_store(tmp_path / "store")
    store.add_many([f"a plain text without anything to compress, {n * 7919:x}" for n in range(20)])
    (file,) = tmp_path.rglob("data/*.lance")
    content = file.read_bytes()
    assert content.count(b"without anything") > 0
    file.write_bytes(content.replace(b"without anything", b"without_anything"))
    again = open_store(tmp_path / "store")
    assert "without_anything" in again.list(limit=1)[0].content
    codes = {one.code for one in again.doctor(deep=True).findings if one.severity == "error"}
    assert codes == {"damaged_file", "content_hash"}


# -- the disk and the machine -------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB, where this machine allows it."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: that takes root and a capability")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_nothing_is_half_written_and_it_goes_on_when_there_is_room(small_disk):
    store = open_store(small_disk / "store", upkeep=None)
    filler = small_disk / "filler"
    store.add("the first one")
    filler.write_bytes(bytes(2_000_000))
    stored, refused = ["the first one"], ""
    while not refused:
        batch = [f"{len(stored)} {'x' * 5_000}{item}" for item in range(10)]
        try:
            store.add_many(batch)
            stored += batch
        except StorageError as error:
            refused = str(error)
    assert "no space left" in refused
    assert sorted(m.content for m in store.iter()) == sorted(stored)
    filler.unlink()
    store.add("after all")
    assert sorted(m.content for m in open_store(small_disk / "store").iter()) == sorted(
        [*stored, "after all"]
    )
    check(store)


@pytest.fixture
def everybodys():
    """A directory that everybody may enter; pytest takes that right from its own at each start."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for folder in [place, *place.parents]:
            if len(folder.parts) > 2:
                folder.chmod(folder.stat().st_mode | 0o711)
        yield place


@pytest.mark.skipif(not hasattr(os, "setuid") or os.getuid(), reason="only root can become another")
def test_permission_lost_midway_is_told_and_what_was_written_is_read(everybodys):
    """A process that stops being the owner of the files: reads go on, writes are refused."""
    open_store(everybodys / "store").add("before")
    for place in [everybodys / "store", *(everybodys / "store").rglob("*")]:
        place.chmod(0o755 if place.is_dir() else 0o644)
    done = subprocess.run(
        [sys.executable, CHILD, "--unprivileged", str(everybodys / "store")],
        capture_output=True,
        text=True,
        env=child_environment(),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["read"], told["kind"]) == (["before"], "StorageError")
    assert "no permission" in told["error"]
    assert [m.content for m in open_store(everybodys / "store").list()] == ["before"]


def test_a_clock_that_goes_back_mixes_up_no_version(tmp_path):
    """`log` and `at` follow the order in which versions were made; the doctor says so."""
    clock = Clock(datetime.now(UTC) - timedelta(hours=5))
    store = open_store(tmp_path / "store", clock)
    made = []
    for text, seconds in (("one", 0), ("two", 60), ("three", -7_200), ("four", 10_800)):
        clock.tick(seconds)
        made.append((store.add(text).version, clock.now))
    _, second, third, last = made
    assert [entry.version for entry in store.log()] == [v for v, _ in reversed(made)]
    assert [m.content for m in store.at(second[0]).list()] == ["one", "two"]
    # Made after it, and before it as it says of itself: it holds what came before.
    assert {m.content for m in store.at(second[1]).list()} == {"one", "two", "three"}
    assert {m.content for m in store.at(third[0]).list()} == {"one", "two", "three"}
    assert {m.content for m in store.at(last[1]).list()} == {"one", "two", "three", "four"}
    assert store.update(store.list()[0].id, importance=0.9).updated == 1
    clock.now = datetime.now(UTC)
    codes = {one.code for one in store.doctor().findings if one.severity == "warning"}
    assert {"clock_backwards", "clock_skew"} <= codes
    check(store)
