"""What the processes of the query log's tests do: `python recording_child.py VERB PATH ARGS`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore, QueryRecording

EMBEDDER = FunctionEmbedder(lambda texts: np.ones((len(texts), 16)), name="words-16", dimension=16)


def opened(path, **options):
    recording = QueryRecording(**{"seconds": 600.0, "redact": None, **options})
    return MemoryStore.open(path, embedder=EMBEDDER, record_queries=recording)


def leave(path):
    """Asks, and ends as a program does that thinks no more of it."""
    opened(path).search("asked before the end", mode="text")


def die(path):
    """Asks a whole batch, waits until it is written, asks on, and is killed."""
    store = opened(path, batch=3)
    for n in range(3):
        store.search(f"in time {n}", mode="text")
    while store.query_log.status.written < 3:
        time.sleep(0.005)
    store.search("too late", mode="text")
    os.kill(os.getpid(), signal.SIGKILL)


def ask(path, name, count):
    """Asks when the others do."""
    store = opened(path, batch=2)
    Path(path, f"ready-{name}").touch()
    while not Path(path, "go").exists():
        time.sleep(0.001)
    for n in range(int(count)):
        store.search(f"{name} asks {n}", mode="text", user=name)


VERBS = {"leave": leave, "die": die, "ask": ask}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
