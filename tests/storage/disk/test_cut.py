"""What the engine writes with an error that it passes over is never committed."""

from __future__ import annotations

import random
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from lance_memory import StorageError
from lance_memory.storage.disk.cut import refuse_cut
from lance_memory.storage.upkeep import steps as upkeep

NOISE = random.Random(0)


def text():
    """Does not compress, so that a file of it has the size that one expects."""
    return NOISE.randbytes(4_000).hex()


def data(store):
    return sorted(Path(store.uri, "memories.lance", "data").iterdir())


@contextmanager
def files_up_to(size):
    """No file of this process may grow beyond `size` bytes; Python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def store(tmp_path, reopen):
    return reopen(tmp_path / "store", upkeep=None)


def test_an_add_whose_file_was_cut_short_is_an_error_and_no_version(store):
    """With the last bytes of a file missing, the engine alone commits what cannot be read."""
    store.add(text())
    (whole,) = data(store)
    version, size = store.version, whole.stat().st_size
    with files_up_to(size - 600), pytest.raises(StorageError, match="bytes are there"):
        store.add(text())
    assert (store.version, store.count()) == (version, 1)
    store.add("the store goes on")
    assert [len(m.content) for m in store.list()] == [8_000, 17]


def test_a_compaction_whose_file_was_cut_short_changes_nothing(store, tmp_path, reopen):
    contents = [text() for _ in range(6)]
    twin = reopen(tmp_path / "twin", upkeep=None)
    for content in contents:
        store.add(content, id=f"m-{content[:8]}")
        twin.add(content, id=f"m-{content[:8]}")
    before = data(twin)
    upkeep.compact(twin._table)
    (merged,) = set(data(twin)) - set(before)
    version = store.version
    with (
        files_up_to(merged.stat().st_size - 600),
        pytest.raises(StorageError, match=r"bytes are there: the disk is full, or the size of"),
    ):
        upkeep.compact(store._table)
    assert [m.content for m in store.list()] == contents
    assert store.stats().fragments == 6
    upkeep.compact(store._table)
    assert ([m.content for m in store.list()], store.stats().fragments) == (contents, 1)
    assert store.version > version


def test_a_new_file_that_is_away_is_an_error_of_ours(store):
    store.add(text())
    fragments = [fragment.metadata for fragment in store._table.latest().dataset.get_fragments()]
    data(store)[0].unlink()
    with pytest.raises(StorageError, match=r"could not look at .* not found"):
        refuse_cut(fragments, store._table.home)
