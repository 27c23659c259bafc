"""A question understood: whom it names, when it asks about, what goes into which leg."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from lance_memory.record.results import Understood
from lance_memory.search.names import Mentions, Names
from lance_memory.search.periods import Period, periods
from lance_memory.search.query import Mode, Query, brief

__all__ = ["Question", "understood"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the legs and the ranking take from a query.

    Attributes:
        query: as it was asked.
        embed: the text to embed; empty where the vector is given, or no leg needs one.
        words: the text of the words leg; empty where that leg is not asked.
        mentions: the known actors in the text.
        periods: the dates in the text.
    """

    query: Query
    embed: str
    words: str
    mentions: Mentions
    periods: tuple[Period, ...]

    @property
    def plain(self) -> str:
        """The text without the names of known actors, for what compares it with contents."""
        return self.mentions.without or self.query.text

    def told(self) -> Understood:
        """For the caller."""
        named = sorted({name for actors in self.mentions.actors for name in actors})
        return Understood(
            embedded=self.embed,
            words=self.words,
            actors=tuple(named),
            periods=tuple(str(period) for period in self.periods),
        )


def understood(query: Query, *, names: Callable[[], Names], today: date) -> Question:
    """Names of known actors leave the vector leg.

    In hybrid mode the only one that is named leaves the words leg too, because the bonus stands for
    it; of several each may be what is asked about. In text mode the words are as they were asked.
    Words, names and dates are read of the composed text (NFC), as most contents are stored.
    """
    wants_vector = query.mode != Mode.TEXT and query.vector is None
    hybrid = query.mode == Mode.HYBRID
    text = unicodedata.normalize("NFC", query.text)
    mentions = names().mentioned(text) if wants_vector or hybrid else Mentions()
    words = mentions.without if hybrid and mentions.single else text
    without = mentions.without if mentions.actors else query.text
    return Question(
        query=query,
        embed=without if wants_vector else "",
        words="" if query.mode == Mode.VECTOR else brief(words),
        mentions=mentions,
        periods=periods(text, today=today) if hybrid else (),
    )
