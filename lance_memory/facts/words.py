"""What a text says, roughly: its words, and the facts that must not get lost.

Rules only, no model: numbers, names (words with a capital inside a sentence, and acronyms) and
negations carry the facts; the other words carry the topic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lance_memory.facts.folding import CJK, plain
from lance_memory.facts.lexicon import NEGATIONS
from lance_memory.facts.numbers import numbers

__all__ = [
    "STOP",
    "Dropped",
    "content_words",
    "dropped",
    "is_negation",
    "is_portuguese",
    "joined",
    "said",
    "sentence_spans",
    "sentences",
    "tokens",
]

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_TOKEN = re.compile(
    r"(?<![\w.,])[-\u2212]?\d+(?:[.,:/\-]\d+)*"  # numbers, dates, times as one token, with sign
    r"|\d+(?:[.,:/\-]\d+)*"
    rf"|[{CJK}]"  # a character each
    r"|[^\W\d_]+(?:['’][^\W\d_]+)?"  # words, contractions in one piece
)
_I_AM = re.compile(r"\bI am\b", re.IGNORECASE)  # and not the "am" of nine o'clock
_NEGATION = re.compile(f"^(?:{NEGATIONS})$")
_PORTUGUESE = frozenset("é da do das dos uma um em está às ao não são pela pelo".split())  # noqa: SIM905
STOP = frozenset(
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


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Where each sentence of a text begins, and where the next one does."""
    starts = [0, *(match.end() for match in _SENTENCE.finditer(text) if match.end() < len(text))]
    return [*zip(starts, [*starts[1:], len(text)], strict=True)]


def joined(parts: Iterable[str]) -> str:
    """Sentences as one text that `sentences` parts again: a line each where one has no end."""
    text = ""
    for part in parts:
        gap = " " if text.endswith(tuple(".!?。！？")) else "\n"
        text += f"{gap}{part}" if text else part
    return text


def tokens(text: str) -> list[str]:
    """The words, numbers and CJK characters of a text, as they are written."""
    return _TOKEN.findall(text)


def is_negation(token: str, *, portuguese: bool = False) -> bool:
    """Whether the token denies; `no` does not in Portuguese, where it means "in the"."""
    folded = token.casefold()
    return _NEGATION.match(folded) is not None and not (portuguese and folded == "no")


def is_portuguese(words: Iterable[str]) -> bool:
    """Whether some of the words are Portuguese, and no other language's that is known here."""
    return not _PORTUGUESE.isdisjoint(word.casefold() for word in words)


def content_words(text: str) -> frozenset[str]:
    """Casefolded, accent-free words and numbers, without the stop words."""
    return frozenset(word for word in map(plain, tokens(text)) if word not in STOP)


def said(text: str) -> tuple[frozenset[str], bool]:
    """The words and facts of a text, and whether it denies; `at two` says what `at 2` does."""
    rest, facts = text, {part for parts, _ in _facts(text) for part in parts}
    for q in numbers(text):
        end = q.start + len(q.written)
        rest = rest[: q.start] + " " * len(q.written) + rest[end:]
    rest = _I_AM.sub("I'm", rest)
    return (content_words(rest) | facts) - {"not"}, "not" in facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """The facts of some sources that a derived text lacks.

    Attributes:
        missing: as the sources write them, in order of first appearance, each once; "not" stands
            for a negation.
        share: of the sources' facts, 0..1; 0 where they have none.
    """

    missing: tuple[str, ...]
    share: float


def dropped(sources: Iterable[str], derived: str) -> Dropped:
    """Which numbers, names, dates and negations of the sources `derived` lacks.

    A number, time or date counts as held however it is written: `two` for `2`.
    """
    wanted: dict[tuple[str, ...], str] = {}
    for source in sources:
        for facts, written in _facts(source):
            wanted.setdefault(facts, written)
    held = content_words(derived) - {"not"}
    held |= {fact for facts, _ in _facts(derived) for fact in facts}
    missing = tuple(written for facts, written in wanted.items() if not held.issuperset(facts))
    return Dropped(missing=missing, share=len(missing) / len(wanted) if wanted else 0.0)


def _facts(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each number, date, name and negation as it is compared and as it is written, in order.

    A date as `2025-01-31` is compared in three parts, for another text may spell it.
    """
    found: dict[int, tuple[tuple[str, ...], str]] = {}
    taken: set[int] = set()
    for q in numbers(text):
        parts, _ = found.get(q.start, ((), ""))
        found[q.start] = ((*parts, f"{q.kind} {q.value}"), q.written)
        taken.update(range(q.start, q.start + len(q.written)))
    end, portuguese = 0, is_portuguese(tokens(text))
    for sentence in sentences(text):
        start = text.index(sentence, end)
        end = start + len(sentence)
        for place, match in enumerate(_TOKEN.finditer(sentence)):
            token, at = match.group(), start + match.start()
            if is_negation(token, portuguese=portuguese):
                found[at] = (("not",), "not")
            elif at not in taken and _is_name(token, first=place == 0):
                found[at] = ((plain(token),), token)
    return (found[at] for at in sorted(found))


def _is_name(token: str, *, first: bool) -> bool:
    """A capital inside a sentence, or an acronym; the first word's capital says nothing."""
    acronym = token.isupper() and len(token) > 1
    return token[0].isupper() and (acronym or not first) and plain(token) not in STOP
