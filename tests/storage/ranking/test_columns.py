"""What ranking knows of rows, at every version, whatever the process has seen before."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lance_memory import Scope
from lance_memory.storage import Table

START = datetime(2025, 1, 1, tzinfo=UTC)


def rows_of(store, n=6, **more):
    return [
        {
            "content": f"row {i}",
            "session": f"s{i % 2}",
            "user": "u",
            "actor": "Ana" if i < n // 2 else "Bo",
            "event_at": START + timedelta(minutes=i),
            "importance": i / 10,
            **more,
        }
        for i in range(n)
    ]


@pytest.fixture
def table(store):
    store.add_many(rows_of(store))
    return Table.open(store.uri)


def addresses(snapshot):
    return snapshot.addresses(None)


def test_columns_are_those_of_the_rows(store, table):
    snapshot = table.latest()
    where = addresses(snapshot)
    rows = snapshot.take(where, ["session", "actor", "event_at", "importance"])
    sessions = snapshot.ranking_columns.sessions(where)
    for name in ("s0", "s1"):
        same = {
            int(n) for n, s in zip(sessions, rows["session"].to_pylist(), strict=True) if s == name
        }
        assert len(same) == 1
        assert same != {0}
    assert snapshot.ranking_columns.importance(where).tolist() == pytest.approx(
        rows["importance"].to_pylist()
    )
    said = snapshot.ranking_columns.said_by(where, {"Ana", "Zoe"})
    assert said.tolist() == [actor == "Ana" for actor in rows["actor"].to_pylist()]
    happened = [t.replace(tzinfo=None) for t in rows["event_at"].to_pylist()]
    assert snapshot.ranking_columns.happened(where).tolist() == happened


def test_a_memory_of_no_session_has_none_and_of_no_event_has_its_creation(store, clock):
    store.add("alone")
    snapshot = Table.open(store.uri).latest()
    where = addresses(snapshot)
    assert snapshot.ranking_columns.sessions(where).tolist() == [0]
    created = snapshot.scan(columns=["created_at"])["created_at"][0].as_py().replace(tzinfo=None)
    assert snapshot.ranking_columns.happened(where).tolist() == [created]


def test_one_session_name_in_two_scopes_is_two_sessions(store):
    store.add_many([*rows_of(store, 2, session="s"), *rows_of(store, 2, session="s", user="v")])
    snapshot = Table.open(store.uri).latest()
    assert len(set(snapshot.ranking_columns.sessions(addresses(snapshot)).tolist())) == 2


def test_the_rows_of_a_session_are_those_that_are_there(store, table):
    before = table.latest()
    gone = store.list(session="s0")[1]
    store.delete(gone.id)
    store.update(store.list(session="s0")[0].id, importance=1.0)
    store.add("later", session="s0", user="u", event_at=START + timedelta(hours=1))
    for snapshot in (table.latest(), before, Table.open(store.uri).latest()):
        wanted = snapshot.ranking_columns.sessions(addresses(snapshot))
        found = snapshot.ranking_columns.rows_of(np.unique(wanted))
        assert sorted(found.addresses.tolist()) == sorted(addresses(snapshot).tolist())


def test_no_sessions_have_no_rows(table):
    assert len(table.latest().ranking_columns.rows_of(np.empty(0, dtype=np.uint64)).addresses) == 0


def test_actors_are_those_of_the_version_and_the_scope(store, table):
    both = table.latest()
    store.delete([m.id for m in store.list(actor="Bo")])
    store.add("hello", user="v", actor="Cy")
    now = table.latest()
    for scope, before, after in (
        (Scope(), {"Ana", "Bo"}, {"Ana", "Cy"}),
        (Scope(user="u"), {"Ana", "Bo"}, {"Ana"}),
        (Scope(user="v"), set(), {"Cy"}),
        (Scope(user="nobody"), set(), set()),
    ):
        assert (now.ranking_columns.actors(scope), both.ranking_columns.actors(scope)) == (
            after,
            before,
        )


def test_what_an_old_version_knows_does_not_depend_on_what_was_seen_before(store, table):
    """A fragment that was first read when some of its rows were deleted has them at that version."""
    old = store.version
    store.delete([m.id for m in store.list(actor="Bo")])
    seen_late = Table.open(store.uri)
    assert seen_late.latest().ranking_columns.actors(Scope()) == {"Ana"}
    assert seen_late.at(old).ranking_columns.actors(Scope()) == {"Ana", "Bo"}


def test_the_latest_expiry_is_that_of_recallable_rows_of_the_version(store, clock):
    now = clock.now
    store.add("stays")
    early = store.add("early", expires_at=now + timedelta(hours=1))
    late = store.add("late", expires_at=now + timedelta(hours=2))
    whole = store.version
    after = now + timedelta(hours=9)

    def latest(version=None, moment=after):
        table = Table.open(store.uri)
        table.latest().ranking_columns  # noqa: B018 (what is read first must not matter)
        return (table.at(version) if version else table.latest()).ranking_columns.latest_expiry(
            moment
        )

    assert latest() == now + timedelta(hours=2)
    assert latest(moment=now + timedelta(minutes=90)) == now + timedelta(hours=1)
    assert latest(moment=now) is None
    store.retire(late.id)
    assert latest() == now + timedelta(hours=1)
    store.delete(early.id)
    assert latest() is None
    assert latest(whole) == now + timedelta(hours=2)


def test_columns_survive_compaction_and_many_versions(store, table):
    for i in range(12):
        store.add(f"more {i}", session="s0", user="u", actor=f"A{i}")
    store.optimize()
    for snapshot in (table.latest(), Table.open(store.uri).latest()):
        where = addresses(snapshot)
        assert len(np.unique(snapshot.ranking_columns.sessions(where))) == 2
        assert len(snapshot.ranking_columns.actors(Scope())) == 14
