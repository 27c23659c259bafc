"""A process that counts uses of one procedure, from several threads, at the same time as others."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore, ProceduralMemory

NAME, THREADS, USES = "deploy", 2, 4


def procedures(place):
    """Procedures of a store in that directory, whose embedder gives every text one vector."""
    embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), 4)), name="ones", dimension=4)
    store = MemoryStore.open(place, embedder=embedder, upkeep=None)
    return ProceduralMemory(store.scoped(tenant="t", user="u"))


def counting(known):
    """Each thread records four uses: every second goes well, and they take 1 to 4 seconds."""

    def work():
        for number in range(1, USES + 1):
            known.record(NAME, success=number % 2 == 0, seconds=float(number))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    place, ready, go = sys.argv[1:]
    opened = procedures(place)
    Path(ready).touch()
    while not Path(go).exists():
        time.sleep(0.001)
    counting(opened)
