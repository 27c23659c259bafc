"""IVF_PQ trained with torch: matrix products, argmin and index_add, on the CPU or on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.index.device import cuda_answers, torch_on
from lance_memory.index.encode import Codes, check_rows, prepared
from lance_memory.index.model import CODES, IvfPqModel, IvfPqSpec, Metric

__all__ = ["TorchTrainer"]

_BLOCK = {"cpu": 8_192, "cuda": 65_536}
"""Rows scored at a time. 65,536 x 1,024 centroids are 268 MB of scores."""

_ROWS_PER_CODE = 256
"""Of the sample, so many rows for each code train the product quantiser (as in Lance)."""

Tensor = Any
"""torch is no dependency, so its types are not at hand."""


class TorchTrainer:
    """k-means by Lloyd from random rows; a cell that runs empty starts again at a far row.

    The same seed gives the same model on the same device. Sums are float32, so models of two
    devices differ in their last digits, and after some steps in their choices: compare recall.
    """

    def __init__(self, device: str | None = None) -> None:
        """Work on `device`, "cpu" or "cuda"; by default CUDA where a device answers.

        Raises:
            MissingExtraError: torch is not installed.
            InvalidInputError: no such device answers.
        """
        self.device = device or ("cuda" if cuda_answers() else "cpu")
        self._torch = torch_on(self.device)

    @property
    def name(self) -> str:
        return f"torch:{self.device}"

    def train(self, sample: NDArray[np.float32], spec: IvfPqSpec) -> IvfPqModel:
        """See `Trainer.train`."""
        spec.check(sample)
        torch = self._torch
        random = torch.Generator().manual_seed(spec.seed)  # on the CPU: the same for each device
        rows = self._tensor(prepared(sample, spec.metric))
        centroids = self._k_means(rows, spec.partitions, spec.iterations, random)
        order = torch.randperm(len(rows), generator=random)[: _ROWS_PER_CODE * CODES]
        rows = rows[order.to(rows.device)]
        if spec.metric.residual:
            rows = rows - centroids[self._nearest(rows, centroids, spec.metric)]
        parts = rows.reshape(len(rows), spec.sub_vectors, -1)
        books = [
            self._k_means(parts[:, i].contiguous(), CODES, spec.iterations, random)
            for i in range(spec.sub_vectors)
        ]
        return IvfPqModel(
            spec=spec, centroids=_numpy(centroids), codebook=_numpy(torch.stack(books))
        ).validate()

    def encode(self, model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
        """See `Trainer.encode`; equal to `encode.encode` but for ties."""
        check_rows(model, rows)
        partitions = np.empty(len(rows), np.uint32)
        codes = np.empty((len(rows), model.spec.sub_vectors), np.uint8)
        centroids, books = self._tensor(model.centroids), self._tensor(model.codebook)
        step = _BLOCK[self.device]
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            ready = self._tensor(prepared(rows[block], model.spec.metric))
            found, coded = self._encoded(ready, centroids, books, model.spec)
            partitions[block], codes[block] = _numpy(found), _numpy(coded)
        return partitions, codes

    def _encoded(
        self, rows: Tensor, centroids: Tensor, books: Tensor, spec: IvfPqSpec
    ) -> tuple[Tensor, Tensor]:
        found = self._nearest(rows, centroids, spec.metric)
        coded = rows - centroids[found] if spec.metric.residual else rows
        parts = coded.reshape(len(rows), spec.sub_vectors, -1)
        codes = [
            self._nearest(parts[:, i].contiguous(), book, Metric.L2) for i, book in enumerate(books)
        ]
        return found, self._torch.stack(codes, dim=1).to(self._torch.uint8)

    def _k_means(self, rows: Tensor, count: int, iterations: int, random: Any) -> Tensor:
        """`count` centroids, float32 [count, w]: the means of the rows nearest to each."""
        torch = self._torch
        start = torch.randperm(len(rows), generator=random)[:count]
        centroids = rows[start.to(rows.device)].clone()
        before = None
        for _ in range(iterations):
            found = self._nearest(rows, centroids, Metric.L2)
            if before is not None and bool((found == before).all()):
                break
            before = found
            centroids = self._means(rows, found, centroids)
        return centroids

    def _means(self, rows: Tensor, found: Tensor, centroids: Tensor) -> Tensor:
        torch = self._torch
        sums = torch.zeros_like(centroids).index_add_(0, found, rows)
        sizes = torch.bincount(found, minlength=len(centroids))
        means = sums / sizes.clamp(min=1)[:, None]
        empty = (sizes == 0).nonzero().flatten()
        if len(empty):
            far = ((rows - centroids[found]) ** 2).sum(1).topk(len(empty)).indices
            means[empty] = rows[far]
        return means

    def _nearest(self, rows: Tensor, centroids: Tensor, metric: Metric) -> Tensor:
        """The number of each row's centroid, int64 [n], in blocks of bounded memory."""
        torch = self._torch
        step = _BLOCK[self.device]
        turned = centroids.T.contiguous()
        offsets = None if metric is Metric.DOT else (centroids**2).sum(1)
        blocks = []
        for start in range(0, len(rows), step):
            scores = rows[start : start + step] @ turned
            # |r - c|² without |r|²; for dot the largest product is the smallest negative one
            scores = -scores if offsets is None else torch.add(offsets, scores, alpha=-2)
            blocks.append(self._argmin(scores))
        return torch.cat(blocks)

    def _argmin(self, scores: Tensor) -> Tensor:
        if self.device == "cpu":  # torch's own is 6 times slower there than numpy's
            return self._torch.from_numpy(scores.numpy().argmin(axis=1))
        return scores.argmin(dim=1)

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _numpy(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.cpu().numpy()
    return array
