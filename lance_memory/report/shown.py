"""Texts of memories as a chart or a table shows them: short, on one line, steering nothing."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta

from lance_memory import wording

__all__ = ["aged", "day", "shown"]

_NOTHING = "(none)"
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINS = {"\u200c", "\u200d"}  # Persian, Indic scripts and emoji are written with them


def shown(text: str | None, longest: int = 90) -> str:
    r"""The text in one line, cut; what would turn or hide its neighbours is written out.

    Control characters and marks of direction become their code, such as \u202e: in a page they
    could show a text as another one.

    Args:
        text: as stored; None and "" become "(none)".
        longest: characters at most.
    """
    plain = "".join(map(_visible, " ".join((text or "").split())))
    return wording.shown(plain, longest) or _NOTHING


def day(moment: datetime | None) -> str:
    """A day of UTC, as people who sort write it."""
    return "" if moment is None else f"{moment:%Y-%m-%d}"


def aged(length: timedelta) -> str:
    """A length of time in its largest unit: 3 days, 5 months."""
    days = length.days
    for size, unit in ((365, "year"), (30, "month"), (7, "week"), (1, "day")):
        if days >= size:
            number = days // size
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return "less than a day"


def _visible(character: str) -> str:
    if character in _JOINS or unicodedata.category(character) not in _UNSEEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
