"""Made-up memories for the speed scripts: vectors in nested clusters, words as frequent as words are.

Everything follows from a seed. Real embeddings form topics within topics, so a flat cloud would make
an index look better than it is under a filter that keeps one topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

DIMENSION = 384
TOPICS, SUBTOPICS = 40, 25
SYLLABLES = [f"{a}{b}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u")]
VOCABULARY = 5_000
WORDS = 18


@dataclass(frozen=True, slots=True)
class Corpus:
    """Unit vectors float32 [n, d], a sentence each, and the subtopic of each, int [n]."""

    vectors: NDArray[np.float32]
    contents: list[str]
    subtopics: NDArray[np.int64]

    def table(self, **columns: NDArray[np.str_]) -> pa.Table:
        """As `add_many` takes it."""
        embedding = pa.FixedSizeListArray.from_arrays(
            pa.array(self.vectors.ravel()), self.vectors.shape[1]
        )
        return pa.table({"content": self.contents, **columns, "embedding": embedding})


def corpus(count: int, seed: int, *, first: int = 0) -> Corpus:
    """So many memories; `first` numbers them on, so that no two contents are the same."""
    rng = np.random.default_rng(seed)
    subtopics = rng.integers(TOPICS * SUBTOPICS, size=count)
    return Corpus(around(centres()[subtopics], 0.6, rng), sentences(count, rng, first), subtopics)


def centres() -> NDArray[np.float64]:
    """The middle of each subtopic, the same for every seed."""
    rng = np.random.default_rng(7)
    topics = rng.normal(size=(TOPICS, 1, DIMENSION))
    return (topics + 0.7 * rng.normal(size=(TOPICS, SUBTOPICS, DIMENSION))).reshape(-1, DIMENSION)


def around(
    middles: NDArray[np.float64] | NDArray[np.float32], noise: float, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Unit vectors near the middles [n, d]."""
    noisy = middles + noise * rng.standard_normal(size=middles.shape, dtype=np.float32)
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def questions(among: NDArray[np.float32], count: int, seed: int) -> NDArray[np.float32]:
    """Unit vectors as near to some of these [n, d] as a question is to its answer (cosine .7)."""
    rng = np.random.default_rng(seed)
    chosen = among[rng.integers(len(among), size=count)]
    return around(chosen, 1.0 / np.sqrt(DIMENSION), rng)


@cache
def vocabulary() -> tuple[str, ...]:
    """Pronounceable words, all different."""
    rng = np.random.default_rng(11)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(rng.choice(SYLLABLES, size=rng.integers(2, 5)))] = None
    return tuple(words)


def frequencies() -> NDArray[np.float64]:
    """Of each word, after Zipf."""
    weights = 1 / np.arange(1, VOCABULARY + 1)
    return np.asarray(weights / weights.sum())


def sentences(count: int, rng: np.random.Generator, first: int = 0) -> list[str]:
    """Sentences of 18 words, with a number that makes each one of its kind."""
    words = np.array(vocabulary())
    picks = rng.choice(VOCABULARY, size=(count, WORDS), p=frequencies())
    return [f"{' '.join(words[row])} {first + i}" for i, row in enumerate(picks)]


def asked(count: int, seed: int, *, words: int = 6) -> list[str]:
    """Questions of a few words, as frequent as they are in the sentences."""
    rng = np.random.default_rng(seed)
    known = np.array(vocabulary())
    return [
        " ".join(known[row]) for row in rng.choice(VOCABULARY, size=(count, words), p=frequencies())
    ]
