"""A process that talks until it is killed, or that dies on the way into the table."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore
from lance_memory.agent.working import WorkingMemory
from lance_memory.ingest.sessions import Sessions

EMBEDDER = FunctionEmbedder(lambda texts: np.ones((len(texts), 16)), name="words-16", dimension=16)


def talk(layer):
    """Tells the number of each message once it is appended; for ever."""
    count = 0
    while True:
        count += 1
        number = layer.append_message("s", "user", f"child {count}")
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def die_before(layer):
    """Is killed when the rows of a flush are made and not committed."""
    MemoryStore.promote = die
    layer.flush("s")


def die_after(layer):
    """Is killed when the rows of a flush are committed, and the messages still in the ledger."""
    Sessions.remove = die
    layer.flush("s")


def die_asleep(layer):
    """The same of messages that hibernate."""
    Sessions.remove = die
    layer.hibernate(timedelta(0))


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    store = MemoryStore.open(sys.argv[2], embedder=EMBEDDER, upkeep=None)
    globals()[sys.argv[1]](WorkingMemory(store.scoped(user="ana")))
