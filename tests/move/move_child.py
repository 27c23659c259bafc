"""What the processes of these tests do: `python move_child.py VERB STORE OTHER KILL AT`.

The process ends itself with the signal KILL at its AT-th call of what the verb names: a kill at
every place where something half done could stay.
"""

from __future__ import annotations

import os
import sys
import zlib

import lance
import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore
from lance_memory.move.backup.target import Target


def vectors(texts):
    return np.stack([np.random.default_rng(zlib.crc32(t.encode())).normal(size=16) for t in texts])


EMBEDDER = FunctionEmbedder(vectors, name="killed-16", dimension=16)


def open_store(path):
    return MemoryStore.open(path, embedder=EMBEDDER)


def dying(holder, name, number, count, *, after):
    """Make a function of the holder kill the process before or after its count-th call."""
    whole = getattr(holder, name)
    calls = 0

    def called(*given, **options):
        nonlocal calls
        calls += 1
        if calls == count and not after:
            os.kill(os.getpid(), number)
        done = whole(*given, **options)
        if calls == count and after:
            os.kill(os.getpid(), number)
        return done

    setattr(holder, name, called)


PLACES = {
    "rows": lambda number, count: dying(
        lance.fragment, "write_fragments", number, count, after=True
    ),
    "commit": lambda number, count: dying(lance.LanceDataset, "commit", number, count, after=True),
    "file": lambda number, count: dying(Target, "keep", number, count, after=True),
    "manifest": lambda number, count: dying(Target, "add", number, count, after=False),
}


def main(verb, store, other, place, number, count):
    opened = open_store(store) if verb != "lmem" else None
    PLACES[place](int(number), int(count))
    if verb == "import":
        opened.import_store(other)
    elif verb == "backup":
        opened.backup(other)
    else:
        from lmem.main import main as lmem

        sys.exit(lmem(["import-store", other, "--store", store]))


if __name__ == "__main__":
    main(*sys.argv[1:])
