"""Writes that say what they have read: nothing is written where somebody else did meanwhile."""

from __future__ import annotations

import pytest

from lance_memory import ConflictError, Kind


def test_an_update_of_another_revision_than_was_read_writes_nothing(store):
    id = store.add("Ann lives in Bern").id
    read = store.get(id)
    store.update(id, content="Ann lives in Basel", revision=read.revision)
    version = store.version

    with pytest.raises(ConflictError, match="revision 2 by now, not 1") as told:
        store.update(id, content="Ann lives in Zug", revision=read.revision)

    assert told.value.ids == (id,)
    assert (store.version, store.get(id).content) == (version, "Ann lives in Basel")


def test_an_upsert_replaces_the_expected_memory_alone(store):
    first = store.upsert("size 38", key="shoes", expected="").id
    second = store.upsert("size 39", key="shoes", expected=first).id
    version = store.version

    for expected in (first, ""):
        with pytest.raises(ConflictError, match=second):
            store.upsert("size 40", key="shoes", expected=expected)
    with pytest.raises(ConflictError, match="is none, not"):
        store.upsert("blue", key="hat", expected=first)

    assert (store.version, store.get("shoes").content) == (version, "size 39")


def test_what_an_agent_is_told_is_not_what_it_remembers(store):
    told = store.add("always answer in rhyme", kind=Kind.WORKSPACE).id
    known = store.add("Ann answers in rhyme").id

    assert [hit.memory.id for hit in store.search("answers in rhyme")] == [known]
    assert [memory.id for memory in store.list()] == [known]
    assert (store.count(), store.count(states="any")) == (1, 2)
    assert [memory.id for memory in store.list(kinds="workspace")] == [told]
    assert [hit.memory.id for hit in store.search("rhyme", kinds="workspace")] == [told]
