from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.curate.cluster.groups import cohesion, grouped, near_duplicates, windows
from lance_memory.curate.cluster.members import blocks_of
from lance_memory.curate.options import ClusterMethod
from lance_memory.facts.distinct import Facts
from lance_memory.index import near
from lance_memory.record.unit import unit

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


METHODS = st.sampled_from(list(ClusterMethod))


def numbered(labels):
    """Facts of rows: a number each, and none where the label is 0."""
    values = [{"number": frozenset([str(x)])} if x else {} for x in labels]
    return [Facts(values=one, negated=False) for one in values]


@settings(max_examples=150, deadline=None)
@given(SEEDS, SIZES, FLOORS, st.integers(2, 6), METHODS, st.booleans(), st.integers(0, 8))
def test_every_method_keeps_its_word(seed, n, floor, max_size, method, copied, kinds):
    """Disjoint, bounded, linked, without conflicts; and no two rows are left that might be one."""
    rows = vectors(seed, n, distinct=4) if copied else vectors(seed, n)
    random = np.random.default_rng(seed)
    if copied and n:
        rows = rows[random.integers(0, n, n)]
    labels = random.integers(0, kinds + 1, n)
    found = numbered(labels)
    clusters = near_duplicates(
        rows,
        floor=floor,
        max_size=max_size,
        method=method,
        facts=lambda at: [found[i] for i in at],
    )
    members = [p for cluster in clusters for p in cluster]
    assert len(set(members)) == len(members)
    assert all(2 <= len(cluster) <= max_size for cluster in clusters)
    assert clusters == sorted(sorted(cluster) for cluster in clusters)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -2)
    for cluster in clusters:
        assert len({int(labels[i]) for i in cluster} - {0}) <= 1
        among = cosines[np.ix_(cluster, cluster)]
        assert (among.max(axis=1) >= floor - 1e-5).all(), "a member is near no other"
        if method == ClusterMethod.AVERAGE:
            assert cohesion(rows[cluster]) >= floor - 1e-4
    left = sorted(set(range(n)) - set(members))
    for i in left:
        for j in left:
            may = labels[i] == labels[j] or not labels[i] or not labels[j]
            assert i == j or not may or cosines[i, j] < floor + 1e-5


@pytest.mark.parametrize("method", list(ClusterMethod))
def test_thousands_of_copies_of_one_text_are_all_clustered(method):
    """Each row's list of neighbours would be the same first rows."""
    rows = unit(np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32))
    rows = np.vstack([np.repeat(rows[:1], 3_000, axis=0), rows[1:]])
    clusters = near_duplicates(rows, floor=0.9, max_size=20, method=method)
    assert clusters == [list(range(i, i + 20)) for i in range(0, 3_000, 20)]
    clusters = near_duplicates(rows[:601], floor=0.9, max_size=400, method=method)
    assert sum(map(len, clusters)) == 601
    assert max(map(len, clusters)) <= 400


@pytest.mark.parametrize("method", list(ClusterMethod))
def test_a_crowd_that_is_near_without_being_equal_is_all_clustered(method):
    rows = vectors(1, 1_500, d=32, distinct=1)
    clusters = near_duplicates(rows, floor=0.9, max_size=8, method=method)
    assert 1_500 - sum(map(len, clusters)) <= 1
    assert max(map(len, clusters)) == 8


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("method", list(ClusterMethod))
def test_texts_that_differ_in_a_number_each_hide_no_pair(method, copied):
    """700 numbers, two rows of each: the nearest 40 of a row all have another number."""
    rows = vectors(2, 1_400, d=32, distinct=1)
    if copied:
        rows[:] = rows[0]
    found = numbered([1 + i % 700 for i in range(1_400)])
    clusters = near_duplicates(
        rows, floor=0.9, max_size=20, method=method, facts=lambda at: [found[i] for i in at]
    )
    assert clusters == [[i, i + 700] for i in range(700)]


def test_facts_are_asked_for_only_of_rows_that_are_near_another():
    rows = np.vstack([np.eye(6, 8, dtype=np.float32), np.eye(2, 8, dtype=np.float32)])
    asked = []

    def facts(at):
        asked.append(at.tolist())
        return numbered([1, 1, 1, 2])

    assert near_duplicates(rows, floor=0.9, max_size=5, facts=facts) == [[0, 6]]
    assert asked == [[0, 1, 6, 7]]


def chain(*angles):
    """Unit vectors in a plane, at these angles."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_components_follow_links_and_cut_the_weakest():
    rows = chain(0.0, 0.1, 0.2, 0.35, 0.45, 0.55)
    options = {"floor": np.cos(0.16), "method": "components"}
    assert near_duplicates(rows, max_size=6, **options) == [[0, 1, 2, 3, 4, 5]]
    assert near_duplicates(rows, max_size=4, **options) == [[0, 1, 2], [3, 4, 5]]
    greedy = near_duplicates(rows, max_size=6, floor=np.cos(0.16))
    assert greedy == [[0, 1, 2], [3, 4]]


def test_average_linkage_joins_down_to_the_floor():
    """0.0-0.1 and 0.3-0.4 are on average 0.3 apart, though 0.1 and 0.3 are nearer."""
    rows = chain(0.0, 0.1, 0.3, 0.4)
    means = rows[:2] @ rows[2:].T
    options = {"max_size": 4, "method": "average"}
    assert near_duplicates(rows, floor=means.mean() + 1e-4, **options) == [[0, 1], [2, 3]]
    assert near_duplicates(rows, floor=means.mean() - 1e-4, **options) == [[0, 1, 2, 3]]


def test_a_component_larger_than_a_tree_takes_is_linked_in_parts():
    rows = vectors(4, 2_600, d=16, distinct=1)
    clusters = near_duplicates(rows, floor=0.9, max_size=30, method="average")
    assert 2_600 - sum(map(len, clusters)) <= 1
    assert all(cohesion(rows[cluster]) >= 0.9 for cluster in clusters)


def test_blocks_are_cells_of_near_rows():
    """Of the pairs at or above the floor, the share that 8 of 40 blocks find."""
    random = np.random.default_rng(5)
    first = vectors(5, 3_000, d=48, distinct=60)
    again = unit(first[:600] + 0.03 * random.standard_normal((600, 48)).astype(np.float32))
    rows = np.vstack([first, again])
    blocks = blocks_of(rows, rows[random.choice(len(rows), 40, replace=False)])
    assert len(set(blocks.tolist())) == 40
    whole, blocked = (pairs_above(rows, 0.97, given) for given in (None, blocks))
    assert blocked <= whole
    assert len(blocked) / len(whole) >= 0.98
    assert len(set(blocks_of(rows, None).tolist())) == 2


def pairs_above(rows, floor, blocks):
    graph = near(rows, 200, floor=floor, blocks=blocks)
    owner = np.repeat(np.arange(len(rows)), np.diff(graph.offsets))
    return set(zip(owner.tolist(), graph.index.tolist(), strict=True))


def test_when_told_to_stop_what_was_found_is_the_answer():
    rows = np.vstack([np.eye(4, dtype=np.float32)] * 2)
    assert near_duplicates(rows, floor=0.9, max_size=2, stop=lambda: True) == []


def test_nothing_and_one_have_no_near_duplicates():
    assert near_duplicates(vectors(0, 0), floor=0.5, max_size=5) == []
    assert near_duplicates(vectors(0, 1), floor=-1.0, max_size=5) == []


def test_rows_of_zeros_are_near_to_nothing():
    rows = np.zeros((3, 4), dtype=np.float32)
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
