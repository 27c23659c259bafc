from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.curate.cluster import cohesion, grouped, near_duplicates, unit, windows

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def vectors(seed, n, d=4, distinct=None):
    """Unit float32 [n, d]; drawn from `distinct` directions with a little noise, if given."""
    random = np.random.default_rng(seed)
    if distinct is None:
        return unit(random.standard_normal((n, d)).astype(np.float32))
    centres = random.standard_normal((distinct, d))
    noisy = centres[random.integers(0, distinct, n)] + 0.01 * random.standard_normal((n, d))
    return unit(noisy.astype(np.float32))


SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(0, 40)
FLOORS = st.sampled_from([-1.0, 0.0, 0.5, 0.85, 0.95, 1.0])


@settings(max_examples=100, deadline=None)
@given(SEEDS, SIZES, FLOORS, st.integers(2, 6))
def test_clusters_are_apart_bounded_near_their_centre_and_in_order(seed, n, floor, max_size):
    rows = vectors(seed, n)
    clusters = near_duplicates(rows, floor=floor, max_size=max_size)
    members = [p for cluster in clusters for p in cluster]
    assert len(set(members)) == len(members)
    assert set(members) <= set(range(n))
    assert all(2 <= len(cluster) <= max_size for cluster in clusters)
    assert all(cluster == sorted(cluster) for cluster in clusters)
    assert clusters == sorted(clusters)
    cosines = rows @ rows.T
    for cluster in clusters:
        among = cosines[np.ix_(cluster, cluster)]
        assert (among >= floor - 1e-5).all(axis=1).any(), "no member is near to all others"
    assert near_duplicates(rows, floor=floor, max_size=max_size) == clusters


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, 30))
def test_another_order_gives_the_same_partition(seed, n):
    """Groups far apart and of different sizes, so that no tie decides."""
    sizes = [s for s in (2, 3, 5, 7) if s <= n]
    rows = np.vstack(
        [np.tile(row, (s, 1)) for row, s in zip(np.eye(4, dtype=np.float32), sizes, strict=False)]
        or [np.empty((0, 4), np.float32)]
    )
    order = np.random.default_rng(seed).permutation(len(rows))
    plain = near_duplicates(rows, floor=0.9, max_size=20)
    mixed = near_duplicates(rows[order], floor=0.9, max_size=20)
    assert sorted(sorted(order[c].tolist()) for c in mixed) == plain


def test_equal_vectors_are_one_cluster_up_to_its_size():
    rows = np.tile(unit(np.ones((1, 3), dtype=np.float32)), (7, 1))
    assert near_duplicates(rows, floor=1.0, max_size=20) == [[0, 1, 2, 3, 4, 5, 6]]
    assert near_duplicates(rows, floor=1.0, max_size=3) == [[0, 1, 2], [3, 4, 5]]


def test_the_nearest_stay_together_when_there_is_no_room_for_all():
    angles = np.array([0.0, 0.3, 0.1, 0.2])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert near_duplicates(rows, floor=0.9, max_size=2) == [[0, 2], [1, 3]]


def test_more_rows_than_one_block_are_clustered_like_few():
    rows = vectors(3, 2_300, d=8, distinct=40)
    clusters = near_duplicates(rows, floor=0.95, max_size=2_300)
    cosines = rows @ rows.T
    assert sum(map(len, clusters)) == 2_300
    assert all((cosines[np.ix_(c, c)] > 0.9).all() for c in clusters)


def test_nothing_and_one_have_no_near_duplicates():
    assert near_duplicates(vectors(0, 0), floor=0.5, max_size=5) == []
    assert near_duplicates(vectors(0, 1), floor=-1.0, max_size=5) == []


def test_rows_of_zeros_are_near_to_nothing():
    rows = unit(np.zeros((3, 4), dtype=np.float32))
    assert rows.tolist() == [[0.0] * 4] * 3
    assert near_duplicates(rows, floor=0.5, max_size=5) == []


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 30))
def test_cohesion_is_the_mean_over_all_pairs(seed, n):
    rows = vectors(seed, n)
    pairs = [float(rows[i] @ rows[j]) for i in range(n) for j in range(i)]
    assert cohesion(rows) == pytest.approx(np.mean(pairs), abs=1e-5)


def test_one_row_coheres_with_itself():
    assert (cohesion(vectors(0, 1)), cohesion(vectors(0, 0))) == (1.0, 1.0)


def test_unit_rows_have_length_one():
    rows = unit(np.array([[3.0, 4.0], [0.0, 0.0], [1e-20, 0.0]], dtype=np.float32))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [1, 0]], rtol=1e-4, atol=1e-6)


@given(st.lists(st.sampled_from("abc")))
def test_groups_part_all_positions_in_order_of_first_appearance(labels):
    groups = grouped(labels)
    assert sorted(p for g in groups for p in g) == list(range(len(labels)))
    assert [labels[g[0]] for g in groups] == list(dict.fromkeys(labels))
    assert all(len({labels[p] for p in g}) == 1 and g == sorted(g) for g in groups)


@given(st.lists(st.integers(0, 10_000)), st.integers(1, 500))
def test_windows_part_all_positions_by_time(seconds, length):
    times = [NOON + timedelta(seconds=s) for s in seconds]
    found = windows(times, timedelta(seconds=length))
    assert sorted(p for w in found for p in w) == list(range(len(times)))
    for window in found:
        inside = [times[p] for p in window]
        assert inside == sorted(inside)
        assert max(inside) - min(inside) < timedelta(seconds=length)
    starts = [min(times[p] for p in w) for w in found]
    assert starts == sorted(starts)
    if times:
        assert {(t - min(times)) // timedelta(seconds=length) for t in times} == {
            (s - min(times)) // timedelta(seconds=length) for s in starts
        }


def test_the_first_window_opens_at_the_earliest_time_and_ends_before_the_next():
    times = [NOON + timedelta(hours=h) for h in (0, 23, 24, 47.999, 48)]
    assert windows(times, timedelta(days=1)) == [[0, 1], [2, 3], [4]]
    assert windows([], timedelta(days=1)) == []
