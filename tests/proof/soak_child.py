"""What the processes of the soak do: `python soak_child.py ROLE STORE LOG NAME SEED`.

Each writer has a user of its own, whom nobody else writes to, and a log of its own. Before an
operation it writes down what it is about to do, and after it is acknowledged what has changed:
each line is on the disk before it goes on. So the log says what has to be in the store.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from datetime import timedelta
from functools import partial
from pathlib import Path

from proof_kit import TENDED, open_store

from lance_memory import ConflictError, ConsolidateOptions, NotFoundError
from lance_memory.record.identity import content_hash
from lance_memory.storage.engine import MissingFileError

TOPICS = ("kettle", "garden", "train", "invoice", "winter", "recipe", "letter", "violin")
EVERYTHING = ConsolidateOptions(min_similarity=-1.0, max_dropped=1.0, distinct=False, max_size=6)
COLUMNS = ["id", "revision", "content_hash", "state", "superseded_by"]


class Log:
    """Lines of JSON, each on the disk once it is written."""

    def __init__(self, path):
        self.path = Path(path)

    def write(self, **values):
        with self.path.open("a") as file:
            file.write(json.dumps(values) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self):
        """The whole lines: a killed process may have left a part of one."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines() if line[-1:] == "}"]


class Account:
    """What a writer's log says that its user's memories are."""

    def __init__(self, log, user):
        self.log = log
        self.user = user
        self.rows = {}
        self.open = None
        self.operations = 0
        self.versions = []
        for line in log.lines():
            self._read(line)

    def _read(self, line):
        if "begin" in line:
            self.open = line
        elif "changed" in line or "refused" in line:
            self.open = None
            self._change(line.get("changed", {}))
            self.operations += "done" in line
            self.versions += [line["version"]] if line.get("version") else []

    def _change(self, changed):
        for identifier, values in changed.items():
            if values is None:
                self.rows.pop(identifier, None)
            else:
                self.rows[identifier] = values

    def differences(self, store):
        """Id -> what the store has of it, where that is not what is expected."""
        rows = store.to_arrow(columns=COLUMNS, user=self.user).to_pylist()
        found = {row.pop("id"): list(row.values()) for row in rows}
        assert len(found) == len(rows), "an id is there twice"
        names = found.keys() | self.rows.keys()
        return {i: found.get(i) for i in sorted(names) if found.get(i) != self.rows.get(i)}

    def settle(self, store):
        """What became of the operation that was under way at the kill: all of it, or nothing.

        Returns the complaints: none, where every acknowledged write is there and no other is half
        there.
        """
        changed = self.differences(store)
        lost = list(self._complaints(changed, store)) if changed else []
        self.log.write(settled=True, changed={} if lost else changed)
        self._change({} if lost else changed)
        self.open = None
        return lost

    def _complaints(self, changed, store):
        begun = self.open
        if begun is None:
            yield f"{self.user}: not as acknowledged, with nothing under way: {changed}"
        elif "ids" in begun:
            expected = {i: added(h) for i, h in zip(begun["ids"], begun["hashes"], strict=True)}
            if changed != expected:
                yield f"{self.user}: {begun} is neither there nor away: {changed}"
        else:
            newest = store.scoped(user=self.user).log(limit=1)[0]
            counted = newest.inserted + newest.updated + newest.deleted
            if newest.operation != begun["begin"] or counted != len(changed):
                yield f"{self.user}: {begun} is half there, as {newest}: {changed}"


def added(digest):
    return [1, digest, "active", None]


class Writer:
    """Does one operation after the other to the memories of its user."""

    def __init__(self, path, log, name, seed):
        self.store = open_store(path, author=name, **TENDED)
        self.random = random.Random(seed)
        self.account = Account(Log(log), name)
        for complaint in self.account.settle(self.store):
            self.account.log.write(loss=complaint)
        self.made = len([i for i in self.account.rows if i.startswith(name)]) + seed * 10_000

    def run(self):
        verbs = (self.add, self.add, self.add_many, self.update, self.update, self.upsert)
        verbs += (self.supersede, self.retire, self.unretire, self.consolidate, self.rollback)
        verbs += (self.revert,)
        while True:
            self.random.choice(verbs)()

    def add(self):
        self._added("add", [self._item()], lambda items: self.store.add(**items[0]))

    def add_many(self):
        self._added("add", [self._item() for _ in range(8)], self.store.add_many)

    def update(self):
        self.made += 1
        content = f"{self.account.user} changed {self.made} {self._topic()}"
        for identifier in self._some("active", 1):
            act = partial(self.store.update, identifier, content=content)
            if self._does("update", act) is not None:
                assert self.account.rows[identifier][1] == content_hash(content)

    def upsert(self):
        self.made += 1
        key, content = f"key {self.random.randrange(5)}", f"{self.account.user} says {self.made}"
        self._does("upsert", lambda: self.store.upsert(content, key=key, user=self.account.user))

    def supersede(self):
        sources = self._some("active", 2)
        if len(sources) == 2:
            text = f"{self.account.user} sums up {self._topic()}"
            self._does("supersede", lambda: self.store.supersede(sources, text))

    def retire(self):
        for identifier in self._some("active", 1):
            self._does("retire", partial(self.store.retire, [identifier], reason="soak"))

    def unretire(self):
        for identifier in self._some("retired", 1):
            self._does("unretire", partial(self.store.unretire, [identifier]))

    def consolidate(self):
        where = {"user": self.account.user, "session": f"s{self.random.randrange(6)}"}
        self._does("consolidate", lambda: self.store.consolidate(EVERYTHING, **where))

    def rollback(self):
        self._back("rollback", 8)

    def revert(self):
        self._back("revert", 3)

    def _back(self, verb, far):
        versions = self.account.versions[-far:]
        if versions:
            mine = self.store.scoped(user=self.account.user)
            self._does(verb, lambda: getattr(mine, verb)(self.random.choice(versions)))

    def _item(self):
        self.made += 1
        user, topic = self.account.user, self._topic()
        return {
            "id": f"{user}-{self.made}",
            "content": f"{user} remembers number {self.made} of the {topic}",
            "user": user,
            "session": f"s{self.random.randrange(6)}",
            "tags": [topic],
        }

    def _topic(self):
        return self.random.choice(TOPICS)

    def _some(self, state, count):
        ids = [i for i, row in self.account.rows.items() if row[2] == state]
        return self.random.sample(ids, min(count, len(ids)))

    def _added(self, verb, items, act):
        ids, hashes = [i["id"] for i in items], [content_hash(i["content"]) for i in items]
        changed = self._does(verb, lambda: act(items), ids=ids, hashes=hashes)
        expected = {i: added(h) for i, h in zip(ids, hashes, strict=True)}
        assert changed in (None, expected), f"{verb} of {ids} has made {changed}"

    def _does(self, verb, act, **about):
        """One operation, written down before and after; what it changed, None where refused."""
        self.account.log.write(begin=verb, **about)
        try:
            result = act()
        except (ConflictError, NotFoundError, MissingFileError) as error:
            # A race was lost, or the version that was meant was cleaned up, at whatever moment.
            refused = str(error)[:200]
        else:
            refused = ""
        if refused:
            assert not self.account.differences(self.store), f"it wrote, and said: {refused}"
            self.account.log.write(refused=verb, why=refused)
            self.account.open = None
            return None
        changed = self.account.differences(self.store)
        version = getattr(result, "version", None) or getattr(result.write, "version", None)
        line = {"done": verb, "version": version if changed else None, "changed": changed}
        self.account.log.write(**line)
        self.account._read(line)
        return changed


def writer(path, log, name, seed):
    Writer(path, log, name, int(seed)).run()


def reader(path, log, name, seed):
    """Holds versions by tags, and finds in them what it found at first."""
    store, draw, told = open_store(path, **TENDED), random.Random(int(seed)), Log(log)
    while True:
        try:
            if name in store.tags():  # of a killed one
                store.untag(name)
            version = store.tag(name)
        except (ConflictError, NotFoundError):
            continue
        before = digest(store.at(name))
        for _ in range(draw.randrange(1, 4)):
            time.sleep(draw.uniform(0.05, 0.4))
            assert digest(store.at(name)) == before, f"version {version} has changed"
            hits = store.at(name).search(draw.choice(TOPICS), mode="text", k=20)
            assert {str(hit.memory.state) for hit in hits} <= {"active"}
        told.write(done="read", version=version, changed={})


def digest(view):
    rows = view.to_arrow(columns=[*COLUMNS, "content"]).to_pylist()
    return sorted(map(repr, rows))


def upkeep(path, log, name, seed):
    """Compacts, folds, and cleans away what is older than a few seconds."""
    store, draw, told = open_store(path, **TENDED), random.Random(int(seed)), Log(log)
    while True:
        time.sleep(draw.uniform(0.3, 1.5))
        try:
            done = store.optimize(
                clean_older_than=timedelta(seconds=draw.choice((2, 6, 20))), vector_index_from=400
            )
        except ConflictError as error:
            told.write(refused="optimize", why=str(error)[:200])
        else:
            told.write(done="optimize", version=done.version, changed={})


ROLES = {"writer": writer, "reader": reader, "upkeep": upkeep}

if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    try:
        ROLES[role](*arguments)
    except Exception as error:
        import traceback

        traceback.print_exc()
        Log(arguments[1]).write(error=f"{type(error).__name__}: {error}"[:2000])
        raise SystemExit(1) from None
