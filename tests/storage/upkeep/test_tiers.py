from __future__ import annotations

from functools import partial
from math import log2

from hypothesis import given
from hypothesis import strategies as st

from lance_memory.storage.upkeep.tiers import Fragment, chosen, tail

SIZES = st.lists(st.integers(1, 10_000), max_size=20)


def tended(batches, **options):
    """The parts that are left when each batch is followed by a merge, and the rows written."""
    parts, written = [], 0
    for rows in batches:
        parts.append(rows)
        if count := tail(parts, **{"most": None, **options}):
            parts = [*parts[:-count], sum(parts[-count:])]
            written += parts[-1]
    return parts, written


def test_rows_are_written_again_a_logarithmic_number_of_times():
    for batches in (10, 100, 1_000):
        parts, written = tended([32] * batches)
        assert sum(parts) == 32 * batches
        assert len(parts) <= log2(batches) + 1
        assert written <= 32 * batches * (log2(batches) + 1)


def test_parts_up_to_the_floor_are_always_one():
    assert tended([32] * 20, floor=1_000) == ([640], sum(32 * n for n in range(2, 21)))


@given(SIZES, st.integers(1, 50_000))
def test_no_merged_part_is_larger_than_allowed(sizes, most):
    count = tail(sizes, most=most)
    assert count == 0 or 2 <= count <= len(sizes)
    assert sum(sizes[len(sizes) - count :]) <= most or count == 0


def test_parts_that_grow_many_are_merged_whatever_their_size():
    falling = [2**n for n in range(20, 0, -1)]
    assert tail(falling, most=None) == 13
    assert len(tended(falling)[0]) <= 8


def fragment(number, rows, deleted=0, covered_by="a"):
    return Fragment(id=number, rows=rows, deleted=deleted, covered_by=covered_by)


def test_fragments_of_different_segments_are_not_merged():
    old, new = [fragment(i, 1) for i in range(3)], [fragment(i, 1, 0, "b") for i in range(3, 6)]
    assert chosen([*old, *new], most=100, spared=None) == {0, 1, 2, 3, 4, 5}
    assert chosen([*old, *new[:1]], most=100, spared=None) == {0, 1, 2}


def test_the_lowest_fragment_is_spared_unless_it_has_lost_rows():
    """Every change set names it, so writing it again would disturb every add."""
    fragments = [fragment(i, 1) for i in range(4)]
    assert chosen(fragments, most=100, spared=0) == {1, 2, 3}
    thinned = [fragment(0, 8, deleted=2), *fragments[1:]]
    assert chosen(thinned, most=100, spared=0) == {0, 1, 2, 3}


def test_thinned_fragments_are_written_again_unless_they_are_too_large():
    full, thin = fragment(1, 1_000, deleted=100), fragment(2, 890, deleted=110)
    assert chosen([fragment(0, 9_999), full, thin], most=895, spared=0) == {2}
    assert chosen([fragment(0, 9_999), full, thin], most=880, spared=0) == set()


def test_few_parts_are_left_as_far_as_they_may_be_merged():
    at_rest = partial(tail, [4_229, 771], floor=4_096, parts=1)
    assert [at_rest(most=5_000), at_rest(most=4_999)] == [2, 0]
    assert tail([4_229, 771], floor=4_096, most=5_000) == 0
