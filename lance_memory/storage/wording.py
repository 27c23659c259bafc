"""Words for the text index: what the engine is asked for a text.

The index cuts Korean at spaces, and there a particle hangs on the noun: `서울에서` is "in Seoul",
`서울은` "Seoul, as for". So a Korean word is asked for by its stem, and finds what begins with it
and ends at most three syllables later. Nothing in a text is an operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce

from lance_memory.storage.engine import lance

__all__ = ["korean_stems", "text_query", "words_beginning"]

_KOREAN = re.compile(r"[\uac00-\ud7a3]+")
_PARTICLES = re.compile(
    "(?:으로부터|로부터|에게서|한테서|이라도|입니다|에서는|에서도|에게는|까지는|부터는"
    "|에서|에게|한테|께서|으로|까지|부터|마다|보다|처럼|조차|밖에|라도|이나|이랑|하고|이다|에는|에도"
    "|은|는|이|가|을|를|의|에|도|만|와|과|로|나|랑|께)$"
)
_LONGEST_ENDING = 3
_MOST_STEMS = 32  # of one text: each is a query of its own


def korean_stems(text: str) -> list[str]:
    """The Korean words of `text` without their particles, where that leaves two syllables."""
    words = dict.fromkeys(_KOREAN.findall(text))
    stems = (_PARTICLES.sub("", word) for word in words)
    kept = (s if len(s) > 1 else w for s, w in zip(stems, words, strict=True))
    return list(dict.fromkeys(kept))[:_MOST_STEMS]


def words_beginning(stems: Iterable[str], contents: Iterable[str]) -> list[str]:
    """The Korean words of the contents that begin with one of the stems and end soon after."""
    words = {word for content in contents for word in _KOREAN.findall(content)}
    return sorted(
        {
            word
            for stem in stems
            for word in words
            if word.startswith(stem) and len(word) <= len(stem) + _endings(stem)
        }
    )


def text_query(text: str, column: str, *, stems: Iterable[str] = ()) -> lance.query.FullTextQuery:
    """Any of the words of `text`, or an indexed word that begins with one of the stems."""
    whole = lance.query.MatchQuery(text, column)
    return reduce(lambda query, stem: query | _beginning(stem, column), stems, whole)


def _beginning(stem: str, column: str) -> lance.query.FullTextQuery:
    return lance.query.MatchQuery(stem, column, fuzziness=_endings(stem), prefix_length=len(stem))


def _endings(stem: str) -> int:
    return _LONGEST_ENDING if len(stem) > 1 else 1
