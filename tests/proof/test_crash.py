"""A process that is killed leaves the store as it was before its operation, or as after it."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from forked import Forked
from proof_kit import START, Clock, contents, open_store
from store_model import Model, whole

from lance_memory import ConsolidationPlan

CHILD = str(Path(__file__).with_name("proof_child.py"))


class Killed:
    """A store that processes work on until they are killed, and the model of it."""

    def __init__(self, path, seed):
        self.path = path
        self.random = random.Random(seed)
        self.clock = Clock(START)
        self.model = Model()
        self.made = 0
        self.kills = dict.fromkeys(("add", "add_many", "consolidate", "rollback", "optimize"), 0)
        self.outcomes = {"before": 0, "after": 0}
        self.record(open_store(path, self.clock).version)

    def record(self, newest):
        start = max(self.model.versions, default=0) + 1
        self.model.record(range(start, newest + 1))

    def step(self):
        """The next operation, as the child reads it."""
        self.clock.tick()
        verb = self.random.choice(
            ("add", "add", "add_many", "add_many", "consolidate", "rollback", "optimize")
        )
        step = {"verb": verb, "now": self.clock.now.isoformat()}
        if verb in ("add", "add_many"):
            step["items"] = [self.item() for _ in range(1 if verb == "add" else 12)]
        elif verb == "consolidate":
            step["user"] = self.random.choice(("ann", "bob"))
        elif verb == "rollback":
            step["version"] = self.random.choice(sorted(self.model.versions)[-8:])
        else:
            step["clean"] = self.random.random() < 0.3
        return step

    def item(self):
        self.made += 1
        user = self.random.choice(("ann", "bob"))
        return {"id": f"m-{self.made}", "content": f"text number {self.made}", "user": user}

    def after(self, step, plan):
        """The rows once the operation is done."""
        done = Model()
        done.rows, done.versions = dict(self.model.rows), self.model.versions
        if "items" in step:
            done.add(step["items"], [item["id"] for item in step["items"]], self.clock.now)
        elif step["verb"] == "consolidate" and plan is not None:
            done.apply(ConsolidationPlan.from_json(plan))
        elif step["verb"] == "rollback":
            done.rollback(step["version"], self.clock.now)
        return done.rows

    def session(self):
        """Feeds a child until it is killed at a random moment; then looks at what is left."""
        patience = self.random.uniform(0.0, 0.35)
        with Forked(CHILD, "program", self.path) as process:
            ready = json.loads(process.stdout.readline())
            assert ready["ready"] == max(self.model.versions)
            killer = threading.Timer(patience, process.kill)
            killer.start()
            under_way, plan = self.feed(process)
            killer.join()
            told = process.stderr.read()
            assert "Traceback" not in told, told
            assert process.wait() == -9
        self.judge(under_way, plan)

    def feed(self, process):
        """The operation under way at the kill, and the plan if it had said one."""
        while True:
            step, plan = self.step(), None
            try:
                os.write(process.stdin.fileno(), json.dumps(step).encode() + b"\n")
            except BrokenPipeError:
                return step, None
            for line in process.stdout:
                if not line.endswith("\n"):  # killed between the text and the end of its line
                    return step, plan
                said = json.loads(line)
                if "done" in said:
                    self.model.rows = self.after(step, plan)
                    self.record(said["done"])
                    self.forget(step, said["done"])
                    break
                plan = said["plan"]
            else:
                return step, plan

    def forget(self, step, newest):
        if step.get("clean"):
            self.model.versions = {newest: self.model.versions[newest]}

    def judge(self, step, plan):
        store = open_store(self.path, self.clock)
        found = contents(store)
        before, after = whole(self.model.rows), whole(self.after(step, plan))
        assert found in (before, after), f"between before and after of {step}"
        self.kills[step["verb"]] += 1
        self.outcomes["after" if found == after else "before"] += 1
        newest, known = store.version, max(self.model.versions)
        assert newest >= known, "an acknowledged version is gone"
        if step["verb"] != "optimize":
            assert newest == known + (found != before)
        self.model.rows = self.after(step, plan) if found == after else self.model.rows
        self.record(newest)
        if step.get("clean"):
            self.model.versions = {newest: self.model.versions[newest]}
        for version in self.random.sample(
            sorted(self.model.versions), min(3, len(self.model.versions))
        ):
            assert contents(store.at(version)) == whole(self.model.versions[version])
        self.next_write_works(store)

    def next_write_works(self, store):
        item = self.item()
        self.clock.tick()
        result = store.add(**item)
        self.model.add([item], [result.id], self.clock.now)
        self.record(result.version)
        assert contents(store) == whole(self.model.rows)
        hits = store.search(f"text number {self.made}", mode="text", k=3)
        assert item["id"] in {hit.memory.id for hit in hits} or len(hits) == 3

    def run(self, kills):
        began = time.perf_counter()
        for _ in range(kills):
            self.session()
        print(  # noqa: T201 (figures, shown by pytest -s)
            f"\n{kills} kills in {time.perf_counter() - began:.0f} s, under way: {self.kills}, "
            f"found as {self.outcomes}, {len(self.model.rows)} rows"
        )


def test_a_killed_writer_leaves_the_state_before_or_after(tmp_path):
    """SIGKILL at 8 random moments: never in between, every acknowledged write is there."""
    seed = 20250131
    print(f"\nseed {seed}")  # noqa: T201
    Killed(tmp_path / "store", seed).run(8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_many_killed_writers_leave_the_state_before_or_after(tmp_path, seed):
    """The same at 35 moments each."""
    print(f"\nseed {seed}")  # noqa: T201
    Killed(tmp_path / "store", seed).run(35)


def _killed_while_making(path, delay):
    with Forked(CHILD, "add_one", path, "first") as process:
        path.parent.mkdir(exist_ok=True)
        while not path.exists() and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(delay)
        process.kill()


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.008, 0.02])
def test_a_store_whose_maker_was_killed_can_be_used(tmp_path, delay):
    """Killed while it makes the store: the next one opens it, adds and finds by words."""
    path = tmp_path / "store"
    _killed_while_making(path, delay)
    store = open_store(path)
    store.add("second apple")
    store.add("third pear")
    assert store.count() - 2 in (0, 1)
    assert [h.memory.content for h in store.search("apple", mode="text")] == ["second apple"]
    store.optimize(clean_older_than=timedelta(0))
    assert store.count() - 2 in (0, 1)
