"""A process that ends itself between the file and the retiring: `python retain_child.py STORE TO`."""

from __future__ import annotations

import os
import signal
import sys
import zlib
from datetime import UTC, datetime, timedelta

import lance
import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore

START = datetime(2025, 1, 1, tzinfo=UTC)


def vectors(texts):
    return np.stack([np.random.default_rng(zlib.crc32(t.encode())).normal(size=16) for t in texts])


def open_store(path, *, days=0):
    embedder = FunctionEmbedder(vectors, name="killed-16", dimension=16)
    moment = START + timedelta(days=days)
    return MemoryStore.open(path, embedder=embedder, clock=lambda: moment, upkeep=None)


def main(path, archive):
    store = open_store(path, days=91)

    def killed(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    lance.LanceDataset.commit = killed
    store.retain(archive=archive)


if __name__ == "__main__":
    main(*sys.argv[1:])
