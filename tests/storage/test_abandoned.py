"""A commit leaves no file of an attempt that lost, and none is removed that may be committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_memory import LanceMemoryError, StorageError
from lance_memory.storage import Table
from lance_memory.storage import change as changing
from lance_memory.storage.files.lines import lines_of, stored_files

pytestmark = pytest.mark.disk

NEW = "the words of an attempt that is abandoned"
DATA = ("/data/", "/_deletions/")


def nobodys(store):
    """The data and deletion files that no version has."""
    table = Table.open(store.uri)
    versions = [v for line in lines_of(table).values() for v in line.versions.values()]
    needed = frozenset().union(*(version.files for version in versions))
    files = [file for file in stored_files(table) if file.path not in needed]
    return [file.name for file in files if any(folder in file.name for folder in DATA)]


@pytest.fixture
def raced(monkeypatch):
    """Lets something happen right before the first commit from then on."""
    publish = changing._publish

    def before(act):
        left = [act]

        def overtaken(*args, **options):
            if left:
                left.pop()()
            return publish(*args, **options)

        monkeypatch.setattr(changing, "_publish", overtaken)

    return before


def test_a_writer_whose_memory_is_gone_leaves_no_words(store, reopen, raced):
    store.add("a note")
    one = store.add("a fact")
    other = reopen(store.uri)
    raced(lambda: other.delete(one.id))
    with pytest.raises(LanceMemoryError):
        store.update(one.id, content=NEW)
    assert nobodys(store) == []
    files = [path for path in Path(store.uri).rglob("*") if path.is_file()]
    assert [path.name for path in files if NEW.encode() in path.read_bytes()] == []


def test_a_writer_who_wins_the_second_time_leaves_what_it_committed(store, reopen, raced):
    one = store.add("a fact")
    other = reopen(store.uri)
    raced(lambda: other.update(one.id, importance=0.9))
    store.update(one.id, content=NEW)
    found = reopen(store.uri).get(one.id)
    assert (found.content, found.importance) == (NEW, pytest.approx(0.9))
    assert nobodys(store) == []


def test_files_stay_where_it_is_unclear_whether_they_were_committed(store, reopen, monkeypatch):
    one = store.add("a fact")
    publish = changing._publish

    def without_an_answer(*args, **options):
        publish(*args, **options)
        raise StorageError("the answer was lost")

    monkeypatch.setattr(changing, "_publish", without_an_answer)
    with pytest.raises(StorageError):
        store.update(one.id, content=NEW)
    assert reopen(store.uri).get(one.id).content == NEW
