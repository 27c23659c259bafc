"""L4: is there anything left of what the tenant may have ingested this month?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, timedelta
from typing import Final

from lance_memory.ingest.gate.days import day_key, outdated
from lance_memory.ingest.gate.layer import Blocked, Held, Look, NoLedgerError, digest
from lance_memory.ingest.gate.policy import Budget, GatePolicy
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.steps import Surroundings
from lance_memory.ledger import Ledger

__all__ = ["Budgets", "TokenCount", "estimated_tokens"]

TokenCount = Callable[[list[str]], Sequence[int]]
"""Texts to the number of tokens of each."""

SPACE: Final = "budget"
"""Two sums for each tenant and month; those of past months stay, for whoever wants to know."""

COUNTED: Final = "budget.counted"
"""Which conversations of which jobs are in the sums already, by the day on which they came."""

RETRIED: Final = timedelta(days=1)
"""A job that is run again on the same day or the next one is not counted again."""

BYTES_A_TOKEN: Final = 4


def estimated_tokens(texts: list[str]) -> list[int]:
    """A quarter of each text's bytes in UTF-8, rounded up: the rule of thumb for English.

    Bytes, because one character of Chinese (3 bytes) is about one token.
    """
    return [-(-len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN) for text in texts]


class Budgets:
    """Counts a conversation, and blocks it if the tenant's sum would then be above its budget.

    Sums are counted up before they are looked at, so that two callers never share what is left of
    a budget. What does not pass is counted down again.
    """

    code: Final = "L4"
    reason: Final = "budget_exhausted"
    alone: Final = False

    def __init__(self, policy: GatePolicy, *, tokens: TokenCount = estimated_tokens) -> None:
        self.policy = policy
        self.tokens = tokens
        self._swept: date | None = None
        self._held: Held[_Cost] = Held()

    def settled(self, job: str, *, safe: bool) -> None:
        """A job that failed gives back what it was counted for.

        Raises:
            StorageError: the ledger cannot be reached.
        """
        for cost in self._held.pop(job):
            if not safe:
                cost.give_back()

    def look(self, asked: Mapping[int, Conversation], around: Surroundings) -> Look:
        """Counts the tokens of tenants that have a budget; the ledger is not asked for others.

        Raises:
            StorageError: the ledger cannot be reached, or there is none.
        """
        bound = {
            place: self.policy.budget_of(conversation.scope.tenant)
            for place, conversation in asked.items()
        }
        bound = {place: budget for place, budget in bound.items() if budget != Budget()}
        if not bound:
            return _Look({}, {}, "", self._held)
        if around.ledger is None:
            raise NoLedgerError("no ledger is kept, so the budgets' sums are not known")
        sums = _Sums(around.ledger, around)
        if self._swept != around.now.date():
            sums.sweep()
            self._swept = around.now.date()
        counts = self.tokens([asked[place].text for place in bound])
        costs = {
            place: _Cost(sums, asked[place].scope.tenant, place, int(count))
            for place, count in zip(bound, counts, strict=True)
        }
        return _Look(bound, costs, around.job, self._held)


class _Sums:
    """The counters of one call's month."""

    def __init__(self, ledger: Ledger, around: Surroundings) -> None:
        self.ledger = ledger
        self.now = around.now.astimezone(UTC)
        self.job = around.job
        self.month = f"{self.now:%Y-%m}"

    def sweep(self) -> None:
        """Forget jobs that are too old to be run again."""
        for key, _ in outdated(self.ledger, COUNTED, now=self.now, kept=RETRIED):
            self.ledger.remove(COUNTED, key)


class _Cost:
    """What one conversation costs its tenant; counted once for a job, however often that is run."""

    def __init__(self, sums: _Sums, tenant: str, place: int, tokens: int) -> None:
        self._sums = sums
        self._tenant = digest(tenant)
        self._marks = [
            day_key(day, digest(tenant, sums.job, str(place)))
            for day in (sums.now.date(), (sums.now - RETRIED).date())
        ]
        self._counted = False
        self.tokens = tokens

    def mark(self) -> bool:
        """Take it as counted; whether it was not before."""
        today, yesterday = self._marks
        ledger = self._sums.ledger
        if ledger.get(COUNTED, yesterday) is not None:
            return False
        self._counted = ledger.swap(COUNTED, today, old=None, new=b"")
        return self._counted

    def count(self) -> tuple[int, int]:
        """The tenant's calls and tokens of the month, with this one's."""
        return self._add("calls", 1), self._add("tokens", self.tokens)

    def give_back(self) -> None:
        """It was not done; nothing, where it was counted by an earlier run."""
        if self._counted:
            self._add("calls", -1)
            self._add("tokens", -self.tokens)
            self._sums.ledger.remove(COUNTED, self._marks[0])

    def _add(self, what: str, amount: int) -> int:
        return self._sums.ledger.add(SPACE, f"{self._sums.month}/{self._tenant}/{what}", amount)


class _Look:
    def __init__(
        self,
        budgets: Mapping[int, Budget],
        costs: Mapping[int, _Cost],
        job: str,
        held: Held[_Cost],
    ) -> None:
        self._budgets = budgets
        self._costs = costs
        self._job = job
        self._held = held

    def judge(self, place: int) -> Blocked | None:
        cost = self._costs.get(place)
        if cost is None or not cost.mark():
            return None
        calls, tokens = cost.count()
        budget = self._budgets[place]
        spent = {"calls": (calls, 1, budget.calls), "tokens": (tokens, cost.tokens, budget.tokens)}
        if all(most is None or total <= most for total, _, most in spent.values()):
            return None
        cost.give_back()
        figures = {"asked": float(cost.tokens)}
        for name, (total, asked, most) in spent.items():
            if most is not None:
                figures |= {f"{name}_used": float(total - asked), f"{name}_limit": float(most)}
        return Blocked(figures=figures)

    def settle(self, place: int, *, passed: bool) -> None:
        """What a later layer blocks costs nothing."""
        if not passed and place in self._costs:
            self._costs[place].give_back()

    def close(self) -> None:
        """Hold what was counted until the job is safe."""
        self._held.hold(self._job, self._costs.values())
