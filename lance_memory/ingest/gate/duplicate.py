"""L3: has the user just said the same? Near in meaning, and nothing new in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_memory.ingest.gate.layer import Blocked, Held, Look, NoLedgerError, inputs, owner
from lance_memory.ingest.gate.policy import GatePolicy
from lance_memory.ingest.gate.recent import Input, Recent
from lance_memory.ingest.gate.salient import salient
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Surroundings

__all__ = ["Duplicates"]

LONGEST: Final = 1_000
"""Characters. A longer input is no query that somebody repeats, and the default embedder sees no
more of it; so it is neither compared nor kept."""


class Duplicates:
    """Compares what the user says with the last inputs that passed.

    A duplicate is nearer than the policy's cosine to one of them and says nothing that this one
    does not: no word, name, number, unit, month or side of an opposite, and it denies no more or
    less. So a new exam or score passes, however near. Registered back-end events are no inputs.

    What an earlier run of the same job had added is left out, so that a job that is run again
    does not block itself; so is what a job brought that is dead. A job is judged in one call.
    """

    code: Final = "L3"
    reason: Final = "duplicate_query"
    alone: Final = False

    def __init__(self, policy: GatePolicy) -> None:
        self.policy = policy
        self._swept: date | None = None
        self._held: Held[tuple[Recent, str, list[Input], datetime]] = Held()

    def settled(self, job: str, *, safe: bool) -> None:
        """Inputs count from when they are stored or queued: a call that failed may be repeated.

        Raises:
            StorageError: the ledger cannot be reached.
        """
        for recent, name, passed, now in self._held.pop(job):
            if safe:
                recent.keep(name, passed, now=now)

    def look(self, asked: Mapping[int, Conversation], around: Surroundings) -> Look:
        """Embeds in one call what is to be compared, and reads what it is compared with.

        Raises:
            EmbeddingError: the embedder failed.
            StorageError: the ledger cannot be reached, or there is none.
        """
        texts = {
            place: text
            for place, conversation in (asked.items() if self.policy.last else ())
            if (text := self._compared(conversation))
        }
        if not texts:
            return _Look(self.policy, {}, {}, None, around, held=self._held)
        if around.ledger is None:
            raise NoLedgerError("no ledger is kept, so late inputs are not known")
        # Twice as many as are compared: those of this job may have pushed others out.
        recent = Recent(
            ledger=around.ledger, most=2 * self.policy.last, kept=self.policy.remembered
        )
        self._sweep(recent, around)
        vectors = _unit(around.embed(list(texts.values())))
        new = {
            place: Input(vector=vector, says=salient(text), job=around.job, at=around.now)
            for (place, text), vector in zip(texts.items(), vectors, strict=True)
        }
        owners = {place: owner(asked[place]) for place in texts}
        return _Look(self.policy, new, owners, recent, around, held=self._held)

    def _compared(self, conversation: Conversation) -> str:
        """The user's words; empty, where they are compared with none."""
        if self.policy.is_event(conversation.source):
            return ""
        text = "\n".join(message.content.strip() for message in inputs(conversation))
        return text if len(text) <= LONGEST else ""

    def _sweep(self, recent: Recent, around: Surroundings) -> None:
        """Once a day in each process."""
        if self._swept != around.now.date():
            recent.sweep(around.now)
            self._swept = around.now.date()


class _Look:
    def __init__(
        self,
        policy: GatePolicy,
        new: Mapping[int, Input],
        owners: Mapping[int, str],
        recent: Recent | None,
        around: Surroundings,
        *,
        held: Held[tuple[Recent, str, list[Input], datetime]],
    ) -> None:
        self._policy = policy
        self._held = held
        self._new = new
        self._owners = owners
        self._recent = recent
        self._around = around
        self._late = {name: self._before(name) for name in set(owners.values())}
        self._passed: dict[str, list[Input]] = {}

    def judge(self, place: int) -> Blocked | None:
        if place not in self._new:
            return None
        new = self._new[place]
        for late in self._late[self._owners[place]][-self._policy.last :]:
            if late.vector.shape != new.vector.shape:  # another model's
                continue
            cosine = float(late.vector @ new.vector)
            alike = cosine > self._policy.most_alike and not new.says.adds_to(late.says)
            if alike and not self._around.lost(late.job):
                return Blocked(figures={"cosine": cosine, "most": self._policy.most_alike})
        return None

    def settle(self, place: int, *, passed: bool) -> None:
        """An input that passed is one of the last."""
        if passed and place in self._new:
            self._late[self._owners[place]].append(self._new[place])
            self._passed.setdefault(self._owners[place], []).append(self._new[place])

    def close(self) -> None:
        """Hold those that passed until the job is safe."""
        if self._recent is not None:
            recent, now = self._recent, self._around.now
            kept = [(recent, name, new, now) for name, new in self._passed.items()]
            self._held.hold(self._around.job, kept)

    def _before(self, name: str) -> list[Input]:
        found = self._recent.of(name, now=self._around.now) if self._recent else []
        return [one for one in found if one.job != self._around.job]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled
