"""What the processes of the crash and concurrency proofs do: `python proof_child.py VERB ARGS`."""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from proof_kit import TENDED, Clock, open_store

from lance_memory import ConflictError, ConsolidateOptions

EVERYTHING = ConsolidateOptions(min_similarity=-1.0, max_dropped=1.0, distinct=False)


def say(**values):
    sys.stdout.write(json.dumps(values) + "\n")  # at once: print writes the end of the line apart
    sys.stdout.flush()


def meet(folder, name):
    """Waits until the parent has seen everybody arrive."""
    Path(folder, f"ready-{name}").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.001)


def program(path):
    """Does the operations that come in on stdin, one a line, and says when each is durable."""
    clock = Clock()
    store = open_store(path, clock)
    say(ready=store.version)
    for line in sys.stdin:
        step = json.loads(line)
        clock.now = datetime.fromisoformat(step["now"])
        if step["verb"] == "add":
            store.add(**step["items"][0])
        elif step["verb"] == "add_many":
            store.add_many(step["items"])
        elif step["verb"] == "consolidate":
            plan = store.consolidate(EVERYTHING, dry_run=True, user=step["user"])
            say(plan=plan.to_json())
            store.apply(plan)
        elif step["verb"] == "rollback":
            store.rollback(step["version"])
        else:
            store.optimize(
                vector_index_from=20, clean_older_than=timedelta(0) if step["clean"] else None
            )
        say(done=store.version)


def add_own(path, meeting, name, count):
    """Adds contents that nobody else adds."""
    store = open_store(path, **TENDED)
    meet(meeting, name)
    times, ids = [], []
    start = time.time()
    for n in range(int(count)):
        began = time.perf_counter()
        ids.append(store.add(f"{name} says {n}", user=name).id)
        times.append(time.perf_counter() - began)
    say(ids=ids, times=times, start=start, end=time.time())


def add_same(path, meeting, name, count):
    """Adds keys, contents and ids that the others add at the same time."""
    store = open_store(path, **TENDED)
    meet(meeting, name)
    stored = 0
    for n in range(int(count)):
        stored += store.add(f"by key {name} {n}", key=f"k{n}").outcome == "stored"
        stored += store.add(f"by content {n}").outcome == "stored"
        stored += store.add(f"by id {n}", id=f"id-{n}").outcome == "stored"
    for n in range(int(count)):
        store.upsert(f"last word of {name} on {n}", key=f"u{n}")
    say(stored=stored)


def consolidate(path, meeting, name):
    """Consolidates everything; all have planned before one may commit."""
    store = open_store(path, **TENDED)

    def transform(cluster):
        meet(meeting, name)
        return f"what {name} makes of it: {cluster[0].content}"

    try:
        store.consolidate(EVERYTHING, transform)
        say(outcome="won")
    except ConflictError:
        say(outcome="conflict")


def add_one(path, content):
    """A short session."""
    store = open_store(path, **TENDED)
    say(ready=True)
    say(id=store.add(content).id)


def look(path, moments):
    """What is there at each version, and at each of the moments, as one number each."""
    store = open_store(path, **TENDED)
    versions = [entry.version for entry in store.log(upkeep=True)]
    places = [*sorted(versions), *map(datetime.fromisoformat, json.loads(moments))]
    found = []
    for place in places:
        view = store.at(place)
        rows = view.to_arrow(columns=["id", "revision", "updated_at", "event_at"]).to_pylist()
        values = [[r["id"], r["revision"], *_iso(r["updated_at"], r["event_at"])] for r in rows]
        found.append([view.version, sorted(values), [m.id for m in view.list()]])
    say(found=found, zone=time.tzname)


def _iso(*times):
    return [None if t is None else t.isoformat() for t in times]


VERBS = (program, add_own, add_same, consolidate, add_one, look)

if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    {function.__name__: function for function in VERBS}[verb](*arguments)
