"""What the tests share: a small embedder, a clock that ticks, and a real store in tmp_path."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from functools import cache

import numpy as np
import pytest

from lance_memory import FunctionEmbedder, MemoryStore

DIMENSION = 16
START = datetime(2025, 1, 1, tzinfo=UTC)


class TickingClock:
    """One second later at each look, from 2025-01-01 UTC on."""

    def __init__(self, start=START):
        self.now = start

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now

    def forward(self, **delta):
        """Let time pass, and return the new moment."""
        self.now += timedelta(**delta)
        return self.now


@cache
def _direction(word):
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION)


def embed_words(texts):
    """Float64 [n, 16]: the sum of a fixed direction for each word, so shared words mean near."""
    return np.stack([sum(map(_direction, text.casefold().split())) for text in texts])


@pytest.fixture(scope="session")
def embedder():
    """Deterministic; texts of the same words have cosine 1, texts that share words are near."""
    return FunctionEmbedder(embed_words, name="words-16", dimension=DIMENSION)


@pytest.fixture(scope="session")
def ticking():
    """The clock's class, for stores that outlive one test."""
    return TickingClock


@pytest.fixture
def clock():
    return TickingClock()


@pytest.fixture
def reopen(embedder, clock):
    """Opens a store, or makes one, with the shared embedder and clock."""

    def open_store(path, **options):
        return MemoryStore.open(path, **{"embedder": embedder, "clock": clock, **options})

    return open_store


@pytest.fixture
def store(tmp_path, reopen):
    return reopen(tmp_path / "store")
