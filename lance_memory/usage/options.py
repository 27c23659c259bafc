"""How a store records its queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real

from lance_memory.errors import InvalidInputError

__all__ = ["QueryRecording"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecording:
    """How queries are recorded, in batches beside the store's memories.

    Attributes:
        max_rows: how many queries are kept; the oldest go.
        batch: so many are written at once; a process that is killed loses at most these.
        seconds: what is not written after as many is written, though the batch is not full.
        redact: what makes a query's text fit to be kept; None: `StandardRedactor`, which takes out
            secrets, account numbers, e-mail addresses and phone numbers. `str` keeps all.
    """

    max_rows: int = 100_000
    batch: int = 64
    seconds: float = 5.0
    redact: Callable[[str], str] | None = None

    @classmethod
    def of(cls, *, record_queries: QueryRecording | bool) -> QueryRecording | None:
        """What the argument of `open` asks for; None: nothing.

        Raises:
            InvalidInputError: it is something else.
        """
        if isinstance(record_queries, cls):
            return record_queries
        if not isinstance(record_queries, bool):
            raise InvalidInputError(
                f"record_queries={record_queries!r}; it takes True, False or a QueryRecording"
            )
        return cls() if record_queries else None

    def __post_init__(self) -> None:
        for name in ("max_rows", "batch"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InvalidInputError(f"{name}={value!r}; it takes a whole number from 1 on")
        if not isinstance(self.seconds, Real) or not 0 < self.seconds < float("inf"):
            raise InvalidInputError(f"seconds={self.seconds!r}; it takes a number above 0")
        if self.redact is not None and not callable(self.redact):
            raise InvalidInputError(f"redact={self.redact!r}; it takes a function of a text")
