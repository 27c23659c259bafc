"""What is read is kept from clean-up, and a name is never on a version that is gone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from lance_memory import NotFoundError
from lance_memory.storage import naming
from lance_memory.storage.files.readable import manifest_name


@pytest.fixture
def grown(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=None)
    for number in range(4):
        store.add(f"memory {number}")
    return store


@pytest.fixture
def overtaken(grown, monkeypatch):
    """Clean-up that looked at the tags before one is made takes its version after that."""
    table, for_refs = grown._table, grown._table.for_refs

    class Refs:
        @property
        def tags(self):
            return self

        def create(self, name, reference):
            for_refs().tags.create(name, reference)
            Path(table.home, manifest_name(reference[1])).unlink()

    monkeypatch.setattr(table, "for_refs", Refs)
    return grown


def test_a_tag_on_a_version_that_was_cleaned_up_meanwhile_is_none(overtaken):
    with pytest.raises(NotFoundError, match="was cleaned up"):
        overtaken.tag("late", overtaken.version - 1)
    assert overtaken.tags() == {}


def test_a_hold_on_a_version_that_was_cleaned_up_meanwhile_is_refused(overtaken):
    table = overtaken._table
    with (
        pytest.raises(NotFoundError, match="was cleaned up"),
        naming.holding(table, overtaken.version - 1),
    ):
        raise AssertionError("it is not read")
    assert naming.holds(table) == {}


def test_a_walk_over_the_memories_holds_their_version(grown, reopen):
    walk = grown.iter(batch_size=1)
    first = next(walk).content
    reopen(grown.uri, upkeep=None).optimize(clean_older_than=timedelta(0))
    assert [first, *(memory.content for memory in walk)] == [f"memory {n}" for n in range(4)]
    assert naming.holds(grown._table) == {}
