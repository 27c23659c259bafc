"""Postal addresses of three countries; the only module that knows pyap2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lance_memory.extras import require

__all__ = ["addresses"]

_CODE: Final = re.compile(
    r"\b(?:(?P<US>[A-Z]{2},?[ ]{1,2}\d{5}(?:-\d{4})?)"  # a state and a ZIP code
    r"|(?P<GB>[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2})"
    r"|(?P<CA>[A-Z]\d[A-Z][ ]?\d[A-Z]\d))\b"
)
_BEFORE: Final = 120
"""Characters of an address before its code."""

_NUMBER: Final = re.compile(
    r"(?<![\w.,-])(?:\d{1,6}[A-Za-z]?[ ,]{1,2}(?=\w*[A-Za-z])|P\.?[ ]?O\.?)"
)
_MOST: Final = 4
"""House numbers before one code that are looked at, the nearest ones."""


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Spans of postal addresses with a house number, a street, a city and a postal code.

    Of the United States, the United Kingdom and Canada. Without a code none is found: "10 Downing
    Street" is a fact.
    """
    last = 0
    for code in _CODE.finditer(text):
        begin = max(last, code.start() - _BEFORE)
        numbers = [match.start() for match in _NUMBER.finditer(text, begin, code.start())]
        last = code.end()
        for start in numbers[-_MOST:]:
            if _is_one(text[start:last], country=str(code.lastgroup)):
                yield start, last
                break


def _is_one(piece: str, *, country: str) -> bool:
    """Whether the whole of the piece is an address."""
    pyap: Any = require("pyap", "addresses")
    found = pyap.parse(piece, country=country)
    return any(one.match_start == 0 and one.match_end >= len(piece) for one in found)
