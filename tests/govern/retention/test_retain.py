"""First the file, which is read back; then the memories are retired; a kill in between loses none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from retain_child import open_store

from lance_memory import (
    Dreamer,
    InvalidInputError,
    MemoryStore,
    RetentionPolicy,
    ScopeError,
    StorageError,
)

CHILD = str(Path(__file__).with_name("retain_child.py"))


@pytest.fixture
def old(store, clock):
    """Of ann two and of bob one that are due, and one of ann that is not."""
    said = {"a": "red kettle", "b": "green tea", "c": "a train"}
    store.add_many(
        [
            {"id": i, "content": text, "user": "bob" if i == "c" else "ann", "metadata": {"n": i}}
            for i, text in said.items()
        ]
    )
    store.add("home", id="kept", user="ann", tags=["pinned"], key="home")
    clock.forward(days=91)
    return store


def rows_of(view, **where):
    return view.to_arrow(**where).combine_chunks().sort_by("id")


def files_in(directory):
    return sorted(path.name for path in directory.iterdir())


def test_an_archive_brings_back_what_was_there(old, tmp_path, reopen):
    before = rows_of(old, states="active")
    version = old.version
    done = old.retain(archive=tmp_path / "old.zip", reason="spring")
    assert (done.version, done.retired, done.archived, done.changed, done.left) == (
        version + 1, 3, 3, 0, 0,
    )  # fmt: skip
    assert done.path == str(tmp_path / "old.zip")
    entry = old.log(limit=1)[0]
    assert (entry.operation, entry.reason, entry.manifest["archive"]) == (
        "retain", "spring", "old.zip",
    )  # fmt: skip
    assert old.get("a").state_reason == "retention: episodic, kept for 90 days: spring"
    assert [m.id for m in old.list()] == ["kept"]
    other = reopen(tmp_path / "other")
    assert other.import_store(tmp_path / "old.zip").stored == 3
    found = rows_of(other)
    gone = pa.compute.is_in(before["id"], pa.array(["a", "b", "c"]))
    assert found.equals(before.filter(gone).cast(found.schema))
    old.revert(done.version)
    assert rows_of(old, states="active").equals(before)


@pytest.mark.parametrize("name", ["old.jsonl", "old.parquet"])
def test_other_kinds_of_file_have_the_same_memories(name, old, tmp_path):
    done = old.retain(archive=tmp_path / name)
    assert (done.retired, done.path) == (3, str(tmp_path / name))
    if name == "old.jsonl":
        lines = (tmp_path / name).read_text().splitlines()
        found = {json.loads(line)["id"] for line in lines}
    else:
        found = set(pa.parquet.read_table(tmp_path / name)["id"].to_pylist())
    assert found == {"a", "b", "c"}


def test_a_dry_run_is_the_plan_and_makes_nothing(old, tmp_path):
    version = old.version
    plan = old.retain(archive=tmp_path / "old", dry_run=True)
    assert (set(plan.ids), old.version) == ({"a", "b", "c"}, version)
    assert not (tmp_path / "old").exists()
    done = old.retain(plan, archive=tmp_path / "old")
    assert (done.plan, done.retired) == (plan, 3)


def test_a_directory_gets_a_file_for_each_pass(old, tmp_path, clock):
    first = old.retain(archive=tmp_path / "old")
    old.add("another", id="d")
    clock.forward(days=91)
    second = old.retain(archive=tmp_path / "old")
    assert (first.retired, second.retired) == (3, 1)
    assert files_in(tmp_path / "old") == [Path(first.path).name, Path(second.path).name]
    assert Path(first.path).name.startswith("retention-2025-04-02-")
    with zipfile.ZipFile(second.path) as archive:
        assert "manifest.json" in archive.namelist()
    nothing = old.retain(archive=tmp_path / "old")
    assert (nothing.retired, nothing.path, nothing.version) == (0, "", second.version)
    assert len(files_in(tmp_path / "old")) == 2


def test_a_pass_of_the_night_can_do_it_first(old, tmp_path, clock):
    dreamer = Dreamer(old, clock=clock, also=lambda s: s.retain(archive=tmp_path / "old"))
    result = dreamer.once()
    assert result.also.startswith(f"version {old.version}: retired 3 memories of 4; 3 in ")
    assert [m.id for m in old.list()] == ["kept"]


def test_without_an_archive_they_are_only_retired(old):
    assert old.retain(archive=None).retired == 3
    assert {m.id for m in old.list(states="retired")} == {"a", "b", "c"}


@pytest.mark.slow
def test_a_killed_pass_leaves_the_file_and_the_next_goes_on(tmp_path):
    """Two days later the same call is about more memories; first it does what is in the file."""
    store = open_store(tmp_path / "store")
    store.add_many([{"id": f"m{n}", "content": f"thing {n}"} for n in range(3)])
    version = store.version
    command = [sys.executable, CHILD, str(tmp_path / "store"), str(tmp_path / "old.zip")]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert child.returncode == -signal.SIGKILL, child.stderr
    written = (tmp_path / "old.zip").read_bytes()
    assert (store.version, store.count()) == (version, 3)
    open_store(tmp_path / "store", days=1).add("a day later", id="later")
    after = open_store(tmp_path / "store", days=93)
    done = after.retain(archive=tmp_path / "old.zip")
    assert (done.retired, done.archived, done.left) == (3, 3, 1)
    assert (tmp_path / "old.zip").read_bytes() == written
    assert [m.id for m in after.list()] == ["later"]
    with pytest.raises(InvalidInputError, match="something else is at"):
        after.retain(archive=tmp_path / "old.zip")
    assert after.retain(archive=tmp_path / "new.zip").retired == 1


def test_in_a_directory_the_same_memories_are_put_away_once(old, tmp_path, clock):
    """As after a kill: the file is there, and nothing is retired; a day later it is the same."""
    first = old.retain(archive=tmp_path / "old")
    old.rollback(first.version - 1)
    clock.forward(days=1)
    again = old.retain(archive=tmp_path / "old")
    assert (again.path, again.retired) == (first.path, 3)
    assert len(files_in(tmp_path / "old")) == 1


def test_a_file_that_was_changed_is_not_trusted(old, tmp_path):
    done = old.retain(archive=tmp_path / "old.jsonl")
    old.rollback(done.version - 1)
    text = (tmp_path / "old.jsonl").read_text()
    (tmp_path / "old.jsonl").write_text(text.replace("red kettle", "red button"))
    with pytest.raises(InvalidInputError, match="something else is at"):
        old.retain(archive=tmp_path / "old.jsonl")
    assert old.count() == 4


def test_what_others_change_meanwhile_stays(old, tmp_path, embedder, clock):
    """Between the plan and the call; and between the file and the commit, by the clock's look."""
    plan = old.plan_retention()
    old.update("a", importance=0.9)
    done = old.retain(plan, archive=tmp_path / "one.zip")
    assert (done.retired, done.archived, done.changed) == (2, 2, 1)
    assert [m.id for m in old.list()] == ["a", "kept"]

    looks = []

    def interfering():
        looks.append(1)
        if (tmp_path / "two.zip").exists() and old.get("a").importance != 0.8:
            old.update("a", importance=0.8)
        return clock()

    handle = MemoryStore.open(tmp_path / "store", embedder=embedder, clock=interfering, upkeep=None)
    raced = handle.retain(archive=tmp_path / "two.zip")
    assert (raced.retired, raced.archived, raced.changed) == (0, 1, 1)
    assert old.get("a").state == "active"


def test_a_scoped_handle_puts_away_what_is_its_own(old, tmp_path):
    ann = old.scoped(user="ann")
    everybodys = old.plan_retention()
    with pytest.raises(ScopeError, match="outside this handle"):
        ann.retain(everybodys, archive=tmp_path / "old.zip")
    assert not (tmp_path / "old.zip").exists()
    assert ann.retain(archive=tmp_path / "old.zip").retired == 2
    assert old.get("c").state == "active"


@pytest.mark.parametrize("name", ["old.csv", "store/old.zip", "archive"])
def test_where_no_archive_can_be_nothing_is_retired(name, old, tmp_path):
    old.export_store(tmp_path / "archive")
    version = old.version
    with pytest.raises(InvalidInputError):
        old.retain(archive=tmp_path / name)
    assert (old.version, old.count()) == (version, 4)


def test_a_plan_goes_with_nothing_that_it_was_made_from(old):
    plan = old.plan_retention()
    for more in ({"user": "ann"}, {"per_tenant": {}}):
        with pytest.raises(InvalidInputError, match="either a plan, or a policy"):
            old.retain(plan, archive=None, **more)


def test_a_directory_that_cannot_be_written_to_leaves_the_memories(old, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        old.retain(archive=tmp_path / "file" / "old.zip")
    assert old.count() == 4


def test_many_memories_are_retired_as_one_version(store, clock, tmp_path):
    """More than are held in memory at once; every column stays what it was but for the state."""
    count = 9_000
    numbers = np.random.default_rng(1).normal(size=(count, 16)).astype(np.float32)
    rows = pa.table(
        {
            "id": [f"m{n:05d}" for n in range(count)],
            "content": [f"thing {n}" for n in range(count)],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 16),
        }
    )
    store.add_many(rows)
    clock.forward(days=91)
    columns = ["id", "content", "embedding", "importance", "created_at"]
    before = rows_of(store, columns=columns)
    version = store.version
    done = store.retain(RetentionPolicy(), archive=None)
    assert (done.retired, done.version, store.count()) == (count, version + 1, 0)
    assert rows_of(store, columns=columns).equals(before)
    reasons = store.to_arrow(columns=["state_reason"])["state_reason"].unique().to_pylist()
    assert reasons == ["retention: episodic, kept for 90 days"]
