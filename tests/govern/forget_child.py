"""A process that forgets, and is killed in the middle of it: at the n-th step from the start.

    python forget_child.py STORE USER N

Steps are calls of functions of the rooms that forget; N = 0 counts them and prints how many.
"""

from __future__ import annotations

import os
import signal
import sys

from lance_memory import FunctionEmbedder, MemoryStore

ROOMS = ("lance_memory/govern/forget", "lance_memory/storage/erase", "lance_memory/storage/renewed")


def embedder():
    return FunctionEmbedder(
        lambda texts: [[float(len(text)), 1.0] for text in texts], name="length", dimension=2
    )


def main():
    path, user, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
    store = MemoryStore.open(path, create=False, embedder=embedder())
    steps = 0

    def step(frame, event, _):
        nonlocal steps
        if event == "call" and any(room in frame.f_code.co_filename for room in ROOMS):
            steps += 1
            if steps == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(step)
    store.forget(user=user, reason="she asked")
    sys.setprofile(None)
    sys.stdout.write(str(steps))


if __name__ == "__main__":
    main()
