"""What is said of an error, so that no content is in it, and whether it may pass by itself."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Final

from lance_memory.errors import (
    AmbiguousError,
    ConflictError,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
    QuotaExceededError,
    RejectedError,
    ScopeError,
    StorageError,
    StoreFormatError,
)

__all__ = ["described", "may_pass"]

_LASTING: Final = (
    AmbiguousError,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
    QuotaExceededError,
    RejectedError,
    ScopeError,
    StoreFormatError,
)
"""The same job would fail in the same way again."""

_TOLD: Final = (
    ConflictError,
    MissingExtraError,
    QuotaExceededError,
    StorageError,
    StoreFormatError,
)
"""Their messages name files, servers, tenants, ids, numbers. Those of others may quote what was
said."""

_PACKAGE: Final = Path(__file__).parents[1]


def may_pass(error: Exception) -> bool:
    """Whether it is worth another try."""
    return not isinstance(error, _LASTING)


def described(error: Exception) -> str:
    """The kind of an error, the place of ours it came from, and its message if that is harmless."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    parts = [type(error).__name__]
    if ours:
        path = Path(ours[-1].filename).relative_to(_PACKAGE.parent).as_posix()
        parts.append(f"at {path}:{ours[-1].lineno}")
    told = " ".join(parts)
    return f"{told}: {error}" if isinstance(error, _TOLD) else told
