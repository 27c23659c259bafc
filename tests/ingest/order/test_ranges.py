"""Ranges do what sets of numbers do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lance_memory.ingest.ranges import minus, ranges_of, size, up_to

NUMBERS = st.sets(st.integers(0, 40))


def ranges(numbers):
    return ranges_of((number, number) for number in numbers)


def numbers(of):
    return {number for first, last in of for number in range(first, last + 1)}


@given(NUMBERS, NUMBERS, st.integers(0, 40))
def test_ranges_are_sets(one, other, start):
    a, b = ranges(one), ranges(other)
    assert numbers(a) == one
    assert size(a) == len(one)
    assert ranges_of([*a, *b]) == ranges(one | other)
    assert minus(a, b) == ranges(one - other)
    assert up_to(a, start) == next(n for n in range(start - 1, 50) if n + 1 not in one)
