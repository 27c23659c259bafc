"""A process that writes to a store and tends it, until it is done or killed.

    tending_child.py PATH PREFIX COUNT [LIMIT]

It prints a line for each add that was acknowledged: its text, and what the result says of upkeep.
With LIMIT no file may grow beyond as many bytes, until a line comes in on stdin.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from datetime import timedelta

import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore, Retain, Upkeep

EAGER = Upkeep(
    mode="inline",
    fragments=3,
    unindexed_rows=8,
    versions=4,
    retain=Retain(last=6, hours=0, days=0, weeks=0, months=0, within=timedelta(0)),
)
"""Tends after every few adds."""


def vectors(texts):
    return np.stack([np.random.default_rng(len(t) + sum(map(ord, t))).random(8) for t in texts])


def opened(path, upkeep=EAGER):
    embedder = FunctionEmbedder(vectors, name="tending-8", dimension=8)
    return MemoryStore.open(path, embedder=embedder, upkeep=upkeep)


def limit(size):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def main(path, prefix, count, most=None):
    store = opened(path)
    noise, grown = random.Random(0), bool(most)
    if most:
        limit(int(most))
    for i in range(int(count)):
        text = f"{prefix} {i} {noise.randbytes(4_000).hex() if grown else ''}".strip()
        result = store.add(text)
        sys.stdout.write(json.dumps({"text": text, "upkeep": result.upkeep}) + "\n")
        sys.stdout.flush()
        if most and result.upkeep:
            sys.stdin.readline()
            limit(resource.RLIM_INFINITY)
            most = None


if __name__ == "__main__":
    main(*sys.argv[1:])
