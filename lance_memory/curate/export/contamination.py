"""Whether an example gives away a text of the evaluation set."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_memory.curate.export.evaluation import Evaluation
from lance_memory.facts import CJK
from lance_memory.record.unit import SLACK, unit

__all__ = ["Match", "Screen", "words"]

_SHORTEST = 8
"""Fewer words in a row say too little: GPT-3's least n (Brown et al. 2020, appendix C)."""

_WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What gave an example away.

    Attributes:
        by: "ngram" or "cosine".
        evaluation: position of the evaluation text, 0-based.
        found: the words in common, or the cosine.
    """

    by: str
    evaluation: int
    found: str


class Screen:
    """An evaluation set, ready to be compared with one example after the other.

    A set of the n-grams themselves: an evaluation set is small, so neither sketches nor hashes
    that may collide are called for.
    """

    def __init__(
        self, evaluation: Evaluation, embed: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> None:
        self._grams: dict[str, int] = {}
        self._whole: dict[str, int] = {}
        self._lengths: set[int] = set()
        self._floor = evaluation.similarity
        self._embed = embed
        if evaluation.ngram is not None:
            for number, text in enumerate(evaluation.texts):
                self._learn(number, words(text), evaluation.ngram)
        if evaluation.similarity is not None:
            self._numbers = [i for i, text in enumerate(evaluation.texts) if text.strip()]
            self._vectors = unit(embed([evaluation.texts[i] for i in self._numbers]))

    @property
    def compares_vectors(self) -> bool:
        """Whether `match` looks at vectors."""
        return self._floor is not None

    def match(
        self, texts: Sequence[str], vectors: Sequence[NDArray[np.float32] | None] | None = None
    ) -> Match | None:
        """The first way in which one of the texts gives an evaluation text away, or None.

        Args:
            texts: the memories of one example; words in a row are looked for within each.
            vectors: float32 [d] for each text, or None where one has to be made.
        """
        found = next((m for text in texts if (m := self._by_words(text))), None)
        if found is None and self._floor is not None:
            found = self._by_vector(texts, vectors or [None] * len(texts), self._floor)
        return found

    def _learn(self, number: int, said: list[str], n: int) -> None:
        if len(said) < min(n, _SHORTEST):
            if said:
                self._whole.setdefault(" ".join(said), number)
            return
        length = min(n, len(said))
        self._lengths.add(length)
        for gram in _grams(said, length):
            self._grams.setdefault(gram, number)

    def _by_words(self, text: str) -> Match | None:
        if not self._lengths and not self._whole:
            return None
        said = words(text)
        whole = " ".join(said)
        if whole in self._whole:
            return Match(by="ngram", evaluation=self._whole[whole], found=whole)
        for length in sorted(self._lengths, reverse=True):
            for gram in _grams(said, length):
                if gram in self._grams:
                    return Match(by="ngram", evaluation=self._grams[gram], found=gram)
        return None

    def _by_vector(
        self,
        texts: Sequence[str],
        vectors: Sequence[NDArray[np.float32] | None],
        floor: float,
    ) -> Match | None:
        missing = [text for text, vector in zip(texts, vectors, strict=True) if vector is None]
        made = iter(self._embed(missing) if missing else ())
        rows = np.stack([next(made) if vector is None else vector for vector in vectors])
        cosines = unit(rows.astype(np.float32, copy=False)) @ self._vectors.T
        place = int(np.argmax(np.nan_to_num(cosines, nan=-2.0)))
        best = float(cosines.flat[place])
        if best < floor - SLACK:
            return None
        number = self._numbers[place % len(self._numbers)]
        return Match(by="cosine", evaluation=number, found=f"{best:.4f}")


def words(text: str) -> list[str]:
    """Casefolded words and numbers in order, without marks; a CJK character is a word."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _grams(said: list[str], length: int) -> Iterator[str]:
    return (" ".join(said[i : i + length]) for i in range(len(said) - length + 1))
