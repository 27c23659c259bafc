"""The one protocol of all trainers, and which of them is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_memory.errors import InvalidInputError, LanceMemoryError
from lance_memory.index.encode import Codes
from lance_memory.index.model import IvfPqModel, IvfPqSpec

__all__ = ["TRAINERS", "Choice", "Trainer", "pick"]


class Trainer(Protocol):
    """Trains an IVF_PQ and encodes rows with it; numpy in, numpy out."""

    @property
    def name(self) -> str:
        """What it is picked by, such as "torch:cuda"."""

    def train(self, sample: NDArray[np.float32], spec: IvfPqSpec) -> IvfPqModel:
        """A model of `sample`, float32 [n, d], not normalised.

        Raises:
            InvalidInputError: the sample is too small or its dimension does not fit, or the
                trainer has no such metric.
        """

    def encode(self, model: IvfPqModel, rows: NDArray[np.float32]) -> Codes:
        """Partition uint32 [n] and codes uint8 [n, M] of `rows`, float32 [n, d]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The trainer that was taken, and why."""

    trainer: Trainer
    reason: str

    @property
    def on_gpu(self) -> bool:
        """Whether it trains on a GPU."""
        return self.trainer.name in _ON_GPU


def pick(name: str | None = None) -> Choice:
    """The trainer to use.

    The named one, or none: it is never changed silently. With no name, the best that works here:
    cuVS (importable, a device answers, and a tiny build succeeds), then torch on CUDA, then
    Lance's own k-means on the CPU.

    Args:
        name: one of `TRAINERS`; "torch" is CUDA where a device answers, else the CPU.

    Raises:
        MissingExtraError: the named one is not installed.
        InvalidInputError: there is none of that name, or no device that it needs.
    """
    if name is not None:
        if name not in TRAINERS:
            raise InvalidInputError(f"trainer={name!r}; there are: {', '.join(TRAINERS)}")
        return Choice(trainer=TRAINERS[name](), reason="it was asked for")
    refusals = []
    for candidate in _ON_GPU:
        try:
            return Choice(trainer=TRAINERS[candidate](), reason=f"{candidate} works here")
        except LanceMemoryError as error:
            refusals.append(f"{candidate}: {str(error).partition(';')[0]}")
    return Choice(trainer=_lance(), reason=f"no GPU trainer works here: {'; '.join(refusals)}")


def _lance() -> Trainer:
    from lance_memory.index.lance_trainer import LanceTrainer

    return LanceTrainer()


def _cuvs() -> Trainer:
    from lance_memory.index.cuvs_trainer import CuvsTrainer

    return CuvsTrainer()


def _torch(device: str | None = None) -> Trainer:
    from lance_memory.index.torch_trainer import TorchTrainer

    return TorchTrainer(device)


TRAINERS: dict[str, Callable[[], Trainer]] = {
    "lance": _lance,
    "torch": _torch,
    "torch:cpu": lambda: _torch("cpu"),
    "torch:cuda": lambda: _torch("cuda"),
    "cuvs": _cuvs,
}
"""Name → what makes it, or says why it cannot be used."""

_ON_GPU = ("cuvs", "torch:cuda")
