"""What the processes of the dream tests do: `python dream_child.py VERB ARGS`."""

from __future__ import annotations

import sys
import threading
import time
import zlib
from datetime import timedelta
from pathlib import Path

import numpy as np

from lance_memory import (
    ConsolidateOptions,
    Dreamer,
    Execution,
    FunctionEmbedder,
    MemoryStore,
    Triggers,
)

ANY = ConsolidateOptions(min_similarity=-1.0, max_size=2, max_dropped=1.0, distinct=False)


def embed(texts):
    """Float32 [n, 4], fixed for each text."""
    return np.stack([np.random.default_rng(zlib.crc32(t.encode())).random(4) for t in texts])


def opened(path):
    return MemoryStore.open(path, embedder=FunctionEmbedder(embed, name="child", dimension=4))


def say(*words):
    print(*words, flush=True)  # noqa: T201


def dreamer(path, transform, **given):
    return Dreamer(opened(path), options=ANY, transform=transform, guard=None, **given)


def slowly(seconds):
    def transform(members):
        time.sleep(float(seconds))
        return " and ".join(m.content for m in members)

    return transform


def once(path, seconds):
    """One pass whose calls take so long."""
    made = dreamer(path, slowly(seconds))
    say("ready")
    say(made.once().outcome)


def meeting(path, folder, name):
    """One pass; whoever is in it waits until the other has asked too."""

    def transform(members):
        Path(folder, "inside").touch()
        while not Path(folder, "asked").exists():
            time.sleep(0.005)
        return members[0].content

    made = dreamer(path, transform)
    say("ready")
    sys.stdin.readline()
    result = made.once()
    if result.outcome == "busy":
        Path(folder, "asked").touch()
    say(name, result.outcome)


def forgets(path, state):
    """Ends without a stop, while the dreamer rests, is in a call, or in one that never ends."""
    inside, never = threading.Event(), threading.Event()

    def transform(members):
        inside.set()
        never.wait(3_600 if state != "short" else 0.2)
        return members[0].content

    execution = Execution(workers=3) if state == "workers" else Execution()
    triggers = Triggers(idle=timedelta(days=9)) if state == "rests" else Triggers(new_rows=1)
    made = dreamer(path, transform, triggers=triggers, execution=execution)
    made.start()
    if state != "rests":
        assert inside.wait(60)
    say("end")


VERBS = (once, meeting, forgets)

if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    {function.__name__: function for function in VERBS}[verb](*arguments)
