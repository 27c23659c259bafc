"""Vectors at length one."""

from __future__ import annotations

import numpy as np
import pytest

from lance_memory.record.unit import unit

ROWS = np.array([[3, 4], [0, 0], [-1e-3, 0], [np.inf, 1], [np.nan, 1]], np.float32)


@pytest.mark.parametrize("without", [0.0, np.nan])
def test_vectors_have_length_one_or_no_direction(without):
    before = ROWS.copy()
    found = unit(ROWS, without=without)
    expected = [[0.6, 0.8], [without] * 2, [-1, 0], [without] * 2, [without] * 2]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(ROWS, before)


@pytest.mark.parametrize("dimension", [1, 64, 384, 4_096])
def test_vectors_that_have_length_one_are_not_copied(dimension):
    rows = np.random.default_rng(0).standard_normal((500, dimension)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert unit(rows) is rows
    assert unit(np.empty((0, dimension), np.float32)).shape == (0, dimension)


def test_vectors_that_are_off_by_more_than_a_cosine_may_be_are_scaled():
    """So that copies of a row reach a floor of 1."""
    rows = np.full((2, 4), 0.5, np.float32) * np.float32(1 - 2e-6)
    scaled = unit(rows)
    assert scaled is not rows
    assert (scaled @ scaled.T).min() > 1 - 1e-6
