"""A change set can be looked at before it is committed, and leaves no trace."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lance_memory import ConflictError
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Scope
from lance_memory.record.rows import superseded
from lance_memory.storage import Audit, ChangeSet, Table

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def files(store):
    return sorted(p for p in Path(store.uri).rglob("*") if p.is_file())


def change_of(snapshot, sources, content):
    """The sources superseded by one new memory."""
    row = {"id": "new", "content": content, "embedding": [1.0] * snapshot.dimension}
    rows = snapshot.by_ids(sources, columns=snapshot.schema.names)
    return ChangeSet(
        audit=Audit(operation="trial", at=NOW),
        inserts=take_in([row], schema=snapshot.schema, scope=Scope(), now=NOW).rows,
        updates=superseded(rows, by="new", reason="", now=NOW),
    )


@pytest.mark.parametrize("branched", [False, True])
def test_a_trial_shows_the_result_and_leaves_nothing_behind(store, branched):
    sources = [store.add(f"tea at {hour}").id for hour in ("four", "five", "six")]
    if branched:
        store = store.branch("side")
    table = Table.open(store.uri)
    table = table.on_branch("side") if branched else table
    before, snapshot = files(store), table.latest()
    with table.trial(snapshot, change_of(snapshot, sources[:2], "a pangolin")) as result:
        assert result.count("state = 'active'") == 2
        assert len(result.matching("pangolin", k=5)) == 1
        assert (
            len(result.nearest([1.0] * snapshot.dimension, k=9, predicate="state = 'active'")) == 2
        )
        assert len(files(store)) > len(before)
    assert files(store) == before
    assert table.latest().version == snapshot.version
    assert store.count() == 3


def test_a_trial_of_the_first_rows_leaves_nothing_behind(store):
    table = Table.open(store.uri)
    before, snapshot = files(store), table.latest()
    with table.trial(snapshot, change_of(snapshot, [], "a pangolin")) as result:
        assert result.count() == 1
    assert files(store) == before
    assert store.count() == 0


def test_a_trial_that_is_broken_off_leaves_nothing_behind(store):
    sources = [store.add("tea").id]
    table = Table.open(store.uri)
    before, snapshot = files(store), table.latest()
    with (
        pytest.raises(ZeroDivisionError),
        table.trial(snapshot, change_of(snapshot, sources, "x")),
    ):
        raise ZeroDivisionError
    assert files(store) == before


def test_the_deletions_of_earlier_versions_survive_a_trial(store):
    """Only what the trial itself wrote is removed."""
    kept, gone, source = (store.add(text).id for text in ("kept", "gone", "tea"))
    store.optimize()
    store.delete(gone)
    table = Table.open(store.uri)
    snapshot = table.latest()
    with table.trial(snapshot, change_of(snapshot, [source], "x")):
        pass
    assert sorted(Table.open(store.uri).latest().scan(columns=["id"])["id"].to_pylist()) == sorted(
        [kept, source]
    )


def test_a_trial_of_a_change_planned_earlier_is_a_conflict(store):
    source = store.add("tea").id
    table = Table.open(store.uri)
    change = change_of(table.latest(), [source], "x")
    store.delete(source)
    with pytest.raises(ConflictError), table.trial(table.latest(), change):
        pass
