"""Import what an extra brings, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

from lance_memory.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, extra: str | None = None) -> Any:
    """The imported module; `extra` is the one that brings it, None for a plain dependency.

    Raises MissingExtraError, which says what to install, when it cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this embedder needs the module {module!r}, which cannot be imported ({error}). "
            f"{_advice(extra)}, or pass another embedder."
        ) from error


def _advice(extra: str | None) -> str:
    if extra is None:
        return "Install lance-memory again, with its dependencies"
    return f"Install the extra {extra!r}: pip install 'lance-memory[{extra}]'"
