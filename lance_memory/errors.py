"""Everything lance-memory raises on purpose.

One root, and one class per thing that a caller can do about it. Each is also the built-in
that a Python programmer would have caught anyway. Messages say what was asked, what was
found, and what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "AmbiguousError",
    "ConflictError",
    "DamagedStoreWarning",
    "EmbeddingError",
    "ExtractionError",
    "InvalidInputError",
    "LanceMemoryError",
    "MissingExtraError",
    "NotFoundError",
    "QuotaExceededError",
    "RejectedError",
    "ScopeError",
    "StoppedError",
    "StorageError",
    "StoreFormatError",
    "TransformError",
]


class DamagedStoreWarning(UserWarning):
    """A store was opened at an earlier version, because the newest is torn; see `Damage`."""


class LanceMemoryError(Exception):
    """The root: catch this to catch everything the package raises on purpose."""


class InvalidInputError(LanceMemoryError, ValueError):
    """An argument makes no sense on its own. Correct the call."""


class RejectedError(LanceMemoryError, ValueError):
    """The write path refused a memory; nothing of its batch was stored.

    `rows` holds the positions (0-based) of the offending items in the batch.
    """

    def __init__(self, message: str, *, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = tuple(rows)


class NotFoundError(LanceMemoryError, KeyError):
    """No such memory, version, tag, branch or store. Look at what exists."""

    def __str__(self) -> str:  # KeyError would print the repr of its argument
        return str(self.args[0]) if self.args else ""


class AmbiguousError(LanceMemoryError, ValueError):
    """A prefix or key fits more than one memory; `candidates` lists them. Give more of it."""

    def __init__(self, message: str, *, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class ConflictError(LanceMemoryError, RuntimeError):
    """Somebody changed what this write had read; nothing was written. Read again, plan again.

    `ids` lists the memories in question, where they are known.
    """

    def __init__(self, message: str, *, ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.ids = tuple(ids)


class QuotaExceededError(LanceMemoryError, RuntimeError):
    """A tenant's hard limit would be passed; nothing was written. Make room, or raise the limit.

    `tenant` has `used` of the `resource` ("rows", "bytes", "vectors", "calls_a_day",
    "calls_a_month") and `asked` for so many more; its hard limit is `limit`.
    """

    def __init__(
        self, message: str, *, tenant: str, resource: str, used: int, asked: int, limit: int
    ) -> None:
        super().__init__(message)
        self.tenant = tenant
        self.resource = resource
        self.used = used
        self.asked = asked
        self.limit = limit


class ScopeError(LanceMemoryError, PermissionError):
    """The call reaches outside the scope of the handle, or needs a scope and was given none."""


class StoreFormatError(LanceMemoryError, ValueError):
    """The path holds something that this release cannot open as a store."""


class StorageError(LanceMemoryError, OSError):
    """The disk or object store failed: full, read-only, permission, damaged file."""


class EmbeddingError(LanceMemoryError, RuntimeError):
    """An embedder failed, or gave vectors of the wrong number, length or value."""


class ExtractionError(LanceMemoryError, RuntimeError):
    """An extractor failed on a conversation, or what answers for it did not.

    `passing`: it may pass by itself, so the job is tried again. `reason` is a name that can be
    counted, such as "invalid_answer".
    """

    def __init__(self, message: str, *, reason: str, passing: bool) -> None:
        super().__init__(message)
        self.reason = reason
        self.passing = passing


class TransformError(LanceMemoryError, RuntimeError):
    """A transform failed on a cluster, or what answers for it did not. Nothing was written."""


class StoppedError(LanceMemoryError, RuntimeError):
    """A pass ended early because its `stop` event was set. Nothing was written."""


class MissingExtraError(LanceMemoryError, ImportError):
    """A dependency is not installed; the message names what to install."""
