"""What the processes of the remote tests do: `python remote_child.py VERB URI OPTIONS ARGS`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from proof_child import meet, say
from proof_kit import open_store


def make(uri, options, meeting, name):
    """Opens or makes stores at the same time as others, and adds a memory to each."""
    for number in range(6):
        while not Path(meeting, f"go-{number}").exists():
            time.sleep(0.001)
        store = open_store(f"{uri}-{number}", storage_options=options)
        say(id=store.add(f"by {name}").id)


def write(uri, options, meeting, name, count):
    """Writes in all ways that meet others."""
    store = open_store(uri, storage_options=options, author=name)
    meet(meeting, name)
    ids = []
    for number in range(int(count)):
        ids.append(store.add(f"{name} says {number}", user=name).id)
        store.upsert(f"last word of {name} on {number}", key=f"shared-{number % 3}")
        store.add(f"said by all {number}", key=f"once-{number}")
    say(ids=ids)


def add_until_killed(uri, options):
    """Adds batches of three, and says when each is acknowledged."""
    store = open_store(uri, storage_options=options)
    say(ready=True)
    number = 0
    while True:
        batch = [{"content": f"batch {number}, {part}", "run": str(number)} for part in "abc"]
        say(batch=number, version=store.add_many(batch).version)
        number += 1


def record(uri, options, meeting, name, count):
    """Records queries, of which some are forgotten, while others do the same."""
    store = open_store(uri, storage_options=options, record_queries=True)
    kept, passing = store.scoped(user=name), store.scoped(user=f"{name}-passing")
    meet(meeting, name)
    for number in range(int(count)):
        kept.search(f"kept question {number} of {name}", mode="text")
        passing.search(f"passing question {number} of {name}", mode="text")
        if number % 5 == 4:
            passing.forget_queries()
            kept.queries(limit=1)  # writes what waits
    say(asked=int(count))


VERBS = (make, write, add_until_killed, record)

if __name__ == "__main__":
    verb, uri, options, *arguments = sys.argv[1:]
    {function.__name__: function for function in VERBS}[verb](uri, json.loads(options), *arguments)
