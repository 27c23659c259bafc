"""A text cut down to so many words, by leaving out the sentences that add least."""

from __future__ import annotations

from lance_memory.facts import joined, said, sentences, tokens

__all__ = ["shortened"]

_QUANTITY = 3
"""A number, a date or a time counts as much as so many words: they are what must not get lost."""


def shortened(text: str, most: int) -> str:
    """The text in at most `most` words: whole sentences, in their order.

    Sentences are taken one after the other, each time the one that adds most for its length: words
    that no taken one has, and numbers, which count three times (the cost-scaled greedy of Lin and
    Bilmes, "A Class of Submodular Functions for Document Summarization", 2011). The text as it is
    where it is short enough; where no sentence is, the beginning of the first.
    """
    parts = sentences(text)
    sizes = [len(tokens(part)) for part in parts]
    if sum(sizes) <= most:
        return text
    taken = _taken([said(part)[0] for part in parts], sizes, most)
    if not taken:
        return _beginning(parts[0], most)
    return joined(parts[place] for place in sorted(taken))


def _taken(words: list[frozenset[str]], sizes: list[int], most: int) -> set[int]:
    """The places of the sentences that are kept."""
    taken: set[int] = set()
    known: set[str] = set()
    left = most
    open_ = {place for place, size in enumerate(sizes) if size > 0}
    while True:
        open_ = {place for place in open_ if sizes[place] <= left}
        gains = {place: _weight(words[place] - known) / sizes[place] for place in open_}
        best = max(gains, key=lambda place: (gains[place], -place), default=None)
        if best is None or not gains[best]:
            return taken
        taken.add(best)
        open_.discard(best)
        known |= words[best]
        left -= sizes[best]


def _weight(words: set[str] | frozenset[str]) -> int:
    """Quantities are told by their space, as "number 5"; words have none."""
    return sum(_QUANTITY if " " in word else 1 for word in words)


def _beginning(text: str, most: int) -> str:
    end = 0
    for token in tokens(text)[:most]:
        end = text.index(token, end) + len(token)
    return f"{text[:end]} …"
