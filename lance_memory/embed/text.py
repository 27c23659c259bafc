"""Texts as models can take them."""

from __future__ import annotations

from collections.abc import Sequence

from lance_memory.errors import InvalidInputError

__all__ = ["encodable", "refuse_other_than_texts"]


def encodable(text: str) -> str:
    """With "?" for lone surrogates (from undecodable file names), which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def refuse_other_than_texts(texts: Sequence[str]) -> None:
    """Raises InvalidInputError for one string, and for something else than strings among them."""
    if isinstance(texts, str):
        raise InvalidInputError("texts must be a sequence of strings; found one string: [text]")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"texts must all be strings; found {type(text).__name__} at position {position}"
            )
