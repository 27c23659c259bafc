"""Import what an extra brings, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

from lance_memory.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *extras: str) -> Any:
    """The imported module.

    Args:
        module: its name.
        extras: those that bring it, any of which will do; none for a plain dependency.

    Raises:
        MissingExtraError: it is not installed, or a library that it loads is missing.
    """
    try:
        return importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: a library of CUDA, say, cannot be loaded
        raise MissingExtraError(
            f"the module {module!r} cannot be imported ({error}); {_advice(extras)}"
        ) from error


def _advice(extras: tuple[str, ...]) -> str:
    if not extras:
        return "install lance-memory again, with its dependencies"
    named = " or ".join(map(repr, extras))
    return f"install the extra {named}: pip install 'lance-memory[{extras[0]}]'"
