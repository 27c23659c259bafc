from __future__ import annotations

from datetime import timedelta

import pytest

from lance_memory import InvalidInputError, NotFoundError, StorageError, UpkeepResult
from lance_memory.storage.upkeep import steps as upkeep


def answers(store):
    """What a reader sees: rows, lists, and what the searches find in order."""
    return (
        store.to_arrow().sort_by("id").to_pylist(),
        store.list(),
        [
            [h.memory.id for h in store.search("apple 7", mode=mode, k=5)]
            for mode in ("text", "vector")
        ],
        [
            store.count(**w)
            for w in (
                {"tags": "even"},
                {"user": "u1"},
                {"states": "retired"},
                {"key": "k3"},
                {"kinds": "semantic"},
                {"metadata": {"n": 3}},
            )
        ],
    )


@pytest.fixture
def busy(store):
    """Many fragments, hidden and deleted rows."""
    for i in range(12):
        store.add(
            f"apple {i}",
            user=f"u{i % 3}",
            key=f"k{i}",
            metadata={"n": i},
            tags=["even"] if i % 2 == 0 else [],
            kind="semantic" if i % 4 == 0 else "episodic",
        )
    store.retire("k5")
    store.delete("k6")
    store.update("k7", content="apple 7 and more")
    return store


def test_upkeep_changes_no_answer(busy):
    before = answers(busy)
    result = busy.optimize()
    assert answers(busy) == before
    assert isinstance(result, UpkeepResult)
    assert (result.version, result.fragments_after, result.versions_removed) == (busy.version, 1, 0)
    assert result.fragments_before > 1
    assert {"tags_idx", "agent_idx", "run_idx"} <= {*result.indices_built}


def test_a_second_upkeep_has_nothing_to_do(busy):
    """C35."""
    first = busy.optimize()
    again = busy.optimize()
    assert again == UpkeepResult(
        version=first.version,
        fragments_before=1,
        fragments_after=1,
        indices_built=(),
        versions_removed=0,
        bytes_removed=0,
    )


def test_new_rows_are_folded_and_found(busy):
    busy.optimize()
    busy.add("a late plum", tags=["late"])
    assert [m.content for m in busy.list(tags="late")] == ["a late plum"]
    assert busy.optimize().indices_built == ()
    assert [h.memory.content for h in busy.search("plum", mode="text")] == ["a late plum"]
    assert [m.content for m in busy.list(tags="late")] == ["a late plum"]


def test_indices_never_bring_back_what_was_changed_hidden_or_deleted(busy):
    """C21."""
    busy.optimize()
    busy.update("k1", content="pear one", tags=["odd"])
    busy.retire("k2")
    busy.delete("k4")
    for again in range(2):
        found = {h.memory.key for h in busy.search("apple", mode="text", k=99)}
        assert found & {"k1", "k2", "k4"} == set(), again
        assert [h.memory.key for h in busy.search("pear", mode="text")] == ["k1"]
        assert [m.key for m in busy.list(tags="odd")] == ["k1"]
        assert busy.count(tags="even") == 3
        busy.optimize()


def test_old_versions_go_when_asked_and_tagged_ones_stay(busy):
    """C28, C30."""
    busy.tag("keep", 5)
    held = busy.at(6)
    assert held.count() > 0
    before = answers(busy)
    result = busy.optimize(clean_older_than=timedelta(0))
    assert result.versions_removed > 5
    assert result.bytes_removed > 0
    assert answers(busy) == before
    assert busy.at("keep").count() == 3
    with pytest.raises(NotFoundError, match=r"no version 6 of .*the newest is"):
        busy.at(6)
    if "://" not in busy.uri:  # of an object store, the engine may remember what it has read
        with pytest.raises(StorageError, match="the version was cleaned up"):
            held.list()
    with pytest.raises(NotFoundError):
        busy.rollback(6)
    busy.rollback("keep")
    assert busy.count() == 3
    busy.add("the store goes on")
    assert [e.version for e in busy.log() if e.readable][-1] == 5


def test_young_versions_stay(busy):
    versions = busy.stats().versions
    assert busy.optimize(clean_older_than=timedelta(days=1)).versions_removed == 0
    assert busy.stats().versions >= versions


def test_a_vector_index_is_built_once_it_pays_and_finds_the_nearest(store):
    store.add_many(f"word{i} word{i + 1} word{i + 2}" for i in range(400))
    exact = [h.memory.id for h in store.search("word10 word11 word12", mode="vector", k=1)]
    assert "embedding_idx" not in store.optimize().indices_built
    assert "embedding_idx" in store.optimize(vector_index_from=300).indices_built
    assert store.optimize(vector_index_from=300).indices_built == ()
    found = store.search("word10 word11 word12", mode="vector", k=1)
    assert [h.memory.id for h in found] == exact
    assert found[0].similarity == pytest.approx(1, abs=1e-4)
    store.update(exact[0], content="something else altogether")
    assert [h.memory.id for h in store.search("word10 word11 word12", mode="vector", k=1)] != exact
    new = store.add("a brand new thing")
    assert store.search("a brand new thing", mode="vector", k=1)[0].memory.id == new.id


def test_an_index_that_is_refused_stops_no_upkeep(busy):
    """An index that fails its check is not installed; folding and clean-up go on."""

    def refusing(table):
        raise StorageError("it finds 0.10 of the true neighbours")

    result = upkeep.optimize(busy._table, clean_older_than=timedelta(0), ensure_index=refusing)
    assert result.index_refused == "it finds 0.10 of the true neighbours"
    assert "tags_idx" in result.indices_built
    assert (result.fragments_after, result.versions_removed > 5) == (1, True)
    assert set(busy.stats().unindexed_rows.values()) == {0}
    assert busy.optimize().index_refused == ""


def test_an_empty_store_can_be_tended(store):
    result = store.optimize(clean_older_than=timedelta(0))
    assert (result.fragments_after, result.indices_built) == (0, ())
    store.add("a thing")
    assert len(store.search("thing")) == 1


def test_a_vector_index_over_too_few_rows_is_no_accident(store):
    store.add_many(["a", "b"])
    store.optimize(vector_index_from=1)
    assert len(store.search("a", mode="vector")) == 2


def test_versions_of_the_future_are_no_old_versions(busy):
    before = busy.stats().versions
    with pytest.raises(InvalidInputError, match="clean_older_than"):
        busy.optimize(clean_older_than=timedelta(days=-1))
    assert busy.stats().versions == before


def test_the_past_is_readable_after_upkeep_that_rewrote_indices(store, clock):
    """pylance 14.0.2 cannot give back the transaction of such a compaction."""
    ids = store.add_many(f"memory {i}" for i in range(300)).ids
    store.optimize(vector_index_from=256)
    for i in range(3):
        store.add(f"later {i}")
    store.retire(ids[:100])
    then, count = store.version, store.count()
    store.optimize()
    assert [e.operation for e in store.log()] == ["retire", "add", "add", "add", "add"]
    assert "compact" in [e.operation for e in store.log(upkeep=True)]
    assert (store.at(store.version).count(), store.at(clock.now).count()) == (count, count)
    assert store.stats().versions == store.version
    assert not store.diff(then)


def test_a_revert_of_many_keyed_rows_looks_once(store):
    """It asked the table once a row."""
    stored = store.add_many({"content": f"m{i}", "key": f"k{i}"} for i in range(2_100))
    store.retire(stored.ids)
    retired = store.version
    store.revert(retired)
    assert store.count() == 2_100
