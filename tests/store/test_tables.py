from __future__ import annotations

import warnings

import duckdb
import lance
import polars as pl
import pyarrow as pa
import pytest

from lance_memory import InvalidInputError, Scope

COLUMNS = [
    "id", "revision", "key", "content_hash",
    "tenant", "user", "agent", "session", "run",
    "kind", "role", "actor", "content", "metadata", "tags",
    "importance", "confidence", "quality",
    "created_at", "updated_at", "event_at", "valid_from", "valid_to", "expires_at",
    "seq", "state", "state_at", "state_reason", "superseded_by",
    "relationships", "source", "source_ref", "embedding",
]  # fmt: skip


@pytest.fixture
def filled(store):
    store.add_many(
        [
            {"content": "first", "user": "ana", "tags": ["t"], "metadata": {"city": "Zürich"}},
            {"content": "second", "user": "bob", "session": "s"},
        ]
    )
    store.retire(store.list(user="bob")[0].id)
    return store


def test_every_column_of_the_design_is_a_column_of_the_table(store, access):
    assert sorted(store.to_arrow().column_names) == sorted(COLUMNS)
    table = lance.dataset(f"{store.uri}/memories.lance", **access)
    assert sorted(table.schema.names) == sorted(COLUMNS)
    field = table.schema.field("id")
    assert not field.nullable
    assert field.metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 16)
    times = [n for n in COLUMNS if n.endswith("_at") or n.startswith("valid_")]
    assert {table.schema.field(n).type for n in times} == {pa.timestamp("us", "UTC")}
    assert {table.schema.field(n).type for n in ("importance", "confidence", "quality")} == {
        pa.float32()
    }


def test_lancedb_reads_the_table_with_no_help(filled, access):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import lancedb

        table = lancedb.connect(filled.uri, **access).open_table("memories")
        found = table.to_arrow()
        nearest = table.search([1.0] * 16).limit(1).to_list()
    assert sorted(found["content"].to_pylist()) == ["first", "second"]
    assert len(nearest) == 1


def test_duckdb_reads_the_table_with_no_help(filled, access):
    memories = lance.dataset(f"{filled.uri}/memories.lance", **access)  # noqa: F841 (DuckDB finds it by name)
    found = duckdb.sql("SELECT content, state, tags FROM memories ORDER BY content").fetchall()
    assert found == [("first", "active", ["t"]), ("second", "retired", [])]


def test_polars_reads_the_table_with_no_help(filled, access):
    table = lance.dataset(f"{filled.uri}/memories.lance", **access)
    frame = pl.scan_pyarrow_dataset(table).filter(pl.col("state") == "active").select("content")
    assert frame.collect()["content"].to_list() == ["first"]


def test_arrow_has_every_state_and_the_embeddings_unless_asked(filled):
    table = filled.to_arrow()
    assert sorted(table["content"].to_pylist()) == ["first", "second"]
    assert table["embedding"].null_count == 0
    assert filled.to_arrow(states="visible", columns=["content"]).to_pydict() == {
        "content": ["first"]
    }
    assert filled.to_arrow(states="retired", columns=["user"]).to_pydict() == {"user": ["bob"]}


def test_a_column_that_is_not_there_is_refused(filled):
    with pytest.raises(InvalidInputError, match="colour"):
        filled.to_arrow(columns=["content", "colour"])


def test_arrow_can_be_added_to_another_store(filled, tmp_path, reopen):
    other = reopen(tmp_path / "other")
    other.add_many(filled.to_arrow())
    assert other.to_arrow().sort_by("id").to_pylist() == filled.to_arrow().sort_by("id").to_pylist()


def test_polars_is_lazy_and_has_every_state(filled):
    frame = filled.to_polars()
    assert isinstance(frame, pl.LazyFrame)
    assert sorted(frame.select("content").collect()["content"].to_list()) == ["first", "second"]
    assert frame.filter(pl.col("user") == "ana").collect().height == 1
    metadata = frame.filter(pl.col("content") == "first").collect()["metadata"].to_list()
    assert pl.Series(metadata).str.json_decode(pl.Struct({"city": pl.String})).to_list() == [
        {"city": "Zürich"}
    ]


def test_a_select_gives_a_frame(filled):
    found = filled.sql("SELECT state, count(*) AS n FROM memories GROUP BY state ORDER BY state")
    assert found.to_dicts() == [{"state": "active", "n": 1}, {"state": "retired", "n": 1}]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELEC 1",
        "SELECT * FROM nope",
        "SELECT colour FROM memories",
        "SELECT 1; SELECT 2",
        "SELECT nope(id) FROM memories",
    ],
)
def test_a_query_that_cannot_run_says_why(filled, query):
    with pytest.raises(InvalidInputError, match="query"):
        filled.sql(query)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT * FROM memory", "relation 'memory' was not found; the table is `memories`"),
        ("SELECT nope(id) FROM memories", "unsupported function 'nope'"),
    ],
)
def test_a_query_that_cannot_run_says_so_in_a_sentence(filled, query, said):
    """It went on with the engine's plan: "Resolved plan until failure: ... FAILED HERE"."""
    with pytest.raises(InvalidInputError) as caught:
        filled.sql(query)
    assert str(caught.value) == f"the query failed: {said}"


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM memories",
        "DROP TABLE memories",
        "TRUNCATE TABLE memories",
        "CREATE TABLE x AS SELECT * FROM memories",
    ],
)
def test_only_a_select_is_a_query(filled, query):
    """An answer would read as if it had been done."""
    with pytest.raises(InvalidInputError):
        filled.sql(query)
    assert filled.count(states="any") == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT content FROM memories -- a comment",
        "WITH m AS (SELECT * FROM memories) SELECT content FROM m",
        "  (SELECT content FROM memories)",
        "select content from memories where content = 'read this; scan that (delete)'",
    ],
)
def test_a_select_may_be_written_in_many_ways(filled, query):
    assert filled.sql(query).columns == ["content"]


def test_the_numbers_of_a_store(filled):
    filled.tag("t")
    filled.branch("b")
    stats = filled.stats()
    assert (stats.uri, stats.version, stats.scope) == (filled.uri, filled.version, Scope())
    assert (stats.rows, stats.visible, stats.users, stats.sessions) == (2, 1, 2, 1)
    assert (dict(stats.by_state), dict(stats.by_kind)) == (
        {"active": 1, "retired": 1},
        {"episodic": 2},
    )
    assert (stats.embedding_model, stats.dimension, stats.without_embedding) == ("words-16", 16, 0)
    assert (stats.versions, dict(stats.tags), stats.branches) == (
        filled.version,
        {"t": filled.version},
        ("b",),
    )
    assert stats.bytes > 1_000
    assert stats.fragments >= 1
    assert stats.at.tzinfo is not None


def test_the_numbers_say_what_the_indices_do_not_cover_yet(filled):
    """C22."""
    filled.optimize()
    assert set(filled.stats().unindexed_rows.values()) == {0}
    filled.add("third")
    assert filled.stats().unindexed_rows["content_idx"] == 1
    assert [h.memory.content for h in filled.search("third", mode="text")] == ["third"]
