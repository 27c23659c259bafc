"""Known actors that a question names.

A name breaks the vector leg: "When did Melanie run?" is nearest to what is said *to* Melanie. So
names that the scope knows as actors are dropped before embedding, and when exactly one actor is
named her own memories get a bonus. Measured on LoCoMo, recall@10: the vector
leg alone 63 in place of 37 (tuning half), and +1.2 points for the bonus (design/006).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lance_memory.storage.ranking.wording import without_particle

__all__ = ["Mentions", "Names"]

_LONGEST = 4_000
"""Characters in which names are looked for: what is longer is a document, and no question."""

_ROLES = "user users assistant system tool human agent ai bot model"
_ORDINARY = (
    "a an the this that these those "
    "in on at of to from for with by about into over under as and or but not if no yes "
    "i me my mine you your yours he him his she her hers it its we us our ours they them their "
    "who whom whose what which when where why how there here "
    "am is are was were be been being do does did have has had can could should would shall might "
    "must"
)
_NO_NAMES = frozenset(f"{_ROLES} {_ORDINARY}".split())
"""Roles stand in the actor column of many chats, and people fill it with ordinary words too. `will`
and `may` are not here: Will and May are people."""

_SHORTEST_PART = 3
_LONGEST_NAME = 4
_WORD = re.compile(r"[^\W_](?:[\w.@'’-]*[\w])?")
_POSSESSIVE = re.compile(r"['’]s?$")
# Scripts that put no space between words: a name is found anywhere in the text. Not so Korean.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_SYLLABIC = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_KATAKANA = re.compile(r"[\u30a1-\u30fa\u30fc]")
_KOREAN_END = re.compile(r"[\uac00-\ud7a3]$")
_STRAIGHT = str.maketrans("’ʼ＇", "'''")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    """Where a text names known actors.

    Attributes:
        actors: for each name in the text the actors that it may mean, as the store writes them.
        without: the text without these names; as it was, where nothing else is said.
    """

    actors: tuple[frozenset[str], ...] = ()
    without: str = ""

    @property
    def single(self) -> frozenset[str]:
        """The actors that the only name in the text may mean; nobody where there is not one."""
        return self.actors[0] if len(self.actors) == 1 else frozenset()


class _Span(NamedTuple):
    """A name in a text, and whom it may mean."""

    start: int
    end: int
    meant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Names:
    """The names that actors go by: in full, and each word of a name of several."""

    spaced: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unspaced: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, actors: Iterable[str]) -> Names:
        """Of the actors of a scope."""
        called: dict[str, set[str]] = {}
        for actor in actors:
            for name in _names(actor):
                called.setdefault(name, set()).add(actor)
        frozen = {name: frozenset(meant) for name, meant in called.items()}
        unspaced = {name: meant for name, meant in frozen.items() if _UNSPACED.search(name)}
        spaced = {name: meant for name, meant in frozen.items() if name not in unspaced}
        return cls(spaced, unspaced)

    def mentioned(self, text: str) -> Mentions:
        """The actors that the first 4,000 characters of `text` name.

        The longest names first where they overlap. `text` is read composed (NFC), and so is what is
        left of it.
        """
        composed = unicodedata.normalize("NFC", text)
        kept = _apart([*self._spaced(composed[:_LONGEST]), *self._unspaced(composed[:_LONGEST])])
        if not kept:
            return Mentions(without=text)
        without = _cut(composed, kept)
        return Mentions(
            actors=tuple(dict.fromkeys(span.meant for span in kept)),
            without=without if re.search(r"\w", without) else text,
        )

    def _spaced(self, text: str) -> Iterator[_Span]:
        if not self.spaced:
            return
        words = list(_WORD.finditer(text))
        capitals = any(character.isupper() for character in text)
        for first, word in enumerate(words):
            for last in words[first : first + _LONGEST_NAME]:
                said = text[word.start() : last.end()]
                for name in _bare(said):
                    meant = self.spaced.get(_folded(name))
                    # Who writes "Mark" with a capital means another "mark" without one.
                    if meant and not (capitals and name.islower() and not _any_lower(meant)):
                        yield _Span(word.start(), last.end(), meant)

    def _unspaced(self, text: str) -> Iterator[_Span]:
        folded = "".join(map(_folded_alone, text))
        for name, meant in self.unspaced.items():
            start = folded.find(name)
            while start >= 0:
                end = start + len(name)
                if not _within_katakana(folded, start, end):
                    yield _Span(start, end, meant)
                start = folded.find(name, end)


def _names(actor: str) -> Iterator[str]:
    name = " ".join(_folded(actor).split())
    syllable = len(name) == 1 and _SYLLABIC.match(name)
    if not re.search(r"\w", name) or name in _NO_NAMES or syllable:
        return
    yield name
    parts = name.split(" ")
    if len(parts) > 1:
        yield from (p for p in parts if len(p) >= _SHORTEST_PART and p not in _NO_NAMES)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.translate(_STRAIGHT)).casefold()


def _folded_alone(character: str) -> str:
    """So that places stay: a letter that folds to two stays as it is."""
    folded = character.casefold()
    return folded if len(folded) == 1 else character


def _bare(said: str) -> set[str]:
    """What a name may be that is said so: without `'s`, or up to two Korean particles."""
    name = _POSSESSIVE.sub("", said)
    if not _KOREAN_END.search(name):
        return {name}
    once = without_particle(name)
    return {name, once, without_particle(once)}


def _within_katakana(text: str, start: int, end: int) -> bool:
    """Whether a name in katakana is part of a longer word: アン in アンパン."""
    before, after = text[start - 1 : start], text[end : end + 1]
    return bool(
        (_KATAKANA.match(before) and _KATAKANA.match(text[start]))
        or (_KATAKANA.match(after) and _KATAKANA.match(text[end - 1]))
    )


def _any_lower(actors: Iterable[str]) -> bool:
    return any(actor.islower() for actor in actors)


def _apart(spans: Iterable[_Span]) -> list[_Span]:
    """Those that do not overlap, the longest first; in the order of the text."""
    ordered = sorted(dict.fromkeys(spans), key=lambda span: span.start - span.end)
    taken = bytearray(max((span.end for span in ordered), default=0))
    kept = []
    for span in ordered:
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


def _cut(text: str, spans: Iterable[_Span]) -> str:
    pieces, end = [], 0
    for span in spans:
        pieces.append(text[end : span.start])
        end = span.end
    return " ".join(" ".join([*pieces, text[end:]]).split())
