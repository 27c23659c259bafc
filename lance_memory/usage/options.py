"""How a store records its queries."""

from __future__ import annotations

from dataclasses import dataclass

from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import seconds, whole
from lance_memory.redact import STANDARD, Redactor, checked

__all__ = ["QueryRecording"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRecording:
    """How queries are recorded, in batches beside the store's memories.

    Attributes:
        max_rows: how many queries are kept; the oldest go when there are 5 % more.
        batch: so many are written at once; a process that is killed loses at most these.
        seconds: what is not written after as many is written, though the batch is not full.
        redact: what must not be kept of a query's text: by default secrets, account numbers,
            e-mail addresses and phone numbers, as `StandardRedactor` finds them; None keeps all.
    """

    max_rows: int = 100_000
    batch: int = 64
    seconds: float = 5.0
    redact: Redactor | None = STANDARD

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
        whole("max_rows", self.max_rows, least=1)
        whole("batch", self.batch, least=1)
        seconds("seconds", self.seconds)
        checked(self.redact)
