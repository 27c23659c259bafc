"""The gate: its layers in order, and what becomes of it when one of them cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final, TypeVar

from lance_memory.errors import LanceMemoryError
from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.gate.budget import Budgets, TokenCount, estimated_tokens
from lance_memory.ingest.gate.duplicate import Duplicates
from lance_memory.ingest.gate.layer import Blocked, Layer, Look, NoLedgerError
from lance_memory.ingest.gate.policy import GatePolicy
from lance_memory.ingest.gate.quality import Quality
from lance_memory.ingest.gate.rate import RateLimit
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Passed, Surroundings
from lance_memory.service.breaker import Breaker, BreakerOpenError
from lance_memory.wording import counted

__all__ = ["Gate", "standard_layers"]

FAILURES: Final = (LanceMemoryError, OSError)
"""What says that a layer cannot be asked."""

_T = TypeVar("_T")
_STANDARD: Final = GatePolicy()


def standard_layers(
    policy: GatePolicy, *, tokens: TokenCount = estimated_tokens
) -> tuple[Layer, ...]:
    """The rate, the quality, duplicates and the budget, in this order.

    Raises:
        InvalidInputError: the policy's `rates` is no URL of a Redis server.
        MissingExtraError: it is, and the extra "redis" is not installed.
    """
    return (
        RateLimit(policy.per_minute, rates=policy.rates),
        Quality(policy),
        Duplicates(policy),
        Budgets(policy, tokens=tokens),
    )


class Gate:
    """Blocks what is not worth extracting from, and says why. A step of the write path.

    Conversations come in, and those that pass go out. For each other one there is a decision with
    the code of the layer that blocked it ("L1" to "L4") as its verdict, the layer's reason, the
    figures it was decided by, and the name of the event that the conversation begins with. Blocking
    is an answer: nothing is raised. A layer that cannot be asked blocks nothing; the rest of
    the call goes on without it, and `degraded` says so, as "gate.L3: ...". After several failures
    in a row it is left alone for a while.

    A batch is judged as if its conversations came one by one, each in a job of its own.

    Args:
        policy: the bounds.
        tokens: counts tokens for the budget: texts to a number each; by default an estimate.
        layers: other layers, in order; the policy then only says how failures are dealt with.

    Raises:
        InvalidInputError, MissingExtraError: see `standard_layers`.
    """

    name: Final = "gate"

    def __init__(
        self,
        policy: GatePolicy = _STANDARD,
        *,
        tokens: TokenCount = estimated_tokens,
        layers: tuple[Layer, ...] | None = None,
    ) -> None:
        self.policy = policy
        self.layers = standard_layers(policy, tokens=tokens) if layers is None else layers
        self._guards = tuple(_Guard(layer, self._breaker(layer)) for layer in self.layers)

    def __call__(self, items: Sequence[Conversation], around: Surroundings) -> Passed[Conversation]:
        """Those that pass, in order, and a decision for each other one, in order."""
        left = dict(enumerate(items))
        decisions: dict[int, Decision] = {}
        degraded: list[str] = []
        for guards in self._groups():
            sitting = _Sitting(guards, left, around)
            for place, (layer, blocked) in sitting.blocked().items():
                decisions[place] = _decision(layer, blocked, left.pop(place), around)
            degraded += sitting.degraded()
        return Passed(
            items=tuple(left.values()),
            decisions=tuple(decisions[place] for place in sorted(decisions)),
            degraded=tuple(degraded),
        )

    def settled(self, job: str, *, safe: bool) -> None:
        """Tell the layers that what passed in a job is stored or queued, or that the job failed.

        Until then nothing of it counts for later calls, so that one that failed may be repeated.
        """
        for layer in self.layers:
            with suppress(*FAILURES):
                layer.settled(job, safe=safe)

    def _groups(self) -> Iterator[tuple[_Guard, ...]]:
        """Layers that go through the whole batch, each by itself; then the rest, item by item.

        A layer that remembers what passed has to know what later layers decide.
        """
        first = tuple(takewhile(lambda guard: guard.layer.alone, self._guards))
        yield from ((guard,) for guard in first)
        if len(first) < len(self._guards):
            yield self._guards[len(first) :]

    def _breaker(self, layer: Layer) -> Breaker:
        return Breaker(
            f"{self.name}.{layer.code}",
            counts=FAILURES,
            failures=self.policy.failures,
            rest=self.policy.rest,
        )


class _Guard:
    """A layer behind its breaker."""

    def __init__(self, layer: Layer, breaker: Breaker) -> None:
        self.layer = layer
        self.breaker = breaker


class _Watched:
    """A layer's look for one call, until the layer fails. To its breaker all of that is one try."""

    def __init__(
        self, guard: _Guard, asked: Mapping[int, Conversation], around: Surroundings
    ) -> None:
        self.layer = guard.layer
        self._breaker = guard.breaker
        self._unjudged = 0
        self._failure: Exception | None = None
        self._look: Look | None = None
        self._blind = False
        self._dry_run = around.dry_run
        self._resting = guard.breaker.is_open
        if not self._resting:
            self._look = self._tried(lambda: guard.layer.look(asked, around))

    def judge(self, place: int) -> Blocked | None:
        look = self._look
        answer = self._tried(lambda: look.judge(place)) if look else None
        self._unjudged += self._look is None
        return answer

    def settle(self, place: int, *, passed: bool) -> None:
        if (look := self._look) is not None:
            self._tried(lambda: look.settle(place, passed=passed))

    def close(self) -> None:
        if (look := self._look) is not None:
            self._tried(look.close)
        if not self._resting:
            with suppress(*FAILURES, BreakerOpenError):
                self._breaker.call(self._ended)

    def degraded(self) -> Iterator[str]:
        """What is said of a layer that could not be asked."""
        skipped = counted(self._unjudged, "conversation")
        if self._blind:
            why = "not asked in a dry run" if self._dry_run else "there is no ledger to ask"
            yield f"{self._breaker.name}: {why}; {skipped} went unjudged"
        elif self._resting:
            yield f"{self._breaker.name}: left alone after failures; {skipped} went unjudged"
        elif self._failure is not None:
            told = self._failure if isinstance(self._failure, OSError) else ""
            why = str(told) or type(self._failure).__name__  # others may quote what was said
            yield f"{self._breaker.name}: {why}; {skipped} went unjudged"

    def _tried(self, work: Callable[[], _T]) -> _T | None:
        try:
            return work()
        except NoLedgerError:
            self._look, self._blind = None, True
            return None
        except FAILURES as error:
            self._failure = error
            self._look = None
            return None

    def _ended(self) -> None:
        if self._failure is not None:
            raise self._failure


class _Sitting:
    """Layers that judge conversations one by one, and are told what became of each."""

    def __init__(
        self,
        guards: Sequence[_Guard],
        asked: Mapping[int, Conversation],
        around: Surroundings,
    ) -> None:
        self._places = list(asked)
        self._looks = [_Watched(guard, dict(asked), around) for guard in guards if asked]

    def blocked(self) -> dict[int, tuple[Layer, Blocked]]:
        """Those that do not pass, by place, and which layer blocked them."""
        found = {}
        for place in self._places:
            blocked = self._judged(place)
            if blocked:
                found[place] = blocked
        for look in self._looks:
            look.close()
        return found

    def degraded(self) -> Iterator[str]:
        """What each layer that failed has to say."""
        for look in self._looks:
            yield from look.degraded()

    def _judged(self, place: int) -> tuple[Layer, Blocked] | None:
        asked: list[_Watched] = []
        verdict = None
        for look in self._looks:
            if blocked := look.judge(place):
                verdict = (look.layer, blocked)
                break
            asked.append(look)
        for look in asked:
            look.settle(place, passed=verdict is None)
        return verdict


def _decision(
    layer: Layer, blocked: Blocked, conversation: Conversation, around: Surroundings
) -> Decision:
    begins = conversation.event(0, job=around.job) if conversation.messages else ""
    return Decision(
        step=Gate.name,
        verdict=layer.code,
        reason=layer.reason,
        event=begins,
        figures=blocked.figures,
    )
