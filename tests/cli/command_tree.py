"""The commands of `lmem`, those of its groups too."""

from __future__ import annotations

from typing import Any

from lmem.main import tree


def commands() -> dict[str, Any]:
    """The words that call it, such as "index build" → the command."""
    return dict(_under((), tree))


def _under(words: tuple[str, ...], command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(" ".join(words), command)]
    return [leaf for name, c in inner.items() for leaf in _under((*words, name), c)]
