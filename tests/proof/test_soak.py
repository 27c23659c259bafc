"""Several processes with a mixed load, killed and stopped at random: nothing acknowledged is lost.

`make soak` runs it for up to ten minutes, with the seconds and the seed in SOAK_SECONDS, SOAK_SEED.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from proof_kit import child_environment, open_store
from soak_child import Account, Log

from lance_memory.testing import violations

CHILD = str(Path(__file__).with_name("soak_child.py"))
CREW = {"ann": "writer", "bob": "writer", "cat": "writer", "eye": "reader", "ear": "reader"}
CREW |= {"broom": "upkeep"}
STARTING = 60.0
"""Seconds: as long as they may take to be at work."""

LONGEST = 480.0
"""Seconds: with the look at what is left, the whole stays below ten minutes."""


class Soak:
    """The processes, and what was done to them."""

    def __init__(self, folder, seed):
        self.folder = folder
        self.path = folder / "store"
        self.random = random.Random(seed)
        self.seed = seed
        self.count = Counter()
        self.alive = {}
        self.begun = {}
        open_store(self.path)

    def start(self, name):
        self.count["starts"] += 1
        self.begun[name] = len(self.said(name))
        seed = self.seed * 1_000 + self.count["starts"]
        words = [CREW[name], str(self.path), str(self.log(name)), name, str(seed)]
        with (self.folder / f"{name}.err").open("a") as errors:
            self.alive[name] = subprocess.Popen(
                [sys.executable, CHILD, *words], stderr=errors, env=child_environment()
            )

    def log(self, name):
        return self.folder / f"{name}.log"

    def run(self, seconds):
        """Kill or stop one after the other, and start it again, until the time is up.

        The time begins when all are at work: on a busy machine that takes a while.
        """
        for name in CREW:
            self.start(name)
        patience = time.monotonic() + STARTING
        while not all(map(self.at_work, CREW)) and time.monotonic() < patience:
            time.sleep(0.05)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.2, 1.6))
            name = self.random.choice(list(CREW))
            if not self.at_work(name) and self.random.random() < 0.9:
                continue  # on a busy machine it takes seconds to start, and nothing else is tested
            if self.random.random() < 0.3:
                self.pause(name)
            else:
                self.kill(name)
                self.start(name)
        for name in CREW:
            self.kill(name)

    def at_work(self, name):
        """Whether it has done something since it was started."""
        return b'"done"' in self.said(name)[self.begun[name] :]

    def said(self, name):
        return self.log(name).read_bytes() if self.log(name).exists() else b""

    def kill(self, name):
        process = self.alive.pop(name)
        self.count["died"] += process.poll() is not None
        self.count["kills"] += process.poll() is None
        process.kill()
        process.wait()

    def pause(self, name):
        """Stops a process in the middle of what it does, for longer than others' upkeep takes."""
        process = self.alive[name]
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(0.3, 1.5))
            process.send_signal(signal.SIGCONT)
            self.count["faults"] += 1

    def judge(self):
        """The figures, and every complaint about what is left."""
        store = open_store(self.path)
        logs = {name: Log(self.log(name)).lines() for name in CREW}
        losses = [line["loss"] for lines in logs.values() for line in lines if "loss" in line]
        errors = [line["error"] for lines in logs.values() for line in lines if "error" in line]
        rows = 0
        for name in (n for n, role in CREW.items() if role == "writer"):
            account = Account(Log(self.log(name)), name)
            losses += account.settle(store)
            rows += len(account.rows)
        store.optimize()
        broken = violations(store)
        health = store.doctor(deep=True)
        trouble = [one for one in health.findings if one.severity != "note"]
        verbs = Counter(line["done"] for lines in logs.values() for line in lines if "done" in line)
        figures = {
            "seed": self.seed,
            "operations": sum(verbs.values()),
            "by_verb": dict(sorted(verbs.items())),
            "refused": sum("refused" in line for lines in logs.values() for line in lines),
            "kills": self.count["kills"],
            "faults": self.count["faults"],
            "errors": len(errors),
            "losses": len(losses),
            "broken_invariants": len(broken),
            "trouble": [one.code for one in trouble],
            "rows": rows,
            "version": store.version,
        }
        return figures, [*losses, *errors, *broken, *map(str, trouble)]


def soak(folder, seconds, seed):
    """Runs it, prints the figures as one line of JSON, and gives them with the complaints."""
    print(f"\nsoak of {seconds:.0f} s, seed {seed}, in {folder}", flush=True)  # noqa: T201
    one = Soak(folder, seed)
    try:
        one.run(seconds)
    finally:
        for process in one.alive.values():
            process.kill()
            process.wait()
    began = time.monotonic()
    figures, complaints = one.judge()
    figures |= {"seconds": round(seconds), "seconds_to_judge": round(time.monotonic() - began, 1)}
    print(json.dumps(figures), flush=True)  # noqa: T201
    return figures, complaints


def test_nothing_acknowledged_is_lost_under_kills(tmp_path):
    """For 8 s, or for SOAK_SECONDS of at most 480."""
    seconds = min(float(os.environ.get("SOAK_SECONDS", "8")), LONGEST)
    figures, complaints = soak(tmp_path, seconds, int(os.environ.get("SOAK_SEED", "20250202")))
    assert complaints == []
    assert min(figures["operations"], figures["kills"]) > 0
