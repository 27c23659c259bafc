"""Selection over real stores: what is grouped, what is read, in which order, within which bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations, count

import numpy as np
import pyarrow as pa
import pytest

from lance_memory import ConsolidateOptions, FunctionEmbedder, MemoryStore
from lance_memory.curate.cluster import members
from lance_memory.curate.cluster.select import Found, Selection, select
from lance_memory.record.rows import EMBEDDING

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def chosen(store, options=None, *, predicate="state = 'active'", **bounds):
    given = ConsolidateOptions(**(options or {}))
    return select(store._snapshot(), predicate, given, **bounds)


def texts(store, selection):
    """The contents of each cluster."""
    known = {m.id: m.content for m in store.iter(states="any")}
    return [[known[i] for i in found.ids] for found in selection.clusters]


def at(minute, content, **fields):
    return {"content": content, "event_at": NOON + timedelta(minutes=minute), **fields}


def test_members_come_oldest_first_and_clusters_by_their_earliest_member(store):
    store.add_many([at(9, "tea b"), at(3, "rome"), at(1, "tea a"), at(5, "tea b"), at(4, "rome")])
    selection = chosen(store, {"min_similarity": 0.99})
    assert texts(store, selection) == [["rome", "rome"], ["tea b", "tea b"]]
    assert selection.considered == 5
    assert [found.cohesion for found in selection.clusters] == pytest.approx([1.0, 1.0])


def test_members_of_one_moment_come_in_the_order_of_their_ids(store):
    store.add_many([at(0, text) for text in ("a b c", "c b a", "b a c", "a c b", "c a b")])
    (found,) = chosen(store).clusters
    assert list(found.ids) == sorted(m.id for m in store.list())


@pytest.mark.parametrize("field", ["tenant", "user", "agent", "session", "run", "kind", "actor"])
def test_likeness_crosses_no_boundary(store, field):
    names = ("semantic", "profile") if field == "kind" else ("x", "y")
    store.add_many([at(i, "same words", **{field: names[i % 2]}) for i in range(6)])
    selection = chosen(store)
    assert [len(found.ids) for found in selection.clusters] == [3, 3]
    if field not in ("kind", "actor"):
        (found,) = chosen(store, {"across": (field,)}).clusters
        assert len(found.ids) == 6


@pytest.mark.parametrize("by", ["similarity", "session", "prefix", "window"])
@pytest.mark.parametrize("end", ["expires_at", "valid_to"])
def test_memories_that_end_at_different_times_are_kept_apart(store, by, end):
    """Or a retention would be undone, and what is over become current."""
    one, other = NOON + timedelta(days=9000), NOON + timedelta(days=9000, microseconds=1)
    place = count()

    def added(**ends):
        i = next(place)
        return store.add("same words", session="s", key=f"notes/{i}", event_at=NOON, **ends).id

    pairs = [sorted(added(**ends) for _ in range(2)) for ends in ({}, {end: one}, {end: other})]
    added(expires_at=one, valid_to=other)
    found = chosen(store, {"by": by})
    assert found.considered == 7
    assert sorted(sorted(cluster.ids) for cluster in found.clusters) == sorted(pairs)


@pytest.mark.parametrize("by", ["session", "run", "tenant"])
def test_structural_groups_hold_what_has_the_label_and_the_boundary(store, by):
    store.add_many(
        [
            at(0, "one", **{by: "x"}, user="ana"),
            at(1, "two", **{by: "x"}, user="ana"),
            at(2, "three", **{by: "x"}, user="eva"),
            at(3, "four", **{by: "x"}, user="eva"),
            at(4, "five", user="ana"),
            at(5, "six", user="ana"),
            at(6, "seven", **{by: "y"}, user="ana"),
        ]
    )
    assert texts(store, chosen(store, {"by": by})) == [["one", "two"], ["three", "four"]]
    both = chosen(store, {"by": by, "across": ("user", by)})
    assert texts(store, both) == [["one", "two", "three", "four"]]
    assert both.considered == 7


def test_a_prefix_is_what_stands_before_the_last_separator_of_the_key_or_the_id(store):
    store.add_many(
        [
            at(0, "a", key="notes/tea/1"),
            at(1, "b", key="notes/tea/2"),
            at(2, "c", key="notes/1"),
            at(3, "d", key="plain"),
            at(4, "e", key="/root"),
            at(5, "f"),
            at(6, "g", id="notes/2"),
            at(7, "h", id="tea::3"),
            at(8, "i", key="tea::4"),
        ]
    )
    found = chosen(store, {"by": "prefix"})
    assert texts(store, found) == [["a", "b"], ["c", "g"]]
    assert texts(store, chosen(store, {"by": "prefix", "separator": "::"})) == [["h", "i"]]


def test_windows_are_cut_by_time_and_by_size(store):
    store.add_many([at(60 * hour, f"hour {hour}") for hour in (0, 1, 2, 3, 30, 31, 80)])
    found = chosen(store, {"by": "window", "max_size": 3})
    assert texts(store, found) == [["hour 0", "hour 1", "hour 2"], ["hour 30", "hour 31"]]


def test_only_the_rows_learned_last_are_considered(store):
    """`created_at` decides, not the time of the event."""
    store.add_many([at(-i, "same words") for i in range(4)])
    later = store.add_many([at(-100 - i, "same words") for i in range(3)]).ids
    selection = chosen(store, rows=3)
    assert selection.considered == 3
    (found,) = selection.clusters
    assert set(found.ids) == set(later)
    assert chosen(store, rows=0) == Selection(considered=0, clusters=[])
    assert chosen(store, rows=99).considered == 7


def test_when_told_to_stop_it_ends_with_what_is_found_so_far(store):
    store.add_many([at(i, "same words", user=f"u{i % 4}") for i in range(16)])
    assert len(chosen(store).clusters) == 4
    for patience in range(12):
        left = iter([False] * patience)
        cut = chosen(store, stop=lambda left=left: next(left, True))
        assert cut.considered == 16
        assert cut.clusters == chosen(store).clusters[: len(cut.clusters)]
    assert chosen(store, stop=lambda: True).clusters == []
    assert chosen(store, {"by": "window"}, stop=lambda: True).clusters == []


def test_of_nothing_there_is_nothing(store):
    for by in ("similarity", "session", "prefix", "window"):
        assert chosen(store, {"by": by}) == Selection(considered=0, clusters=[])
    store.add("alone")
    assert chosen(store) == Selection(considered=1, clusters=[])


def without_vectors(store, contents):
    """Take the vectors of these memories away, as another tool may."""
    dataset = store._snapshot().dataset
    rows = dataset.to_table()
    gone = pa.array([text in contents for text in rows["content"].to_pylist()])
    kept = rows[EMBEDDING].combine_chunks().filter(pa.array([not g.as_py() for g in gone]))
    values = iter(kept.to_pylist())
    column = pa.array([None if g.as_py() else next(values) for g in gone], kept.type)
    place = rows.schema.get_field_index(EMBEDDING)
    return rows.set_column(place, rows.schema.field(EMBEDDING), column)


def test_rows_without_a_vector_count_for_structure_only(store, reopen):
    store.add_many([at(i, text, session="s") for i, text in enumerate(["a", "b", "c d", "c d"])])
    table = without_vectors(store, {"a", "b"})
    import lance

    lance.write_dataset(table, f"{store.uri}/memories.lance", mode="overwrite")
    bare = reopen(store.uri)
    likeness = chosen(bare)
    assert (likeness.considered, texts(bare, likeness)) == (4, [["c d", "c d"]])
    structure = chosen(bare, {"by": "session", "max_size": 2})
    assert [(len(f.ids), f.cohesion) for f in structure.clusters] == [
        (2, 0.0),
        (2, pytest.approx(1.0)),
    ]
    (whole,) = chosen(bare, {"by": "session"}).clusters
    assert whole.cohesion == pytest.approx(1.0)


def test_cohesion_is_the_mean_cosine_of_the_members(store):
    store.add_many([at(i, text, session="s") for i, text in enumerate(["a b", "b c", "c d"])])
    (found,) = chosen(store, {"by": "session"}).clusters
    rows = np.stack([store.get(i).embedding for i in found.ids])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = [float(a @ b) for a, b in combinations(rows, 2)]
    taken = store._snapshot().take(np.array(found.addresses, np.uint64), ["id"])
    assert found == Found(
        ids=tuple(taken["id"].to_pylist()),
        addresses=found.addresses,
        cohesion=pytest.approx(np.mean(cosines), abs=1e-5),
    )


def test_memories_that_differ_in_a_fact_are_kept_apart(store):
    store.add_many(
        [
            at(i, text)
            for i, text in enumerate(["paid 5 for tea", "paid 6 for tea", "paid five for tea"])
        ]
    )
    loose = {"min_similarity": 0.1}
    assert texts(store, chosen(store, loose)) == [["paid 5 for tea", "paid five for tea"]]
    (all_three,) = chosen(store, {**loose, "distinct": False}).clusters
    assert len(all_three.ids) == 3


@pytest.mark.parametrize("method", ["greedy", "components", "average"])
def test_bins_of_few_vectors_change_nothing(store, method, monkeypatch):
    store.add_many([at(i, f"words {i % 7}", user=f"u{i % 5}") for i in range(200)])
    options = {"method": method, "min_similarity": 0.95}
    whole = chosen(store, options)
    assert len(whole.clusters) >= 5
    monkeypatch.setattr(members, "_BIN", 1)
    assert chosen(store, options) == whole
    windows = {"by": "window", "window": timedelta(minutes=9)}
    cut = chosen(store, windows)
    monkeypatch.undo()
    assert len(cut.clusters) > 20
    assert chosen(store, windows) == cut


def test_vectors_and_texts_are_read_of_the_rows_that_are_there(store, monkeypatch):
    """A few at a time, after deletes, and in any order of times."""
    ids = store.add_many([at(-i, f"words {i % 7}", user=f"u{i % 20}") for i in range(400)]).ids
    store.delete(ids[::17])
    monkeypatch.setattr(members, "_BATCH", 7)
    found = chosen(store, {"min_similarity": 0.95, "across": ("user",), "max_size": 400})
    assert found.considered == 400 - len(ids[::17])
    left = [i for i in range(400) if i % 17]
    assert sorted(sorted(cluster.ids) for cluster in found.clusters) == sorted(
        sorted(ids[i] for i in left if i % 7 == word) for word in range(7)
    )


@pytest.mark.slow
def test_a_large_group_is_compared_within_the_partitions_of_the_index(tmp_path, monkeypatch):
    """24,000 rows, 1,000 of them twice: blocks find the pairs that all rows find."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((23_000, 24)).astype(np.float32)
    first = (
        3 * rng.standard_normal((60, 24)).astype(np.float32)[rng.integers(0, 60, 23_000)] + first
    )
    twice = first[:1_000] + 0.02 * rng.standard_normal((1_000, 24)).astype(np.float32)
    rows = np.vstack([first, twice]).astype(np.float32)
    embedder = FunctionEmbedder(
        lambda t: np.ones((len(t), 24), np.float32), name="ones", dimension=24
    )
    store = MemoryStore.open(tmp_path / "large", embedder=embedder)
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 24)
    ids = store.add_many(
        pa.table({"content": [f"text {i}" for i in range(24_000)], EMBEDDING: column})
    ).ids
    store.build_index(partitions=32)
    assert len(store._snapshot().centroids()) == 32
    options = {"min_similarity": 0.995, "distinct": False, "max_size": 2}
    blocked = {found.ids for found in chosen(store, options).clusters}
    wanted = {tuple(sorted((ids[i], ids[23_000 + i]))) for i in range(1_000)}
    assert len({tuple(sorted(pair)) for pair in blocked} & wanted) >= 995
