"""Reads stores with one damaged file each: `python damage_child.py DIRECTORY < names`.

A line is written after each store that was read, so one that ends the process is known by the line
that is missing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from proof_kit import contents, open_store, vector

from lance_memory import LanceMemoryError


def say(**values):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def questions(path):
    """Name of a question -> what asks it. All of them are asked of a store opened for it alone."""
    opened = {}

    def store():
        if "it" not in opened:
            opened["it"] = open_store(path, create=False)
        return opened["it"]

    asked = {
        "damage": lambda: str(store().damage),
        "rows": lambda: contents(store()),
        "filter": lambda: sorted(m.id for m in store().list(user="ann")),
        "key": lambda: store().get("k7").content,
        "words": lambda: sorted(
            h.memory.content for h in store().search("apple", mode="text", k=50)
        ),
        "vector": lambda: (
            store().search(vector=vector("apple 9"), mode="vector", k=1)[0].memory.key
        ),
        "log": lambda: [(e.version, e.operation) for e in store().log(upkeep=True)],
        "refs": lambda: (store().tags(), [b.name for b in store().branches()]),
        "branch": lambda: contents(open_store(path, create=False, branch="side")),
        "damage of the branch": lambda: str(open_store(path, create=False, branch="side").damage),
    }
    numbers = json.loads((Path(path).parent / "versions.json").read_text())
    asked |= {f"version {n}": lambda n=n: contents(store().at(n)) for n in numbers}
    return asked


def answered(ask):
    """("answer", a digest) or ("error", what it said); anything but our own errors goes through."""
    try:
        found = ask()
    except LanceMemoryError as error:
        return "error", f"{type(error).__name__}: {error}"
    return "answer", hashlib.sha256(repr(found).encode()).hexdigest()


def main(folder):
    for line in sys.stdin:
        name = line.rstrip("\n")
        found = {}
        for question, ask in questions(f"{folder}/{name}").items():
            try:
                found[question] = answered(ask)
            except BaseException as error:
                found[question] = ("stranger", f"{type(error).__name__}: {error}")
        say(read=name, found=found)


def unprivileged(path):
    """Stops being root with the store open; then reads, and writes."""
    store = open_store(path, upkeep=None)
    store.list()  # imports what the interpreter's own files may not be read for afterwards
    os.setgroups([])
    os.setgid(65_534)
    os.setuid(65_534)
    read = [m.content for m in store.list()]
    try:
        store.add("after")
    except LanceMemoryError as error:
        say(read=read, kind=type(error).__name__, error=str(error))


if __name__ == "__main__":
    unprivileged(sys.argv[2]) if sys.argv[1] == "--unprivileged" else main(sys.argv[1])
