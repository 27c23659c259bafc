"""From rows to partitions and codes, as Lance's own encoder does it: float32, on the CPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError
from lance_memory.index.model import IvfPqModel, Metric

__all__ = ["Codes", "encode", "prepared"]

Codes = tuple[NDArray[np.uint32], NDArray[np.uint8]]
"""Partition uint32 [n], and code of each sub-vector uint8 [n, M]."""

_BLOCK = 8_192
"""Rows at a time: the scores of a block stay in the cache's reach, 8 MB for 256 codes."""


def prepared(rows: NDArray[np.float32], metric: Metric) -> NDArray[np.float32]:
    """The rows as Lance sees them: of length 1 for cosine, else as they are."""
    if metric is not Metric.COSINE:
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = rows / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def encode(model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
    """Each row's partition, and the nearest code of each of its sub-vectors.

    For l2 and cosine the partition is the nearest centroid and `row - centroid` is coded; for dot
    it is the centroid of the largest product, and the row itself is coded. Ties go to the lower
    number.

    Args:
        model: what to encode with.
        rows: float32 [n, d].

    Raises:
        InvalidInputError: rows of another shape or dtype.
    """
    check_rows(model, rows)
    partitions = np.empty(len(rows), np.uint32)
    codes = np.empty((len(rows), model.spec.sub_vectors), np.uint8)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        partitions[block], codes[block] = _encoded(model, rows[block])
    return partitions, codes


def check_rows(model: IvfPqModel, rows: NDArray[np.float32]) -> None:
    """Refuse rows that the model is not for."""
    if rows.ndim != 2 or rows.shape[1] != model.dimension or rows.dtype != np.float32:
        raise InvalidInputError(
            f"rows are {rows.dtype} {rows.shape}; this model encodes float32 [n, {model.dimension}]"
        )


def _encoded(model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
    spec = model.spec
    ready = prepared(rows, spec.metric)
    partitions = _best(ready, model.centroids, spec.metric)
    coded = ready - model.centroids[partitions] if spec.metric.residual else ready
    parts = coded.reshape(len(rows), spec.sub_vectors, -1)
    codes = np.empty((len(rows), spec.sub_vectors), np.uint8)
    for i, book in enumerate(model.codebook):
        codes[:, i] = _best(np.ascontiguousarray(parts[:, i]), book, Metric.L2)
    return partitions.astype(np.uint32), codes


def _best(
    rows: NDArray[np.float32], centroids: NDArray[np.float32], metric: Metric
) -> NDArray[np.intp]:
    """The centroid that is nearest to each row: |r - c|² without |r|², or the largest product."""
    scores: NDArray[np.float32] = rows @ centroids.T
    if metric is not Metric.DOT:
        scores *= -2
        scores += np.einsum("kd,kd->k", centroids, centroids)
        nearest: NDArray[np.intp] = np.argmin(scores, axis=1)
        return nearest
    largest: NDArray[np.intp] = np.argmax(scores, axis=1)
    return largest
