from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from datetime import timedelta

import pytest

from lance_memory import EmbeddingError, FunctionEmbedder, StorageError

LINUX_ROOT = sys.platform == "linux" and os.geteuid() == 0


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if not LINUX_ROOT or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def _fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 4_096):
            pass


@pytest.mark.disk
def test_a_full_disk_loses_nothing_and_the_store_goes_on(small_disk, reopen):
    store = reopen(small_disk / "store")
    store.add_many(f"memory {i}" for i in range(20))
    before = store.to_arrow().to_pylist()
    ballast = small_disk / "ballast"
    _fill(ballast)
    for write in (
        lambda: store.add("does not fit " * 2_000),
        lambda: store.delete(before[0]["id"]),
        lambda: store.update(before[0]["id"], content="other " * 2_000),
    ):
        with pytest.raises(StorageError, match="no space left; nothing was written: free some"):
            write()
    assert store.to_arrow().to_pylist() == before
    assert reopen(store.uri).to_arrow().to_pylist() == before
    assert len(store.search("memory 3", k=5)) == 5
    ballast.unlink()
    store.add("fits again")
    store.delete(before[0]["id"])
    assert store.count() == 20
    assert [h.memory.content for h in store.search("fits", mode="text")] == ["fits again"]


@pytest.mark.disk
@pytest.mark.skipif(LINUX_ROOT or sys.platform == "win32", reason="permissions do not bind root")
def test_a_read_only_directory_is_a_storage_error_and_still_readable(tmp_path, reopen):
    store = reopen(tmp_path / "store")
    store.add("a")
    folders = [p for p in (tmp_path / "store").rglob("*") if p.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        with pytest.raises(StorageError, match="no permission to write there; nothing was written"):
            store.add("b")
        assert [m.content for m in reopen(store.uri).list()] == ["a"]
    finally:
        for folder in folders:
            folder.chmod(0o755)
    store.add("b")


@pytest.mark.disk
@pytest.mark.skipif(not LINUX_ROOT, reason="mounting needs root")
def test_a_read_only_file_system_is_a_storage_error_and_still_readable(small_disk, reopen):
    store = reopen(small_disk / "store")
    store.add("a thing")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="no permission to write there; nothing was written"):
        store.add("b thing")
    with pytest.raises(StorageError, match="other"):
        reopen(small_disk / "other")
    again = reopen(store.uri)
    assert [m.content for m in again.list()] == ["a thing"]
    assert len(again.search("thing")) == 1
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    store.add("b thing")
    assert again.count() == 2


@pytest.mark.disk
def test_a_damaged_file_is_a_storage_error_that_leaves_older_versions_readable(
    store, tmp_path, reopen
):
    store.add("sound")
    sound = store.version
    data = set((tmp_path / "store").rglob("data/*.lance"))
    store.add("damaged")
    (fresh,) = set((tmp_path / "store").rglob("data/*.lance")) - data
    again = reopen(store.uri)
    fresh.write_bytes(b"garbage" * 100)
    with pytest.raises(StorageError):
        again.list()
    assert [m.content for m in again.at(sound).list()] == ["sound"]


@pytest.fixture
def failing(store, reopen):
    store.add("a thing")

    def fail(texts):
        raise ConnectionError("the model's server is down")

    return reopen(store.uri, embedder=FunctionEmbedder(fail, name="words-16", dimension=16))


def test_when_the_embedder_fails_words_answer_alone_and_the_result_says_so(failing):
    found = failing.search("thing")
    assert [h.memory.content for h in found] == ["a thing"]
    assert "the model's server is down" in found.degraded["vector"]


def test_when_the_embedder_fails_a_vector_search_fails(failing):
    with pytest.raises(EmbeddingError, match="the model's server is down"):
        failing.search("thing", mode="vector")


@pytest.mark.parametrize(
    "write",
    [
        lambda s: s.add("b"),
        lambda s: s.add_many(["b"]),
        lambda s: s.upsert("b", key="k"),
        lambda s: s.update(s.list()[0].id, content="b"),
        lambda s: s.supersede(s.list()[0].id, "b"),
    ],
    ids=["add", "add_many", "upsert", "update", "supersede"],
)
def test_when_the_embedder_fails_nothing_is_written(failing, write):
    before = failing.version
    with pytest.raises(EmbeddingError, match="the model's server is down"):
        write(failing)
    assert failing.version == before


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[float("nan")] * 16], "direction"),
        ([[0.0] * 16], "direction"),
        ([[1.0] * 8], "shape"),
        ([], "shape"),
    ],
    ids=["NaN", "zero", "short", "none"],
)
def test_what_an_embedder_gives_is_checked_before_it_is_stored(store, reopen, vectors, message):
    bad = FunctionEmbedder(lambda texts: vectors, name="words-16", dimension=16)
    with pytest.raises(EmbeddingError, match=message):
        reopen(store.uri, embedder=bad).add("a")
    assert store.count(states="any") == 0


@pytest.mark.disk
def test_upkeep_of_a_damaged_store_never_removes_the_sound_versions(store, tmp_path, reopen):
    """It once cleaned up after any failure, also where only older versions could be read."""
    store.add("sound")
    sound = store.version
    data = set((tmp_path / "store").rglob("data/*.lance"))
    store.add("damaged")
    (fresh,) = set((tmp_path / "store").rglob("data/*.lance")) - data
    again = reopen(store.uri)
    fresh.write_bytes(b"garbage" * 100)
    with pytest.raises(StorageError):
        again.optimize(clean_older_than=timedelta(0))
    assert [m.content for m in again.at(sound).list()] == ["sound"]
