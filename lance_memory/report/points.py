"""Embeddings as points of a plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Plane", "plane"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """Points, and how much of what was there they show.

    Attributes:
        points: float64 [n, 2].
        share: of the vectors' variance that the two axes hold, 0..1.
    """

    points: NDArray[np.float64]
    share: float


def plane(vectors: NDArray[np.float32]) -> Plane:
    """The two directions in which the vectors differ most (principal components).

    Linear and without a parameter: what is near in the picture need not be near in all dimensions,
    but what is far in it is far, and nothing is drawn apart that is not. The sign of each axis is
    that of its largest coordinate, so that the same vectors give the same picture.

    Args:
        vectors: [n, d].
    """
    n = len(vectors)
    rows = np.asarray(vectors, np.float64)
    centred = rows - rows.mean(axis=0) if n else rows
    total = float(np.square(centred).sum())
    if n < 2 or total == 0.0:
        return Plane(points=np.zeros((n, 2)), share=0.0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    found = (left * sizes)[:, :2]
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])[:2]
    points = np.zeros((n, 2))
    points[:, : found.shape[1]] = found * signs
    return Plane(points=points, share=float(np.square(sizes[:2]).sum()) / total)
