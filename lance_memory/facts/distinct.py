"""Which memories say different things, however near their vectors are.

An embedder hardly tells `5` from `6`, `Ana` from `Eva` or `likes` from `does not like`. Rules do:
two memories conflict where each has a number, a unit, a name, a month, a weekday or a side of an
opposite that the other lacks, or where one denies and the other does not. One that merely says more
does not conflict.

An embedder made for English reads other scripts badly. Words it does not read at all (Thai,
Amharic, emoji) are such facts too; of two texts in letters that it only spells (Russian, Arabic,
Hindi) one must have half of the words of the other.

What the rules cannot see: names in scripts without capitals, but for the places in `lexicon`;
who did what to whom (`Ana met Eva`); Chinese characters that the embedder does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_memory.facts import STOP, is_negation, is_portuguese, plain, sentences, tokens
from lance_memory.facts.lexicon import COMMON, DENIALS, ENDED, OPPOSITES, PERSON, PLACES
from lance_memory.facts.numbers import numbers
from lance_memory.facts.scripts import foreign, unread
from lance_memory.facts.units import measures

__all__ = ["Apart", "Facts", "conflict", "facts"]


_SHARED = {"wording": 0.5}
"""What share of the fewer values of a kind two texts have in common; of other kinds: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What of a text must not be mixed up with another's.

    Attributes:
        values: kind ("number", "name", "month", ... or an opposite) → its values in the text.
        negated: whether something is denied.
    """

    values: Mapping[str, frozenset[str]]
    negated: bool


def conflict(a: Facts, b: Facts) -> str | None:
    """Why the two must not become one memory, as "number 5 against 6"; None where they may."""
    for kind, some in a.values.items():
        others = b.values.get(kind, some)
        if len(some & others) < _SHARED.get(kind, 1) * min(len(some), len(others)):
            mine, theirs = (", ".join(sorted(s)) for s in (some - others, others - some))
            return f"{kind} {mine} against {theirs}"
    return "a negation against none" if a.negated != b.negated else None


def facts(texts: Sequence[str]) -> list[Facts]:
    """The facts of each text.

    A capitalised word inside a sentence is a name, and so is one at the beginning, unless it is a
    common word or one of these texts has it in lower case.
    """
    seen = _Seen()
    telling = [seen.told(_words(text)) for text in texts]
    return [
        _facts(
            text,
            names={word.plain for word in words if seen.is_name(word)},
            undone=any(_undone(word.plain) in seen.known for word in words),
        )
        for text, words in zip(texts, telling, strict=True)
    ]


class Apart:
    """The conflicts among the rows of a group, asked about by position."""

    def __init__(self, found: Sequence[Facts], *, at: NDArray[np.int64], of: int) -> None:
        """Take in the facts of the rows at the positions `at` of a group of `of` rows."""
        keys = [(tuple(some.values.items()), some.negated) for some in found]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        self._number = np.zeros(of, np.int64)
        self._number[at] = [number[key] for key in keys]
        self._distinct = [Facts(values=dict(values), negated=no) for values, no in number]
        self._negated = np.array([some.negated for some in self._distinct], np.bool_)
        self._kinds = [
            (*_incidence(self._distinct, kind), _SHARED.get(kind, 1))
            for kind in _kinds(self._distinct)
        ]

    def alike(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number for each of the rows, the same where all facts are."""
        numbers: NDArray[np.int64] = self._number[rows]
        return numbers

    def conflict(self, a: int, b: int) -> str | None:
        """See `conflict`."""
        one, other = self._number[a], self._number[b]
        return None if one == other else conflict(self._distinct[one], self._distinct[other])

    def pairs(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the pairs (a[i], b[i]) may be together, bool [p]."""
        count = len(self._distinct)
        codes, where = np.unique(self._number[a] * count + self._number[b], return_inverse=True)
        may = [
            one == other or conflict(self._distinct[one], self._distinct[other]) is None
            for one, other in zip(*(part.tolist() for part in np.divmod(codes, count)), strict=True)
        ]
        answers: NDArray[np.bool_] = np.array(may, np.bool_)[where]
        return answers

    def allowed(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the rows a [m] may be with which of the rows b [n], bool [m, n]."""
        rows, columns = self._number[a], self._number[b]
        may: NDArray[np.bool_] = self._negated[rows][:, None] == self._negated[columns]
        for values, sizes, share in self._kinds:
            common = (values[rows] @ values[columns].T).toarray()
            may &= common >= share * np.minimum(sizes[rows][:, None], sizes[columns])
        return may


def _kinds(found: Iterable[Facts]) -> list[str]:
    return list(dict.fromkeys(kind for some in found for kind in some.values))


def _incidence(found: Sequence[Facts], kind: str) -> tuple[Any, NDArray[np.float32]]:
    """Which text has which values of a kind, sparse [texts, values], and how many each has."""
    from scipy.sparse import csr_array

    sets = [some.values.get(kind, frozenset()) for some in found]
    number = {value: i for i, value in enumerate(dict.fromkeys(v for some in sets for v in some))}
    columns = np.array([number[value] for some in sets for value in some], np.int64)
    sizes = np.array([len(some) for some in sets], np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    ones = np.ones(len(columns), np.float32)
    matrix = csr_array((ones, columns, ends), shape=(len(sets), len(number)))
    return matrix, sizes.astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """A word of a text, folded, and how it is written."""

    plain: str
    capital: bool
    acronym: bool
    first: bool


class _Seen:
    """How the words of all texts are written."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._lower: set[str] = set()
        self._inner: set[str] = set()

    def told(self, words: Iterable[_Word]) -> list[_Word]:
        """Take the words of a text in; those that may be its facts."""
        telling = []
        for word in words:
            self.known.add(word.plain)
            if not word.capital:
                self._lower.add(word.plain)
            elif not word.first:
                self._inner.add(word.plain)
            if word.capital or _undone(word.plain):
                telling.append(word)
        return telling

    def is_name(self, word: _Word) -> bool:
        """Whether it is written as a name, and, of a first word, not known otherwise."""
        if not word.capital or word.plain in COMMON or word.plain in STOP:
            return False
        sure = not word.first or word.acronym or word.plain in self._inner
        return sure or self._lower.isdisjoint({word.plain, word.plain.removesuffix("s")})


def _words(text: str) -> list[_Word]:
    """The words as evidence for names; of a possessive the name alone."""
    found = []
    for sentence in sentences(text):
        for place, token in enumerate(tokens(sentence)):
            word = plain(token).partition("'")[0]
            if len(word) > 1 and word.isalpha() and not is_negation(token):
                acronym = any(c.isupper() for c in token[1:])
                capital = acronym or token[0].isupper()
                found.append(_Word(plain=word, capital=capital, acronym=acronym, first=not place))
    return found


def _undone(word: str) -> str:
    """The word that `unreproducible` denies; known, where one of the texts has it."""
    return word[2:] if word.startswith("un") and len(word) > 5 else ""


def _facts(text: str, *, names: AbstractSet[str], undone: bool) -> Facts:
    folded = plain(text)
    values: dict[str, set[str]] = {}
    other: set[str] = set()
    for kind, value, written in _told(text, folded):
        values.setdefault(kind, set()).add(value)
        other.update(re.split(r"\W+", written))
    named = {*(names - other), *_PLACE.findall(text), *_PERSON.findall(text)}
    named.update(letter.casefold() for letter in _LETTER.findall(text))
    apart = {"name": named, "word": unread(text), "wording": foreign(text), "file": _files(text)}
    values |= {kind: set(some) for kind, some in apart.items()}
    return Facts(
        values={kind: frozenset(some) for kind, some in sorted(values.items()) if some},
        negated=undone or _denies(text) or bool(_ENDED.search(folded)),
    )


def _told(text: str, folded: str) -> Iterator[tuple[str, str, str]]:
    """Quantities, units and sides of opposites: kind, value, and the words, which are no names."""
    quantities = numbers(text)
    for quantity in quantities:
        yield quantity.kind, quantity.value, plain(quantity.written)
    for measure, written in measures(text, quantities):
        yield "unit", measure, written
    for side in _opposite().finditer(folded):
        family, _, value = str(side.lastgroup).partition("_")
        yield family, value, side.group()


def _files(text: str) -> Iterator[str]:
    """The names of files and folders, and addresses."""
    for path in _FILE.findall(text) if "." in text else ():
        yield from path.casefold().split("/")


def _denies(text: str) -> bool:
    words = tokens(text)
    portuguese = is_portuguese(words)
    return any(is_negation(word, portuguese=portuguese) for word in words)


def _words_of(pattern: str) -> str:
    """As whole words; Chinese, which has no gaps between words, anywhere."""
    return rf"(?<![a-z])(?:{pattern})(?![a-z])"


@cache
def _opposite() -> re.Pattern[str]:
    """A group for each side. Made at first use: that takes as long as a search."""
    sides = "|".join(
        f"(?P<{family}_{side}>{forms})"
        for family, sides in OPPOSITES.items()
        for side, forms in sides.items()
    )
    return re.compile(_words_of(sides))


_ENDED = re.compile(_words_of(f"{DENIALS}|{ENDED}"))
_FILE = re.compile(r"(?<![\w@./-])(?:[\w@-]+[./])*[\w@-]+\.(?:[a-z][a-z0-9]{1,4}|[chr])(?!\w)")
_LETTER = re.compile(r"(?<=\w )[A-HJ-Z](?:\+\+|#)?(?![\w'’-])")
"""A capital alone behind a word names a gate, a plan or a vitamin. `I` does not."""
_PERSON = re.compile(PERSON)
_PLACE = re.compile("|".join(PLACES))
