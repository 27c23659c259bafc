"""The history as frames, and DuckDB over the rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import polars as pl
import pytest

from lance_memory import InvalidInputError, MissingExtraError, Retain, Upkeep
from lance_memory.storage import deltas

NARROW = ["version", "operation", "change", "state_before", "state_after", "revision"]


def of(frame, identifier):
    return frame.filter(id=identifier).select(NARROW).rows()


def test_each_change_of_a_memory_is_a_row(store):
    one = store.add("Mara lives in Lisbon.", key="home").id
    two = store.upsert("Mara lives in Porto.", key="home").id
    store.update(two, importance=0.9)
    store.retire([two])
    store.unretire([two])
    store.delete([one])
    first = store.log()[-1].version
    frame = store.history_frame()
    assert of(frame, one) == [
        (first, "add", "added", None, "active", 1),
        (first + 1, "upsert", "superseded", "active", "superseded", 2),
        (first + 5, "delete", "removed", "superseded", None, 2),
    ]
    assert of(frame, two) == [
        (first + 1, "upsert", "added", None, "active", 1),
        (first + 2, "update", "edited", "active", "active", 2),
        (first + 3, "retire", "retired", "active", "retired", 3),
        (first + 4, "unretire", "restored", "retired", "active", 4),
    ]
    assert frame["at"].to_list() == sorted(frame["at"].to_list())


def test_a_pending_memory_is_approved(store):
    waiting = store.add("Maybe she plays the cello.", state="pending").id
    store.approve(waiting)
    changes = store.history_frame().filter(id=waiting)["change"].to_list()
    assert changes == ["added", "approved"]


def test_upkeep_changes_no_memory(store):
    store.add_many([f"memory number {n}" for n in range(40)])
    before = store.history_frame()
    store.optimize()
    assert store.versions_frame(upkeep=False)["version"].to_list() == [
        entry.version for entry in reversed(store.log())
    ]
    assert store.history_frame().equals(before)


def test_what_was_cleaned_up_is_kept_in_the_oldest_version_that_can_be_read(store, clock):
    """And writes between two readable versions are told in sum, without an operation."""
    store.add_many(["first", "second"])
    store.tag("held")
    three, four = store.add("third").id, store.add("fourth").id
    store.retire([three])
    clock.forward(days=1)
    store.optimize(clean_older_than=timedelta(0))
    frame = store.history_frame()
    assert frame.select("change", "operation", "state_before").rows() == [
        *[("kept", None, None)] * 2,
        *[("added", None, None)] * 2,
    ]
    assert dict(frame.select("id", "state_after").rows()[2:]) == {three: "retired", four: "active"}
    assert store.versions_frame(upkeep=False)["memories"].to_list() == [2, 3, 4, 4]


def test_a_view_has_the_history_up_to_its_version(store):
    store.add("first")
    then = store.version
    store.add("second")
    assert store.at(then).history_frame().height == 1
    assert store.at(then).versions_frame()["version"].max() == then


def test_an_empty_store_has_empty_frames_with_the_same_columns(store):
    empty = store.history_frame()
    store.add("first")
    assert empty.height == 0
    assert empty.schema == store.history_frame().schema


def test_a_scoped_handle_sees_its_own_history(store):
    store.add("hers", user="ana")
    store.add_many([{"content": "his", "user": "bob"}, {"content": "hers too", "user": "ana"}])
    ana = store.scoped(user="ana")
    frame = ana.history_frame()
    assert set(frame["user"]) == {"ana"}
    assert frame.height == 2
    assert ana.versions_frame()["memories"].null_count() == ana.versions_frame().height
    assert set(ana.duckdb().sql("SELECT user FROM memories").fetchall()) == {("ana",)}


def test_duckdb_reads_memories_and_versions(store):
    store.add("first", metadata={"city": "Zürich"}, user="ana")
    store.tag("t")
    connection = store.duckdb()
    query = "SELECT content, metadata->>'city', len(embedding) FROM memories"
    assert connection.sql(query).fetchall() == [("first", "Zürich", 16)]
    query = "SELECT operation, memories, tags FROM versions ORDER BY version DESC LIMIT 1"
    assert connection.sql(query).fetchall() == [("add", 1, ["t"])]
    narrow = store.duckdb(columns=["id", "user"], user="nobody")
    assert narrow.sql("SELECT * FROM memories").fetchall() == []
    with pytest.raises(InvalidInputError, match="no column nonsense"):
        store.duckdb(columns=["nonsense"])


def test_without_duckdb_the_extra_is_named(store, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"lance-memory\[analysis\]"):
        store.duckdb()


def test_frames_go_to_pandas_and_back_by_arrow(store):
    """Zero-copy where the types allow it: Arrow is what all of them speak."""
    store.add_many(["first", "second"])
    frame = store.history_frame()
    assert pl.DataFrame(frame.to_arrow()).equals(frame)


def test_a_rewritten_version_is_part_of_the_history(store):
    """A tagged version that something was forgotten from can be read; the frames passed it over."""
    kept = store.add("kept").id
    first = store.version
    gone = store.add("forgotten").id
    store.tag("held")
    held = store.version
    store.update(kept, importance=0.9)
    store.forget([gone])
    frame = store.history_frame()
    assert gone not in frame["id"].to_list()
    assert frame.select("version", "operation", "id", "change").rows() == [
        (first, "add", kept, "added"),
        (held + 2, None, kept, "edited"),  # the forgetting is a write after it
    ]
    readable = [entry.version for entry in store.log(upkeep=True) if entry.readable]
    assert held in readable
    assert store.stats().versions == len(readable)


def test_columns_are_names_each_once(store):
    store.add("first")
    assert store.to_arrow(columns=["id", "id"]).column_names == ["id"]
    for wrong in ("id", 5, [1]):
        with pytest.raises(InvalidInputError, match="columns"):
            store.to_arrow(columns=wrong)
    assert store.to_arrow(columns=[]).num_columns == 0
    with pytest.raises(InvalidInputError, match="columns is empty"):
        store.duckdb(columns=[])


def test_duckdb_tells_times_in_utc_whatever_zone_the_process_is_in(store, monkeypatch):
    store.add("first")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    connection = store.duckdb()
    assert connection.sql("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
    ((told,),) = connection.sql("SELECT CAST(created_at AS VARCHAR) FROM memories").fetchall()
    assert told.endswith("+00")


@pytest.mark.slow
@pytest.mark.disk
def test_clean_up_meanwhile_spoils_no_frame(tmp_path, reopen):
    """Files went between listing and reading: a traceback of one, or a store that looked damaged."""
    few = Retain(last=2, hours=0, days=0, weeks=0, months=0, passes=0)
    upkeep = Upkeep(mode="inline", fragments=2, versions=3, unindexed_rows=4, retain=few)
    writer = reopen(tmp_path / "busy", upkeep=upkeep)
    writer.add("the first one")
    reader = reopen(tmp_path / "busy", upkeep=None)
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: [writer.add(f"memory {n}") for n in range(20)])
        while not done.done():
            frame = reader.history_frame()
            assert frame["change"].is_in(["kept", "added"]).all()
            assert reader.stats().bytes > 0
        assert len(done.result()) == 20


def test_rows_that_a_write_left_alone_are_not_kept_in_memory(store):
    """Guards large files: each version that took one row of theirs would hold all the others."""
    ids = store.add_many([f"memory number {n}" for n in range(200)]).ids
    for n in range(4):
        store.update(ids[n], importance=0.9)
    store.delete([ids[9]])
    columns = ["id", "revision", "updated_at", "content_hash"]
    found = list(deltas(store._table, until=store.version, columns=columns))
    assert [(len(one.before), len(one.after)) for one in found if one.entry.op_id] == [
        (0, 200),
        *[(1, 1)] * 4,
        (1, 0),
    ]
