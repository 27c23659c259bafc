"""What a text says, roughly: its words, and the facts that must not get lost.

Rules only, no model: numbers, names (words with a capital inside a sentence, and acronyms) and
negations carry the facts; the other words carry the topic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["content_words", "joined", "kept", "salient", "sentences", "strip_accents"]

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_TOKEN = re.compile(
    r"(?<![\w.,])[-\u2212]?\d+(?:[.,:/\-]\d+)*"  # numbers, dates, times as one token, with sign
    r"|\d+(?:[.,:/\-]\d+)*"
    r"|[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]"  # a CJK character each
    r"|[^\W\d_]+(?:['’][^\W\d_]+)?"  # words, contractions in one piece
)
_NEGATION = re.compile(
    r"^(?:not|no|never|none|nothing|without|cannot|.+n['’]t|não|nunca|pas|不|没)$"
)
_STOP = frozenset(
    """
    a an and are as at be been being but by can could did do does for from get got had has have he
    her hers him his how i i'd i'll i'm i've if in into is it it's its just like me mine my of off
    on or our out please really remember she should so some still such than that that's the their
    them then there these they this those to too up us very was we were what when where which who
    will with would you your yes again also actually note know tell told say said careful exactly
    important thing things one first last once more list sure right repeat remind write down
    correct
    """.split()  # noqa: SIM905 (a list of words reads better as text)
)


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, none empty."""
    return [part.strip() for part in _SENTENCE.split(text) if part and part.strip()]


def joined(parts: Iterable[str]) -> str:
    """Sentences as one text that `sentences` parts again: a line each where one has no end."""
    text = ""
    for part in parts:
        gap = " " if text.endswith(tuple(".!?。！？")) else "\n"
        text += f"{gap}{part}" if text else part
    return text


def content_words(text: str) -> frozenset[str]:
    """Casefolded, accent-free words and numbers, without the stop words."""
    words = (strip_accents(token.casefold()).replace("’", "'") for token in _TOKEN.findall(text))
    return frozenset(word for word in words if word not in _STOP)


def salient(text: str) -> frozenset[str]:
    """Numbers, names and negations of a text."""
    found: set[str] = set()
    for sentence in sentences(text):
        for place, token in enumerate(_TOKEN.findall(sentence)):
            plain = strip_accents(token.casefold()).replace("’", "'")
            name = token[0].isupper() and (place > 0 or (token.isupper() and len(token) > 1))
            if _NEGATION.match(token.casefold()):
                found.add("not")
            elif token[-1].isdigit() or (name and plain not in _STOP):
                found.add(plain)
    return frozenset(found)


def kept(sources: Iterable[str], derived: str) -> float:
    """Fraction 0..1 of the sources' numbers and names that `derived` still holds.

    1.0 where the sources have none.
    """
    wanted = frozenset().union(*map(salient, sources)) - {"not"}
    held = content_words(derived) | salient(derived)
    return len(wanted & held) / len(wanted) if wanted else 1.0


def strip_accents(text: str) -> str:
    """The text without combining marks: `ação` → `acao`."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c))
