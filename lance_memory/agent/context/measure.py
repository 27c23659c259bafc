"""How many tokens the parts of a pack's text have; each is counted when it is asked for, once."""

from __future__ import annotations

from collections.abc import Sequence

from lance_memory.agent.context.candidate import Candidate
from lance_memory.agent.context.options import ContextOptions, Count
from lance_memory.agent.context.render import END, Entry, entry, mark, opening, shortened
from lance_memory.record.memory import Scope

__all__ = ["Measured"]

_AT_ONCE = 16
"""Candidates that are counted in one call: as many without room end the packing (`pack`)."""

_CHARACTERS = 64
"""Of a content as many for each token that it may have: a megabyte need not be counted, a second
long, to keep the first thousand tokens. Texts have some 4, and the longest words fewer than 64."""

_WIDE = 100
"""A number as wide as any, where it is not known yet."""


class Measured:
    """The entries of candidates, by their places; those that are too long are cut.

    Lines are counted with their ends. A pack needs few of its candidates, so they are counted as
    they come up, a few at once.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        budget: int,
        options: ContextOptions,
        count: Count,
        within: Scope,
    ) -> None:
        self._candidates = candidates
        self._budget = budget
        self._options = options
        self._count = count
        self._within = within
        self._entries: dict[int, tuple[Entry, int]] = {}
        self._lines: dict[str, int] = {}

    def entry(self, place: int) -> Entry:
        """What the text would have of a candidate."""
        return self._measured(place)[0]

    def tokens(self, place: int) -> int:
        """Of its entry."""
        return self._measured(place)[1]

    def line(self, text: str) -> int:
        """The tokens of a line that is no candidate's; 0 of none."""
        if text and text not in self._lines:
            (self._lines[text],) = self._count([f"{text}\n"])
        return self._lines.get(text, 0)

    def frame(self) -> int:
        """The tokens of the lines around all items."""
        return sum(map(self.line, (*opening(self._within), END)))

    def _measured(self, place: int) -> tuple[Entry, int]:
        if place not in self._entries:
            after = range(place, min(place + _AT_ONCE, len(self._candidates)))
            self._measure([other for other in after if other not in self._entries])
        return self._entries[place]

    def _measure(self, places: Sequence[int]) -> None:
        """Count several in one call, which costs a tokenizer little more than one."""
        entries = [self._whole(self._candidates[place]) for place in places]
        counts = self._count([self._text(one) for one in entries])
        for place, one, tokens in zip(places, entries, counts, strict=True):
            self._entries[place] = self._cut(one, tokens)

    def _whole(self, candidate: Candidate) -> Entry:
        """The entry of a candidate, before it is counted."""
        longest = _CHARACTERS * max(1, self._most(candidate))
        return entry(candidate, within=self._within, longest=longest)

    def _most(self, candidate: Candidate) -> int:
        """The tokens that its entry may have."""
        share = self._options.share(candidate.source).tokens
        return int(self._budget * min(share, self._options.longest))

    def _cut(self, one: Entry, tokens: int) -> tuple[Entry, int]:
        """An entry of so many tokens, as long as it may be."""
        most = self._most(one.candidate)
        if tokens <= most:
            return one, tokens
        cut = shortened(one, most=most, tokens=tokens, count=self._tokens)
        return cut, self._tokens(cut)

    def _tokens(self, one: Entry) -> int:
        (tokens,) = self._count([self._text(one)])
        return tokens

    def _text(self, one: Entry) -> str:
        return f"{one.text(mark(one.candidate, _WIDE, ids=self._options.ids))}\n"
