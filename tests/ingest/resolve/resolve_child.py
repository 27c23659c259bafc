"""A process that tells a store every other one of 24 residences."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from conftest import DIMENSION, embed_words  # noqa: E402 (the paths come first)
from resolve_kit import Talk, lives  # noqa: E402

from lance_memory import FunctionEmbedder, MemoryStore  # noqa: E402
from lance_memory.ingest.resolve import Resolve, Routing, Whose  # noqa: E402


def main(path, k):
    embedder = FunctionEmbedder(embed_words, name="words-16", dimension=DIMENSION)
    store = MemoryStore.open(path, embedder=embedder, upkeep=None)
    talk = Talk(store, Resolve(routing=Routing(whose={"residence": Whose.SHARED})))
    for candidate in [lives(f"Town{i % 7}", day=i) for i in range(24)][k::2]:
        talk.put(candidate)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
