"""Words of scripts that an embedder made for English reads badly, or not at all.

Its tokenizer knows the letters of some scripts, and has one token for all words of the others: the
vectors of two texts in Thai, or of two emoji, are the same whatever they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lance_memory.facts.folding import CJK

__all__ = ["foreign", "unread"]

_SPELLED = (
    r"\u0370-\u058f\u1f00-\u1fff"  # Greek, Cyrillic, Armenian
    r"\u0590-\u06ff\u0750-\u077f"  # Hebrew, Arabic
    r"\u0900-\u09ff\u0b80-\u0bff\u10a0-\u10ff"  # Devanagari, Bengali, Tamil, Georgian
)
"""Scripts whose letters are known one by one; inside of brackets."""

_OTHERWISE_READ = rf"\u0000-\u036f\u1d00-\u1eff\u2000-\u218f\u2c60-\u2c7f{CJK}"
_AND_WIDE = r"\u1100-\u11ff\u2e80-\u33ff\ua640-\ua69f\ua720-\ua7ff\uf900-\ufeff\uff00-\uffff"
"""Latin, punctuation, Chinese, Japanese and Korean, and the other forms of them."""

_UNSPACED = r"\u0e00-\u109f\u1780-\u17ff"
"""Thai, Lao, Tibetan, Burmese and Khmer: their words have no gaps between them, so a run is one."""

_SIGN = "[\U0001f1e6-\U0001f1ff]{2}|[\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
"""Flags, and emoji and symbols one by one; the shades of skin say nothing."""

_UNREAD = re.compile(
    rf"{_SIGN}|(?P<whole>[{_UNSPACED}](?:\s*[{_UNSPACED}])*)"
    rf"|[^\s{_SPELLED}{_OTHERWISE_READ}{_AND_WIDE}\U0001f000-\U0001faff]+"
)
_GAP = re.compile(r"[\s\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f،؛؟।]+")
_SPELLED_LETTER = re.compile(f"[{_SPELLED}]")
_LETTER = re.compile(rf"[^\W\d_{_SPELLED}]")


def unread(text: str) -> Iterator[str]:
    """The words that are one token whatever they say, folded: all the vector says is that they are.

    Such are the words of most scripts, emoji and symbols.
    """
    for match in () if text.isascii() else _UNREAD.finditer(text):
        yield "".join(match.group().casefold().split())


def foreign(text: str) -> frozenset[str]:
    """The words of a text most of whose letters are of a script that is read letter by letter.

    Such texts are nearer to each other than what they say. None for any other text, as for most of
    Latin letters. A mark is a part of its word: without the vowels Hindi has few words left.
    """
    if text.isascii():
        return frozenset()
    spelled = len(_SPELLED_LETTER.findall(text))
    if not spelled or spelled <= len(_LETTER.findall(text)):
        return frozenset()
    return frozenset(_GAP.split(text.casefold())) - {""}
