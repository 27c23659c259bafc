"""The same table through LanceDB's own API."""

import duckdb
import lancedb.rerankers
import polars as pl
import pytest

from lance_memory import ScopeError


@pytest.fixture
def kitchen(store):
    store.add_many(["a kettle boils water", "the cat sleeps", "water the plants"])
    store.optimize()
    return store


def test_lancedbs_query_builder_finds_the_same_memories(kitchen, embedder):
    table = kitchen.lancedb_table()
    vector = embedder.embed(["kettle water"])[0]
    near = table.search(vector, vector_column_name="embedding").distance_type("cosine").limit(2)
    ours = kitchen.search(vector=vector, k=2, mode="vector")
    assert near.to_arrow()["id"].to_pylist() == [hit.memory.id for hit in ours]
    said = table.search("kettle", query_type="fts").limit(5).to_arrow()
    assert said["content"].to_pylist() == ["a kettle boils water"]


def test_lancedbs_hybrid_search_and_rerankers_work(kitchen, embedder):
    found = (
        kitchen.lancedb_table()
        .search(query_type="hybrid", vector_column_name="embedding")
        .vector(embedder.embed(["kettle water"])[0])
        .text("kettle water")
        .rerank(lancedb.rerankers.RRFReranker())
        .where("state = 'active'", prefilter=True)
        .limit(2)
        .to_arrow()
    )
    assert found["content"][0].as_py() == "a kettle boils water"


def test_polars_and_duckdb_read_it(kitchen):
    table = kitchen.lancedb_table()
    found = table.search("water", query_type="fts").limit(5).to_polars()
    assert sorted(found["content"]) == ["a kettle boils water", "water the plants"]
    whole = pl.scan_pyarrow_dataset(table.to_lance()).select("content").collect()
    assert whole.height == 3
    rows = table.to_lance()
    counted = duckdb.sql("SELECT count(*) FROM rows WHERE content LIKE '%water%'").fetchall()
    assert (counted, rows.count_rows()) == ([(2,)], 3)


def test_lancedbs_lazy_polars_frame_cannot_read_a_json_column_yet(kitchen):
    """When this fails, LanceDB can, and `lancedb_table` need not warn of it any more."""
    with pytest.raises(pl.exceptions.SchemaError, match="json"):
        kitchen.lancedb_table().to_polars().collect()


def test_a_view_is_handed_out_at_its_version(kitchen):
    before = kitchen.version
    kitchen.add("one more")
    assert kitchen.at(before).lancedb_table().count_rows() == 3
    assert kitchen.lancedb_table().count_rows() == 4


def test_a_branch_is_handed_out_as_that_branch(kitchen):
    branch = kitchen.branch("trial")
    branch.add("only here")
    assert (branch.lancedb_table().count_rows(), kitchen.lancedb_table().count_rows()) == (4, 3)


@pytest.mark.parametrize("branch", [False, True])
def test_a_stores_table_follows_the_newest_version(kitchen, branch):
    store = kitchen.branch("trial") if branch else kitchen
    table = store.lancedb_table()
    before = table.count_rows()
    store.add("one more kettle")
    assert table.count_rows() == before + 1
    assert len(table.search("kettle", query_type="fts").limit(5).to_arrow()) == 2


def test_a_scoped_handle_does_not_hand_out_what_holds_every_scope(kitchen):
    with pytest.raises(ScopeError, match="every scope"):
        kitchen.scoped(user="u").lancedb_table()
