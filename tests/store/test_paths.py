"""A store's local path may be nearly any: each name, through a small story of the verbs."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lance_memory import InvalidInputError, MemoryStore, StorageError

pytestmark = pytest.mark.disk

NAMES = {
    "spaces": "my agent's memory ",
    "unicode": "Gedächtnis 記憶 😀",
    "combining": "cafe\u0301",
    "percent": "a%20b%2Fc%",
    "hash": "notes#1",
    "pattern": "[x]*{y}",
    "shell": "$(id); `id` & 'x' \"y\"",
    "backslash": "a\\b",
    "dash": "--yes",
    "dots": "..x",
    "colon": "a:b",
    "deep": "/".join(["d" * 200] * 8),
    "long": "n" * 255,
}


def contents(view):
    return [memory.content for memory in view.list()]


def story(path, reopen, beside):
    """The verbs that make, read and remove files; ends with one memory more."""
    store = reopen(path, record_queries=True)
    before = contents(store)
    first = store.add("the kettle is red", user="ann")
    store.tag("start")
    store.branch("side").add("on the side")
    store.add("the kettle is blue", user="ann")
    store.search("kettle")
    store.optimize(clean_older_than=timedelta(0))
    assert contents(reopen(path, branch="side")) == [*before, "the kettle is red", "on the side"]
    assert contents(store.checkout("start", beside)) == [*before, "the kettle is red"]
    assert len(store.queries()) == 1
    assert store.forget_queries() == 1
    assert contents(store.at("start")) == [*before, "the kettle is red"]
    assert store.delete(first.id).deleted == 1
    store.untag("start")
    assert store.to_polars().collect().height == len(before) + 1
    assert store.stats().bytes > 0
    return store


QUICK = ("spaces", "unicode", "percent", "hash", "deep")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NAMES]
)
def test_a_store_lies_where_its_name_says_and_nowhere_else(name, tmp_path, reopen):
    path = tmp_path / "stores" / NAMES[name]
    store = story(path, reopen, tmp_path / "copies" / NAMES[name])
    assert store.uri == str(path)
    assert contents(reopen(path, create=False)) == ["the kettle is blue"]
    assert (path / "memories.lance").is_dir()
    top = NAMES[name].partition("/")[0]
    assert [p.name for p in (tmp_path / "stores").iterdir()] == [top]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copies", "stores"]


@pytest.mark.parametrize(
    "written", ["relative", "./relative/", "x/../relative", "~/relative", "link"]
)
def test_one_store_has_many_names(written, tmp_path, reopen, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x").mkdir()
    (tmp_path / "link").symlink_to("relative")
    reopen(tmp_path / "relative").add("by its full name")
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    story(written, reopen, "copy")
    assert contents(reopen(tmp_path / "relative")) == ["by its full name", "the kettle is blue"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "link", "relative", "x"]


def test_a_handle_stays_with_its_store_when_the_process_changes_its_directory(
    tmp_path, reopen, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    store = reopen("here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.add("where it was opened")
    store.optimize()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert contents(reopen(tmp_path / "here")) == ["where it was opened"]


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "nul\0", "\x7f", "\udcff", b"\xff"])
def test_a_name_that_the_engine_cannot_open_is_refused_and_makes_nothing(name, tmp_path, reopen):
    path = os.fsencode(tmp_path) + b"/" + name if isinstance(name, bytes) else f"{tmp_path}/{name}"
    with pytest.raises(InvalidInputError, match=r"path=.* has control characters, or bytes"):
        reopen(path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_a_question_mark_is_refused(tmp_path, reopen):
    with pytest.raises(InvalidInputError, match=r"has '\?'; a store's path cannot: name another"):
        reopen(tmp_path / "why?")
    with pytest.raises(InvalidInputError, match="name another"):
        reopen(tmp_path / "store").checkout(1, tmp_path / "why?")
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_name_that_is_too_long_is_a_storage_error(tmp_path, reopen):
    with pytest.raises(StorageError, match=r"could not open .*File name too long"):
        reopen(tmp_path / ("n" * 256))


# -- whose files they are ---------------------------------------------------------------------


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_store_is_for_its_owner_alone(tmp_path, reopen):
    os.umask(before := os.umask(0))  # whatever the umask is
    os.umask(0)
    try:
        store = reopen(tmp_path / "parent" / "store")
        store.add("private")
        store.checkout(store.version, tmp_path / "copy")
    finally:
        os.umask(before)
    assert mode(tmp_path / "parent" / "store") == 0o700
    assert mode(tmp_path / "copy") == 0o700
    assert mode(tmp_path / "parent") == 0o777


def test_a_directory_that_is_there_keeps_its_mode(tmp_path, reopen):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    reopen(tmp_path / "shared").add("for the group")
    assert mode(tmp_path / "shared") == 0o750


READER = """
import sys
import numpy as np
from lance_memory import FunctionEmbedder, MemoryStore, StorageError
ones = FunctionEmbedder(lambda t: np.ones((len(t), 4)), name="ones", dimension=4)
store = MemoryStore.open(sys.argv[1], embedder=ones)
print([m.content for m in store.list()], len(store.search("kettle")), store.at(3).version)
print(len(store.log()), store.stats().rows, store.tags())
verbs = {
    "add": lambda: store.add("more"),
    "update": lambda: store.update("k", importance=1),
    "delete": lambda: store.delete("k"),
    "rollback": lambda: store.rollback(3),
    "tag": lambda: store.tag("t"),
    "branch": lambda: store.branch("b"),
    "optimize": lambda: store.optimize(),
    "checkout": lambda: store.checkout(3, sys.argv[2]),
    "open": lambda: MemoryStore.open(sys.argv[2], embedder=ones),
}
for name, verb in verbs.items():
    try:
        print(name, "went through", verb())
    except StorageError as error:
        print(name, "permission" in str(error).lower() or str(error))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")
@pytest.mark.slow
def test_what_may_only_be_read_is_read_and_every_write_is_a_clear_error(tmp_path):
    def ones(texts):
        return [[1.0] * 4 for _ in texts]

    path = tmp_path / "store"
    store = MemoryStore.open(path, embedder=ones)
    store.add("the kettle", key="k")
    store.update("k", importance=0.9)
    everything = [tmp_path, path, *path.rglob("*")]
    modes = {place: mode(place) for place in everything}
    command = [sys.executable, "-c", READER, str(path), str(tmp_path / "copy")]
    if os.getuid() == 0:  # root without what makes it root to files
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may write anywhere, and there is no setpriv to forbid it")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search,-fowner", *command]
    try:
        for place in everything:
            place.chmod(0o500 if place.is_dir() else 0o400)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for place in everything:
            place.chmod(modes[place])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "['the kettle'] 1 3",
        "2 1 {}",
        *(f"{verb} True" for verb in ("add", "update", "delete", "rollback", "tag", "branch")),
        *(f"{verb} True" for verb in ("optimize", "checkout", "open")),
    ]
    assert [m.content for m in MemoryStore.open(path, embedder=ones).list()] == ["the kettle"]
    assert Path(path).is_dir()
