"""The keys of what is kept by name: how they begin, and which names there may be."""

from __future__ import annotations

import unicodedata
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.record.values import text_value

__all__ = ["GRANT", "PROCEDURE", "PROFILE", "WORKSPACE", "checked_name"]

PROCEDURE: Final = "procedure:"
"""Of an agent's procedures."""

PROFILE: Final = "profile:"
"""Of profile facts."""

WORKSPACE: Final = "workspace:"
"""Of what an agent is told."""

GRANT: Final = f"{WORKSPACE}grant/"
"""Of grants, which are rows of the giver's workspace."""

_LONGEST_NAME: Final = 200
_CONTROLS: Final = ("Cc", "Zl", "Zp")


def checked_name(what: str, name: object) -> str:
    """The name, if it is a text that a key can be made of.

    Raises:
        InvalidInputError: it is no text, blank, longer than 200 characters, or holds a control
            character or a line break.
    """
    text = text_value(what, name)
    if not text.strip():
        raise InvalidInputError(f"{what} is {text!r:.120}; it takes a text that is not blank")
    if len(text) > _LONGEST_NAME:
        raise InvalidInputError(
            f"{what} has {len(text):,} characters; it takes {_LONGEST_NAME} at most"
        )
    for place, character in enumerate(text):
        if unicodedata.category(character) in _CONTROLS:
            raise InvalidInputError(
                f"{what} holds the control character {character!r} at position {place}; it takes "
                "one line of text"
            )
    return text
