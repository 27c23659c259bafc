"""What every proof needs: a cheap embedder, a clock that is told when to tick, whole contents."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

import lance_memory
from lance_memory import FunctionEmbedder, MemoryStore, Upkeep

DIMENSION = 8
START = datetime(2025, 1, 1, tzinfo=UTC)


def vector(text):
    """A unit vector that depends on the text alone, float32 [8]."""
    digest = hashlib.blake2b(text.encode(), digest_size=4 * DIMENSION).digest()
    numbers = np.frombuffer(digest, dtype=np.uint32).astype(np.float64) / 2**32 - 0.5
    return (numbers / np.linalg.norm(numbers)).astype(np.float32)


EMBEDDER = FunctionEmbedder(
    lambda texts: [vector(text) for text in texts], name="proof-hash", dimension=DIMENSION
)


class Clock:
    """Stands still until it is told to tick, so a model knows every time that is written."""

    def __init__(self, start=START):
        self.now = start

    def __call__(self):
        return self.now

    def tick(self, seconds=1.0):
        self.now += timedelta(seconds=seconds)


class TickingClock(Clock):
    """A second later at each look."""

    def __call__(self):
        self.tick()
        return self.now


TENDED = {"upkeep": Upkeep()}
"""As stores are opened by default."""


def open_store(path, clock=None, **options):
    """Nobody tends it unless that is asked for: versions are what the programs write."""
    clocked = {} if clock is None else {"clock": clock}
    return MemoryStore.open(path, **{"embedder": EMBEDDER, "upkeep": None, **clocked, **options})


def contents(view):
    """The whole contents: id -> every column, embeddings included. No id stands there twice."""
    rows = view.to_arrow().to_pylist()
    found = {row["id"]: plain(row) for row in rows}
    assert len(found) == len(rows), "an id is doubled: " + repr(
        sorted(row["id"] for row in rows if sum(r["id"] == row["id"] for r in rows) > 1)
    )
    return found


def plain(row):
    """One row as values that compare exactly: JSON as canonical text, so that 0 is not False."""
    metadata = json.dumps(json.loads(row["metadata"]), sort_keys=True)
    return {**row, "metadata": metadata, "embedding": tuple(row["embedding"])}


def keys_held_twice(rows, now):
    """Keys that two live rows of one scope have. There must never be one."""
    seen, twice = set(), []
    for row in rows.values():
        live = row["state"] in ("active", "pending")
        live = live and (row["expires_at"] is None or row["expires_at"] > now)
        name = (row["key"], *(row[level] for level in SCOPE))
        if live and row["key"] is not None:
            twice += [name] if name in seen else []
            seen.add(name)
    return twice


SCOPE = ("tenant", "user", "agent", "session", "run")


def child_environment(**extra):
    """For processes: this folder's modules importable, and two threads at most each."""
    folders = Path(lance_memory.__file__).parents[1], Path(__file__).parent
    path = os.pathsep.join(map(str, folders))
    return {**os.environ, "PYTHONPATH": path, **extra}
