"""Exact search in bulk against brute force, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_kit import clustered

from lance_memory import InvalidInputError
from lance_memory.index import IvfPqSpec, TopK, near, pick, topk
from lance_memory.record.unit import unit

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def cosines(queries, rows):
    q, r = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, rows))
    return q.astype(float) @ r.astype(float).T


def top_k(queries, rows, k, **options):
    """The best of all rows, seen at once."""
    search = TopK(queries, k, **options)
    search.see(np.arange(len(rows)), rows)
    return search.found()


def listed(graph, k):
    """Cosines and numbers of each row's neighbours, [n, k]; -inf and -1 where there is none."""
    lengths = np.diff(graph.offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(owner)) - np.repeat(graph.offsets[:-1], lengths)
    similarity = np.full((len(lengths), k), -np.inf, np.float32)
    index = np.full((len(lengths), k), -1)
    similarity[owner, place], index[owner, place] = graph.similarity, graph.index
    return similarity, index


@pytest.mark.parametrize("device", DEVICES)
def test_the_best_of_all_are_found_across_blocks(device):
    """9,000 rows and 1,100 queries are two blocks of each on the CPU."""
    rows, queries = clustered(9_000, seed=1, lengths=True), clustered(1_100, seed=2, lengths=True)
    similarity, index = top_k(queries, rows, 10, device=device)
    scores = cosines(queries, rows)
    expected = -np.sort(-scores, axis=1)[:, :10]
    assert (similarity.dtype, index.dtype) == (np.float32, np.int64)
    assert np.allclose(similarity, expected, atol=1e-5)
    assert np.allclose(np.take_along_axis(scores, index, axis=1), similarity, atol=1e-5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    m=st.integers(0, 20),
    n=st.integers(0, 40),
    k=st.integers(1, 50),
    seed=st.integers(0, 2**32 - 1),
    coarse=st.booleans(),
)
def test_top_k_is_the_head_of_the_sorted_cosines(m, n, k, seed, coarse):
    """Also with many ties, more wanted than there are, and nothing to search."""
    rng = np.random.default_rng(seed)
    queries, rows = (rng.standard_normal((c, 4)).astype(np.float32) for c in (m, n))
    if coarse:
        queries, rows = (np.round(x) + np.float32(0.25) for x in (queries, rows))
    similarity, index = top_k(queries, rows, k, device="cpu")
    assert similarity.shape == index.shape == (m, k)
    assert (index[:, n:] == -1).all()
    assert np.isneginf(similarity[:, n:]).all()
    similarity, index = similarity[:, :n], index[:, :n]
    scores = cosines(queries, rows)
    assert np.allclose(similarity, -np.sort(-scores, axis=1)[:, :k], atol=1e-5)
    assert np.allclose(np.take_along_axis(scores, index, axis=1), similarity, atol=1e-5)
    assert all(len(set(line)) == len(line) for line in index.tolist())


def stream_with(library, queries, k, floor=-np.inf):
    """A search as on the CPU, but with this library: CUDA's one runs on torch's CPU, too."""
    search = topk.TopK(queries, k, device="cpu")
    above = np.nextafter(np.float32(floor), np.float32(-np.inf))
    search._arithmetic, search._blocks = library, [library.search(unit(queries), k, above)]
    return search


@pytest.mark.parametrize("library", [topk._Numpy(), topk._Torch("cpu")], ids=["numpy", "torch"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=6),
    k=st.integers(1, 400),
    coarse=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_seen_in_blocks_are_ranked_as_all_at_once(library, cuts, k, coarse, seed):
    """Also where blocks are empty, rows tie, more are wanted than there are, some are zero."""
    rng = np.random.default_rng(seed)
    queries, rows = (rng.standard_normal((c, 4)).astype(np.float32) for c in (20, 300))
    rows = np.round(rows) if coarse else rows
    rows[::7] = 0
    ids = np.sort(rng.integers(2**62, size=300))
    search = stream_with(library, queries, k)
    for part in np.split(np.arange(300), sorted(cuts)):
        search.see(ids[part], rows[part])
    similarity, found = search.found()
    there = np.flatnonzero(rows.any(axis=1))
    scores = cosines(queries, rows[there])
    best = -np.sort(-scores, axis=1)[:, :k]
    size = best.shape[1]
    assert np.allclose(similarity[:, :size], best, atol=1e-5)
    places = np.searchsorted(ids[there], found[:, :size])
    assert np.array_equal(ids[there][places], found[:, :size])
    assert np.allclose(np.take_along_axis(scores, places, axis=1), best, atol=1e-5)
    assert all(len(set(line)) == size for line in places.tolist())
    assert (found[:, size:] == -1).all()
    assert np.isneginf(similarity[:, size:]).all()


@pytest.mark.parametrize("library", [topk._Numpy(), topk._Torch("cpu")], ids=["numpy", "torch"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    k=st.integers(1, 40),
    floor=st.sampled_from([-1.0, 0.0, 0.6, 0.9, 1.0]),
    coarse=st.booleans(),
    guarded=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_below_the_floor_or_not_allowed_are_none(library, k, floor, coarse, guarded, seed):
    rng = np.random.default_rng(seed)
    queries, rows = (rng.standard_normal((c, 3)).astype(np.float32) for c in (15, 120))
    rows = np.round(rows) + np.float32(0.25) if coarse else rows
    may = rng.random((15, 120)) < 0.5 if guarded else np.ones((15, 120), bool)
    search = stream_with(library, queries, k, floor)
    for part in np.split(np.arange(120), [50, 90]):
        search.see(part, rows[part], allowed=may[:, part] if guarded else None)
    similarity, found = search.found()
    scores = cosines(queries, rows)
    for line, ids, values, allowed in zip(scores, found, similarity, may, strict=True):
        ids, values = ids[ids >= 0], values[ids >= 0]
        surely = np.count_nonzero(allowed & (line >= floor + 1e-5))
        perhaps = np.count_nonzero(allowed & (line >= floor - 1e-5))
        assert min(surely, k) <= len(ids) <= min(perhaps, k)
        assert allowed[ids].all()
        best = -np.sort(-line[allowed])[: len(ids)]
        assert np.allclose(values, best, atol=1e-5)
        assert np.allclose(line[ids], values, atol=1e-5)


def test_many_good_rows_are_merged_in_parts():
    """All 9,000 rows reach the floor for each of 400 queries: more than is merged at once."""
    rows = unit(np.abs(np.random.default_rng(0).standard_normal((9_000, 8))).astype(np.float32))
    search = topk.TopK(rows[:400], 20, floor=0.0, device="cpu")
    search.see(np.arange(9_000), rows)
    similarity, found = search.found()
    scores = cosines(rows[:400], rows)
    assert np.allclose(similarity, -np.sort(-scores, axis=1)[:, :20], atol=1e-5)
    assert np.allclose(np.take_along_axis(scores, found, axis=1), similarity, atol=1e-5)


def test_of_equal_rows_those_seen_first_are_kept():
    """So a page of a batch does not repeat what the page before it had."""
    rows = np.repeat(np.eye(2, 4, dtype=np.float32), 6_000, axis=0)
    assert top_k(rows[[0, -1]], rows, 7, device="cpu")[1].tolist() == [
        list(range(7)),
        list(range(6_000, 6_007)),
    ]


def test_a_query_or_a_row_without_a_direction_has_no_neighbours():
    rows = np.array([[1, 0], [0, 0], [0.8, 0.6]], np.float32)
    similarity, index = top_k(rows, rows, 3)
    assert index.tolist() == [[0, 2, -1], [-1, -1, -1], [2, 0, -1]]
    assert np.isneginf(similarity[1]).all()
    blocks = np.array([0, 1, 1])
    for graph in (near(rows, 2, floor=-1), near(rows, 2, floor=-1, blocks=blocks)):
        assert listed(graph, 2)[1].tolist() == [[2, -1], [-1, -1], [0, -1]]


def test_all_at_once_is_one_by_one():
    rows, queries = clustered(500, seed=3), clustered(20, seed=4)
    _, together = top_k(queries, rows, 7)
    alone = np.concatenate([top_k(query[None], rows, 7)[1] for query in queries])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize("device", DEVICES)
def test_a_row_is_not_its_own_neighbour_and_the_floor_holds(device):
    rows = clustered(2_000, seed=5)
    similarity, index = listed(near(rows, 5, floor=0.8, device=device), 5)
    scores = cosines(rows, rows)
    np.fill_diagonal(scores, -1)
    expected = -np.sort(-scores, axis=1)[:, :5]
    expected[expected < 0.8] = -np.inf
    assert np.allclose(similarity, expected, atol=1e-5)
    assert np.array_equal(index == -1, np.isneginf(similarity))
    assert not (index == np.arange(2_000)[:, None]).any()


def neighbours_of(graph, row):
    start, end = graph.offsets[row : row + 2]
    return dict(zip(graph.index[start:end].tolist(), graph.similarity[start:end], strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("blocked", [False, True])
def test_a_graph_holds_the_nearest_of_the_members_that_are_allowed(device, blocked):
    rows = clustered(900, seed=8)
    members = np.sort(np.random.default_rng(1).choice(900, 600, replace=False))
    colour = np.arange(900) % 3
    graph = near(
        rows,
        6,
        floor=0.6,
        members=members,
        blocks=np.arange(900) % 8 if blocked else None,  # 8 blocks: each is compared with all
        allowed=lambda a, b: colour[a][:, None] == colour[b],
        device=device,
    )
    scores = cosines(rows, rows)
    np.fill_diagonal(scores, -1)
    scores[colour[:, None] != colour] = -1
    scores[~np.isin(np.arange(900), members)] = -1
    scores[:, ~np.isin(np.arange(900), members)] = -1
    for row in range(900):
        found = neighbours_of(graph, row)
        best = [x for x in -np.sort(-scores[row])[:6] if x >= 0.6]
        assert np.allclose(list(found.values()), best, atol=1e-5)
        assert np.allclose(scores[row][list(found)], best, atol=1e-5)
        assert graph.full[row] == (len(found) == 6)


def test_a_graph_that_is_told_to_stop_has_what_it_found_by_then():
    """The rows are looked at 8,192 at a time."""
    rows = np.repeat(np.random.default_rng(0).standard_normal((5_000, 32)), 2, axis=0)
    asked = iter([False, True])
    graph = near(rows.astype(np.float32), 1, floor=0.9999, stop=lambda: next(asked))
    assert np.diff(graph.offsets).tolist() == [1] * 8_192 + [0] * 1_808


def test_equal_rows_are_each_others_neighbours():
    rows = np.repeat(clustered(3, seed=6), 4, axis=0)
    similarity, index = listed(near(rows, 3, floor=0.999), 3)
    groups = [sorted([i, *line]) for i, line in enumerate(index.tolist())]
    assert groups == [[0, 1, 2, 3]] * 4 + [[4, 5, 6, 7]] * 4 + [[8, 9, 10, 11]] * 4
    assert np.allclose(similarity, 1, atol=1e-5)


def test_blocks_of_near_rows_find_what_all_rows_find():
    rows = clustered(4_000, seed=7)
    trainer = pick("torch:cpu").trainer
    blocks, _ = trainer.encode(trainer.train(rows, IvfPqSpec(partitions=24, sub_vectors=1)), rows)
    whole = near(rows, 10, floor=0.5)
    blocked = near(rows, 10, floor=0.5, blocks=blocks)
    wanted = [set(neighbours_of(whole, row)) for row in range(4_000)]
    shares = [
        len(some & neighbours_of(blocked, row).keys()) / len(some)
        for row, some in enumerate(wanted)
        if some
    ]
    assert np.mean(shares) >= 0.95


def test_few_rows_have_few_neighbours():
    nothing = near(np.empty((0, 4), np.float32), 3, floor=0)
    assert (nothing.offsets.tolist(), nothing.full.tolist()) == ([0], [])
    alone = near(np.ones((1, 4), np.float32), 3, floor=0)
    assert (alone.offsets.tolist(), alone.full.tolist()) == ([0, 0], [False])


@pytest.mark.parametrize(
    "call",
    [
        lambda r: top_k(r, r, 0),
        lambda r: top_k(r[0], r, 1),
        lambda r: near(r, 0, floor=0),
        lambda r: near(r[0], 1, floor=0),
        lambda r: near(r, 1, floor=0, blocks=np.zeros(2, int)),
        lambda r: top_k(r, r, 1, device="tpu"),
    ],
)
def test_shapes_and_devices_that_do_not_fit_are_refused(call):
    with pytest.raises(InvalidInputError, match=r"it takes|there are"):
        call(np.ones((5, 4), np.float32))
