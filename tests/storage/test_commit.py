from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import lance
import pytest

from lance_memory import (
    ConflictError,
    DamagedStoreWarning,
    MemoryStore,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.record.rows import changed
from lance_memory.record.schema import StoreFormat
from lance_memory.storage import Audit, ChangeSet, Table, absolute
from lance_memory.storage import change as changing

NOW = datetime(2025, 1, 1, tzinfo=UTC)
AUDIT = Audit(operation="test", at=NOW)


def table_of(store):
    return Table.open(store.uri)


def test_a_commit_that_lost_a_race_is_planned_again(store, reopen):
    stored = store.add("a")
    other, table = reopen(store.uri), table_of(store)
    seen = []

    def plan(snapshot):
        seen.append(snapshot.version)
        if len(seen) == 1:
            other.update(stored.id, content="the other was faster")
        rows = snapshot.by_ids([stored.id], columns=snapshot.schema.names)
        return ChangeSet(audit=AUDIT, updates=changed(rows, {"importance": 1.0}, now=NOW))

    table.commit(plan)
    assert seen == [stored.version, stored.version + 1]
    memory = store.get(stored.id)
    assert (memory.content, memory.importance, memory.revision) == ("the other was faster", 1.0, 3)


def test_a_change_of_what_was_seen_before_is_a_conflict(store):
    stored = store.add("a")
    table = table_of(store)
    before = table.latest()
    seen = before.locate([stored.id]).fingerprints()
    rows = before.by_ids([stored.id], columns=before.schema.names)
    store.update(stored.id, importance=0.9)
    version = store.version
    with pytest.raises(
        ConflictError, match="1 of the memories it is about were changed or deleted"
    ) as caught:
        table.commit(
            lambda _: ChangeSet(audit=AUDIT, updates=changed(rows, {}, now=NOW), seen=seen)
        )
    assert caught.value.ids == (stored.id,)
    assert store.version == version


def test_an_update_of_what_is_gone_is_a_conflict(store):
    stored = store.add("a")
    store.add("b")
    table = table_of(store)
    rows = table.latest().by_ids([stored.id], columns=table.latest().schema.names)
    store.delete(stored.id)
    with pytest.raises(ConflictError) as caught:
        table.commit(lambda _: ChangeSet(audit=AUDIT, updates=rows))
    assert caught.value.ids == (stored.id,)


def test_a_race_that_is_lost_too_often_is_a_conflict(store, reopen, monkeypatch):
    stored = store.add("a")
    other, table = reopen(store.uri), table_of(store)
    monkeypatch.setattr(changing, "_ATTEMPTS", 3)

    def plan(snapshot):
        other.update(stored.id, importance=1 / snapshot.version)
        rows = snapshot.by_ids([stored.id], columns=snapshot.schema.names)
        return ChangeSet(audit=AUDIT, updates=changed(rows, {}, now=NOW))

    with pytest.raises(
        ConflictError, match=r"other writers were faster 3 times; nothing was written: try again"
    ):
        table.commit(plan)


def test_an_empty_change_set_makes_no_version(store):
    table = table_of(store)
    before = table.latest().version
    table.commit(lambda _: ChangeSet(audit=AUDIT))
    assert table.latest().version == before
    assert not ChangeSet(audit=AUDIT)


@pytest.mark.parametrize(
    "verb", ["add", "update", "retire", "delete", "supersede", "upsert", "rollback"]
)
def test_every_verb_meets_another_writer_between_its_reading_and_its_commit(
    store, reopen, verb, monkeypatch
):
    """The loser plans again on the winner's version; both changes are there."""
    target = store.add("target", key="k")
    then = store.version
    other = reopen(store.uri)
    publish, raced = changing._publish, []

    def overtaken(*args, **options):
        if not raced:
            raced.append(True)
            other.add("the other was faster")
        return publish(*args, **options)

    monkeypatch.setattr(changing, "_publish", overtaken)
    {
        "add": lambda: store.add("new"),
        "update": lambda: store.update("k", importance=1),
        "retire": lambda: store.retire("k"),
        "delete": lambda: store.delete("k"),
        "supersede": lambda: store.supersede("k", "new"),
        "upsert": lambda: store.upsert("new", key="k"),
        "rollback": lambda: (store.update("k", importance=1), store.rollback(then)),
    }[verb]()
    assert raced
    found = {m.content for m in store.list(states="any")}
    assert ("the other was faster" in found) == (verb != "rollback")
    expected = {
        "add": {"target", "new"},
        "update": {"target"},
        "retire": {"target"},
        "delete": set(),
        "supersede": {"target", "new"},
        "upsert": {"target", "new"},
        "rollback": {"target"},
    }[verb]
    assert found - {"the other was faster"} == expected
    assert (store.find(target.id) is None) == (verb == "delete")


@pytest.mark.parametrize("emptied", [False, True])
def test_two_handles_that_add_the_same_at_once_store_it_once(store, reopen, monkeypatch, emptied):
    """C01 across handles, on a filled and on a fragment-less table."""
    if not emptied:
        store.add("something")
    other = reopen(store.uri)
    publish, raced = changing._publish, []

    def overtaken(*args, **options):
        if not raced:
            raced.append(True)
            other.add("the same words", key="k")
        return publish(*args, **options)

    monkeypatch.setattr(changing, "_publish", overtaken)
    assert store.add("the same words", key="k").outcome == "already_there"
    assert [m.content for m in store.list()].count("the same words") == 1


def test_two_live_handles_that_write_in_turn_lose_nothing(store, reopen):
    """C47."""
    other = reopen(store.uri)
    for i in range(5):
        store.add(f"one {i}")
        other.add(f"two {i}")
    expected = sorted([f"one {i}" for i in range(5)] + [f"two {i}" for i in range(5)])
    assert sorted(m.content for m in store.list()) == expected
    assert sorted(m.content for m in other.list()) == expected


def test_upkeep_that_is_overtaken_says_so_or_wins_and_loses_nothing(store, reopen, monkeypatch):
    for i in range(4):
        store.add(f"m{i}")
    other = reopen(store.uri)
    from lance_memory.storage.upkeep import steps as upkeep

    compact = upkeep._compact

    def overtaken(table, *bounds):
        other.update(other.list()[0].id, importance=1)
        compact(table, *bounds)

    monkeypatch.setattr(upkeep, "_compact", overtaken)
    store.optimize()
    assert sorted(m.content for m in store.list()) == [f"m{i}" for i in range(4)]
    assert store.list()[0].importance == 1


def test_upkeep_reports_a_lost_race_as_a_conflict(store, monkeypatch):
    from lance.commit import CommitConflictError

    from lance_memory.storage.upkeep import steps as upkeep

    store.add("a")

    def lost(*_):
        raise CommitConflictError("overtaken")

    monkeypatch.setattr(upkeep, "_compact", lost)
    with pytest.raises(
        ConflictError,
        match="upkeep was overtaken by writers 6 times; nothing is lost: run it again",
    ):
        store.optimize()
    assert store.count() == 1


def test_two_that_make_the_same_store_at_once_share_it(tmp_path):
    fmt = StoreFormat(embedding_model="m", dimension=4)
    one = Table.create(str(tmp_path / "store"), fmt)
    two = Table.create(str(tmp_path / "store"), fmt)
    assert one.format == two.format == replace(fmt, store_id=one.format.store_id)
    assert two.latest().version == one.latest().version


def test_a_store_left_without_its_text_index_is_mended_or_says_so(tmp_path, embedder, clock):
    """A process may be killed between the table and its index."""
    from lance_memory.record.schema import arrow_schema

    fmt = StoreFormat(embedding_model="words-16", dimension=16)
    schema = arrow_schema(fmt)
    lance.write_dataset(
        schema.empty_table(),
        tmp_path / "store" / "memories.lance",
        schema=schema,
        data_storage_version="2.1",
    )
    store = MemoryStore.open(tmp_path / "store", embedder=embedder, clock=clock)
    store.add("a kettle")
    assert [h.memory.content for h in store.search("kettle", mode="text")] == ["a kettle"]
    assert [h.memory.content for h in store.search("kettle")] == ["a kettle"]


def test_a_table_is_opened_where_there_is_one(tmp_path, store):
    with pytest.raises(NotFoundError, match="no store at"):
        Table.open(str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("x")
    with pytest.raises((StorageError, StoreFormatError)):
        Table.create(str(tmp_path / "file"), StoreFormat(embedding_model="m", dimension=4))
    assert Table.open(store.uri).uri == store.uri


@pytest.mark.parametrize(
    ("given", "expected"), [("/a/b", "/a/b"), ("s3://b/c", "s3://b/c"), ("/a/./b", "/a/b")]
)
def test_a_path_is_made_absolute_and_a_uri_stays(given, expected):
    assert absolute(given) == expected


def test_an_unreadable_manifest_takes_the_store_back_one_version(store, tmp_path, reopen):
    store.add("a")
    newest = max((tmp_path / "store").rglob("*.manifest"), key=lambda p: p.stat().st_mtime_ns)
    newest.write_bytes(b"garbage")
    with pytest.warns(DamagedStoreWarning):
        again = reopen(store.uri)
    assert (again.version, again.list()) == (store.version - 1, [])


def test_who_touched_very_many_scopes_is_not_listed_one_by_one(store):
    store.add_many([{"content": f"m{i}", "user": f"u{i}"} for i in range(70)])
    assert store.log(limit=1)[0].scopes is None
    assert [e.inserted for e in store.scoped(user="u3").log()] == [0]
