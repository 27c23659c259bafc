"""What is left of a budget, as a whole and for each source."""

from __future__ import annotations

from collections import Counter

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.clash import Why
from lance_memory.agent.context.measure import Measured
from lance_memory.agent.context.options import ContextOptions
from lance_memory.agent.context.render import day, heading
from lance_memory.agent.context.result import DropReason

__all__ = ["Room"]


class Room:
    """The budget, less the frame and what was taken so far.

    The first item of a source, and the first of a day in it, pay for the line above them.
    """

    def __init__(self, budget: int, *, options: ContextOptions, measured: Measured) -> None:
        self._budget = budget
        self._options = options
        self._measured = measured
        self.left = budget - measured.frame()
        self._spent: Counter[ContextSource] = Counter()
        self._items: Counter[ContextSource] = Counter()
        self._days: Counter[tuple[ContextSource, str]] = Counter()

    def refused(self, candidate: Candidate, tokens: int) -> Why | None:
        """Why there is no room for it; None: there is."""
        source, cost = candidate.source, self._cost(candidate, tokens)
        share = self._options.share(source)
        if cost > self.left:
            return DropReason.BUDGET, f"{cost} tokens, and {max(self.left, 0)} were left"
        if share.items is not None and self._items[source] >= share.items:
            return DropReason.CAP, f"{share.items} of its source are in"
        if self._spent[source] + cost > share.tokens * self._budget:
            return DropReason.CAP, f"its source has {self._spent[source]} tokens of the budget"
        return None

    def take(self, candidate: Candidate, tokens: int) -> None:
        """It is in."""
        cost = self._cost(candidate, tokens)
        self._items[candidate.source] += 1
        self._days[candidate.source, day(candidate)] += 1
        self._pay(candidate.source, cost)

    def give_back(self, candidate: Candidate, tokens: int) -> None:
        """It is no longer in."""
        self._items[candidate.source] -= 1
        self._days[candidate.source, day(candidate)] -= 1
        self._pay(candidate.source, -self._cost(candidate, tokens))

    def _pay(self, source: ContextSource, tokens: int) -> None:
        self._spent[source] += tokens
        self.left -= tokens

    def _cost(self, candidate: Candidate, tokens: int) -> int:
        """With the lines above it that nothing else has needed yet."""
        when = day(candidate)
        if not self._items[candidate.source]:
            tokens += self._measured.line(heading(candidate.source))
        if not self._days[candidate.source, when]:
            tokens += self._measured.line(when)
        return tokens
