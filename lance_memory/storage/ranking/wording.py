"""Words for the text index: what the engine is asked for a text.

The index cuts Korean at spaces, and there a particle hangs on the noun: `서울에서` is "in Seoul",
`서울은` "Seoul, as for". So a Korean word is asked for by its stem, and finds what begins with it
and ends at most three syllables later. A noun of one syllable begins too many other words: it is
asked for with each particle, as whole words. Nothing in a text is an operator.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby

from lance_memory.storage.engine import lance

__all__ = [
    "korean_forms",
    "korean_stems",
    "korean_words",
    "text_query",
    "without_particle",
    "words_beginning",
]

_KOREAN = re.compile(r"[\uac00-\ud7a3]+")
_SPELT = (
    "으로부터 로부터 에게서 한테서 이라도 입니다 에서는 에서도 에게는 까지는 부터는 에서 에게 한테 "
    "께서 으로 까지 부터 마다 보다 처럼 조차 밖에 라도 이나 이랑 하고 이다 에는 에도 "
    "은 는 이 가 을 를 의 에 도 만 와 과 로 나 랑 께"
)
_PARTICLES = tuple(_SPELT.split())
_PARTICLE = re.compile(f"(?:{'|'.join(_PARTICLES)})$")
_LONGEST_ENDING = 3
_MOST_ENDINGS = 50  # of a stem
_MOST_STEMS = 32
_MOST_NOUNS = 8  # of one syllable: each is asked for in 45 forms


def without_particle(word: str) -> str:
    """A Korean word without the particle at its end, if there is one and it is not all of it."""
    return _PARTICLE.sub("", word) or word


def korean_stems(text: str) -> list[str]:
    """The Korean words of `text`, of two syllables or more, without their particles.

    A particle stays where less than two syllables would be left.
    """
    words = [word for word in dict.fromkeys(_KOREAN.findall(text)) if len(word) > 1]
    stems = (stem if len(stem) > 1 else word for word in words for stem in [without_particle(word)])
    return list(dict.fromkeys(stems))[:_MOST_STEMS]


def korean_forms(text: str) -> list[str]:
    """The nouns of one syllable in `text`, bare and with each particle."""
    nouns = dict.fromkeys(without_particle(word) for word in _KOREAN.findall(text))
    short = [noun for noun in nouns if len(noun) == 1][:_MOST_NOUNS]
    return [noun + particle for noun in short for particle in ("", *_PARTICLES)]


def korean_words(contents: Iterable[str]) -> list[str]:
    """The distinct Korean words of the contents, sorted."""
    return sorted({word for content in contents for word in _KOREAN.findall(content)})


def words_beginning(stems: Iterable[str], words: Sequence[str]) -> list[str]:
    """Those of the sorted words that begin with one of the stems and end soon after."""
    return sorted({word for stem in stems for word in _beginning_with(stem, words)})


def _beginning_with(stem: str, words: Sequence[str]) -> Iterator[str]:
    for place in range(bisect_left(words, stem), len(words)):
        if not words[place].startswith(stem):
            return
        if len(words[place]) <= len(stem) + _LONGEST_ENDING:
            yield words[place]


def text_query(text: str, column: str, *, stems: Iterable[str] = ()) -> lance.query.FullTextQuery:
    """Any of the words of `text`, or an indexed word that begins with one of the stems.

    Stems of one length share a query: for each the engine goes through all fresh rows.
    """
    whole = lance.query.MatchQuery(text, column)
    groups = groupby(sorted(stems, key=len), key=len)
    parts = (_beginning(list(group), column, length) for length, group in groups)
    return reduce(lambda query, part: query | part, parts, whole)


def _beginning(stems: Sequence[str], column: str, length: int) -> lance.query.FullTextQuery:
    return lance.query.MatchQuery(
        " ".join(stems),
        column,
        fuzziness=_LONGEST_ENDING,
        prefix_length=length,
        max_expansions=_MOST_ENDINGS * len(stems),
    )
