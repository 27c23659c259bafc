"""`history` tells every change of a memory that can be read, and reads few versions for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lance_memory import NotFoundError
from lance_memory.storage import Table

ANA = {"tenant": "acme", "user": "ana"}


def told(store, ref):
    return [
        (c.operation, c.reason, c.after.content if c.after else None, c.lost)
        for c in store.history(ref)
    ]


def test_of_many_versions_few_are_read_and_every_change_is_found(store, monkeypatch):
    one = store.add("apples")
    edits = {20: "pears", 21: "plums", 97: "figs"}
    for number in range(120):
        store.add(f"note {number}")
        if number in edits:
            store.update(one.id, content=edits[number])
    read = set()
    opened = Table.at

    def counted(table, version):
        read.add(version)
        return opened(table, version)

    monkeypatch.setattr(Table, "at", counted)
    assert told(store, one.id) == [
        ("add", "", "apples", 0),
        ("update", "", "pears", 0),
        ("update", "", "plums", 0),
        ("update", "", "figs", 0),
    ]
    assert store.version > 120
    assert len(read) < 40


def test_what_was_cleaned_up_is_told_as_so_many_revisions(store):
    one = store.add("apples")
    store.update(one.id, content="pears")
    store.update(one.id, content="plums")
    store.optimize(clean_older_than=timedelta(0))
    store.update(one.id, content="figs")
    first, last = store.history(one.id)
    assert (first.operation, first.actor, first.before, first.lost) == ("", "", None, 3)
    assert (first.after.content, last.before.content, last.after.content) == (
        ("plums", "plums", "figs")
    )
    assert (last.operation, last.lost) == ("update", 0)


def test_a_branch_has_the_past_of_where_it_began_and_a_future_of_its_own(store):
    one = store.add("apples")
    branch = store.branch("trial")
    branch.update(one.id, content="pears")
    store.update(one.id, content="plums")
    assert [text for _, _, text, _ in told(store, one.id)] == ["apples", "plums"]
    assert [text for _, _, text, _ in told(branch, one.id)][-1] == "pears"
    assert "plums" not in [text for _, _, text, _ in told(branch, one.id)]


def test_at_a_version_what_came_after_it_is_not_told(store):
    one = store.add("apples")
    then = store.version
    store.update(one.id, content="pears")
    assert [c.after.content for c in store.at(then).history(one.id)] == ["apples"]


def test_a_scoped_handle_is_told_nothing_of_others(store):
    mine = store.add("my apples", **ANA)
    other = store.add("pears of eva", tenant="acme", user="eva")
    merged = store.supersede([mine.id, other.id], "apples and pears", reason="eva asked")
    ana = store.scoped(**ANA)
    seen = ana.history(mine.id)
    assert {c.id for c in seen} == {mine.id}
    assert [c.reason for c in seen] == ["", ""]
    texts = {m.content for c in seen for m in (c.before, c.after) if m}
    assert texts == {"my apples"}
    assert {c.id for c in store.history(mine.id)} == {mine.id, merged.ids[0]}
    with pytest.raises(NotFoundError):
        ana.history(other.id)
