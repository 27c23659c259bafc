"""What the processes of these tests do: `python migrate_child.py VERB STORE ...`."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from migrate_kit import words_8, words_16

from lance_memory import MemoryStore, migrate_store


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def say(*words):
    print(*words, flush=True)  # noqa: T201


class Mortal:
    """Gives the time, and kills the process at its n-th look."""

    def __init__(self, looks):
        self.looks = looks

    def __call__(self):
        self.looks -= 1
        if self.looks == 0:
            die()
        return datetime.now(UTC)


def migrate(store, looks):
    say("ready")
    sys.stdin.readline()
    say(len(migrate_store(store, clock=Mortal(int(looks))).steps))


def reembed(store, batches, looks):
    """Dies before it embeds so many batches, or at so many looks at the clock; 0: does not."""
    left = int(batches)

    def before(texts):
        nonlocal left
        left -= 1
        if left == -1 and int(batches):
            die()
        with Path(f"{store}.log").open("a", encoding="utf-8") as log:
            log.writelines(f"{text}\n" for text in texts)

    handle = MemoryStore.open(store, embedder=words_8(), clock=Mortal(int(looks)))
    done = handle.reembed(words_16(before=before), batch_size=4)
    say(done.embedded, done.taken)


def write(store, number):
    """Adds one memory after another until that is refused, and says which were acknowledged."""
    handle = MemoryStore.open(store, embedder=words_8())
    say("ready")
    for i in range(10_000):
        try:
            say(handle.add(f"writer {number} says {i}").id)
        except ValueError as error:
            say(type(error).__name__)
            return
        time.sleep(0.02)


if __name__ == "__main__":
    {"migrate": migrate, "reembed": reembed, "write": write}[sys.argv[1]](*sys.argv[2:])
