"""Numbers of bank accounts and payment cards, which carry check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["cards", "ibans"]

_CARD: Final = re.compile(
    r"(?<![\w.#+-])(?<!\d,)(?:"
    r"\d{14,16}|\d{19}"
    r"|\d{4}(?P<by>[ -])\d{4}(?P=by)\d{4}(?P=by)\d{4}(?:(?P=by)\d{3})?"
    r"|\d{4}(?P<of>[ -])\d{6}(?P=of)\d{4,5}"
    r")(?![\w]|[.-]\d|,\d{3}(?!\d))"
)
"""In one piece, or grouped as cards print it: 4-4-4-4, 4-4-4-4-3, 4-6-5, 4-6-4."""

_ISSUER: Final = re.compile(
    r"4(?:\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]|2(?:2[2-9]|[3-6]|7[01]))\d+(?<=^\d{16})"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-5]|[689]\d)\d{11}"  # Diners Club
    r"|(?:6011|6[45]\d\d|62\d\d|60\d\d|8[12]\d\d|50\d\d|35[2-8]\d)(?:\d{12}|\d{15})"
)

_IBAN_START: Final = re.compile(r"(?<![^\W_])(?P<country>[A-Za-z]{2})\d\d(?=[ -]?[A-Za-z0-9])")
_IBAN_REST: Final = re.compile(r"[A-Za-z0-9](?:[ -]?[A-Za-z0-9]){0,33}")

_IBAN_LENGTH: Final = {
    **dict.fromkeys(["NO"], 15),
    **dict.fromkeys(["BE"], 16),
    **dict.fromkeys(["DK", "FI", "FK", "FO", "GL", "NL", "SD"], 18),  # codespell:ignore fo
    **dict.fromkeys(["MK", "SI"], 19),
    **dict.fromkeys(["AT", "BA", "EE", "KZ", "LT", "LU", "MN", "XK"], 20),
    **dict.fromkeys(["CH", "HR", "LI", "LV"], 21),
    **dict.fromkeys(["BG", "BH", "CR", "DE", "GB", "GE", "IE", "ME", "RS", "VA"], 22),
    **dict.fromkeys(["AE", "GI", "IL", "IQ", "OM", "SO", "TL"], 23),
    **dict.fromkeys(["AD", "CZ", "ES", "MD", "PK", "RO", "SA", "SE", "SK", "TN", "VG"], 24),
    **dict.fromkeys(["LY", "PT", "ST"], 25),
    **dict.fromkeys(["IS", "TR"], 26),
    **dict.fromkeys(["BI", "DJ", "FR", "GR", "IT", "MC", "MR", "SM"], 27),
    **dict.fromkeys(["AL", "AZ", "BY", "CY", "DO", "GT", "HN", "HU", "LB", "NI", "PL", "SV"], 28),
    **dict.fromkeys(["BR", "EG", "PS", "QA", "UA"], 29),
    **dict.fromkeys(["JO", "KW", "MU", "YE"], 30),
    **dict.fromkeys(["MT", "SC"], 31),
    **dict.fromkeys(["LC"], 32),
    **dict.fromkeys(["RU"], 33),
}
"""Characters of an IBAN by country (SWIFT, IBAN registry)."""


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Spans of payment card numbers: of a known issuer, with a check digit (ISO/IEC 7812) right."""
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _ISSUER.fullmatch(digits) and _luhn(digits):
            yield match.span()


def ibans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of IBANs: of the length of their country, with check digits (ISO 13616) right."""
    for match in _IBAN_START.finditer(text):
        length = _IBAN_LENGTH.get(match["country"].upper(), 0)
        end = _end_of(text, match.start(), length)
        if end is not None and _mod_97(text[match.start() : end]):
            yield match.start(), end


def _end_of(text: str, start: int, length: int) -> int | None:
    """Where the `length`-th letter or digit from `start` ends, if the run ends there or pauses."""
    run = _IBAN_REST.match(text, start)
    if not length or run is None:
        return None
    characters = [place for place in range(start, run.end()) if text[place].isalnum()]
    if len(characters) < length:
        return None
    end = characters[length - 1] + 1
    return None if text[end : end + 1].isalnum() else end


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0 and len(set(digits)) > 1


def _mod_97(iban: str) -> bool:
    plain = re.sub(r"[ -]", "", iban).upper()
    turned = plain[4:] + plain[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1
