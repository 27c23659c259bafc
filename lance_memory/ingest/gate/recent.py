"""A user's late inputs as the ledger keeps them: vectors and hashes, no text, for some days."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_memory.ingest.gate.days import day_key, outdated
from lance_memory.ingest.gate.layer import owned
from lance_memory.ingest.gate.salient import Salient
from lance_memory.ledger import Ledger
from lance_memory.record.times import parse_instant

__all__ = ["Input", "Recent", "count_inputs", "forget_inputs"]

SPACE: Final = "recent"
DUE: Final = "recent.due"
"""Which user's inputs are to be looked at when which day is too old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input.

    Attributes:
        vector: float32 [d], of unit length.
        says: what of it is not to be taken for another's.
        job: which job brought it.
        at: when.
    """

    vector: NDArray[np.float32] = field(compare=False)
    says: Salient
    job: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The late inputs of users, in a ledger.

    Attributes:
        ledger: where.
        most: how many are kept of a user.
        kept: for how long.
    """

    ledger: Ledger
    most: int
    kept: timedelta

    def of(self, owner: str, *, now: datetime) -> list[Input]:
        """The user's inputs that are not too old, in the order in which they came."""
        return self._fresh(_unpacked(self.ledger.get(SPACE, owner)), now)

    def keep(self, owner: str, new: Sequence[Input], *, now: datetime) -> None:
        """Add inputs of one job, in place of what an earlier run of the job had added."""
        jobs = {one.job for one in new}
        while True:
            old = self.ledger.get(SPACE, owner)
            there = _unpacked(old)
            others = [one for one in self._fresh(there, now) if one.job not in jobs]
            packed = _packed([*others, *new][-self.most :])
            if self.ledger.swap(SPACE, owner, old=old, new=packed):
                break
        if not there or there[-1].at.date() != now.date():
            self.ledger.put(DUE, day_key(now.date(), owner), b"")

    def sweep(self, now: datetime) -> None:
        """Remove the inputs of users of whom none is young enough."""
        for key, owner in outdated(self.ledger, DUE, now=now, kept=self.kept):
            old = self.ledger.get(SPACE, owner)
            if old is not None and not self._fresh(_unpacked(old), now):
                self.ledger.swap(SPACE, owner, old=old, new=None)
            self.ledger.remove(DUE, key)

    def _fresh(self, inputs: Sequence[Input], now: datetime) -> list[Input]:
        return [one for one in inputs if now - one.at < self.kept]


def _packed(inputs: Sequence[Input]) -> bytes:
    """A line of JSON, then the vectors, one behind the other."""
    told = [
        {
            "at": one.at.isoformat(),
            "job": one.job,
            "length": len(one.vector),
            "says": one.says.to_json(),
        }
        for one in inputs
    ]
    vectors = b"".join(one.vector.astype("<f4").tobytes() for one in inputs)
    return json.dumps(told, separators=(",", ":")).encode() + b"\n" + vectors


def _unpacked(value: bytes | None) -> list[Input]:
    """The inverse; nothing of what this release cannot read, which the next `keep` replaces."""
    head, _, vectors = (value or b"[]").partition(b"\n")
    try:
        return _read(json.loads(head), vectors)
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _read(told: Sequence[Mapping[str, Any]], vectors: bytes) -> list[Input]:
    numbers = np.frombuffer(vectors, "<f4").astype(np.float32)
    ends = np.cumsum([one["length"] for one in told], dtype=np.int64)
    parts = np.split(numbers, ends)
    return [
        Input(
            vector=part,
            says=Salient.from_json(one["says"]),
            job=str(one["job"]),
            at=parse_instant(one["at"]),
        )
        for one, part in zip(told, parts, strict=False)
        if len(part) == one["length"]
    ]


def forget_inputs(ledger: Ledger, tenant: str, user: str = "") -> None:
    """Remove what is remembered of a user's inputs, or of all of a tenant's."""
    for key in _keys(ledger, tenant, user):
        ledger.remove(SPACE, key)


def count_inputs(ledger: Ledger, tenant: str, user: str = "") -> int:
    """How many users `forget_inputs` would remove something of."""
    return len(_keys(ledger, tenant, user))


def _keys(ledger: Ledger, tenant: str, user: str) -> list[str]:
    mine = owned(tenant, user)
    return [key for key, _ in ledger.items(SPACE, prefix=mine) if not user or key == mine]
