"""After a power cut, what was acknowledged with durability="power" is there, whole and alone.

A program of every kind of write is run once, and what a disk would keep of it is looked at before
every sync and after every acknowledgement: what was synced, and of the rest whatever chance, or
the worst, leaves. Each such image has to open, and to hold what was acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from power_kit import Recorder, any_of, empty_all, image, keep_all, keep_nothing
from power_program import program
from power_trace import can_trace, moments, traced
from proof_kit import EMBEDDER, TickingClock, child_environment, contents, open_store

from lance_memory import DamagedStoreWarning, Durability, MemoryStore, NotFoundError, StorageError
from lance_memory.storage import Table

CHILD = Path(__file__).with_name("power_child.py")
SOAKS = "SOAK_SECONDS" in os.environ
LONG = pytest.mark.soak if SOAKS else pytest.mark.slow
IMAGES = 1_000 if SOAKS else 45
"""As many of the moments are looked at where all would take minutes; spread evenly."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("power"), Durability.POWER)


def recorded(folder, durability):
    """The moments of the program, and what the store held after each operation of it."""
    root = folder / "place"
    root.mkdir()
    recorder = Recorder(root)
    fmt = open_store(folder / "other", upkeep=None)._table.format
    table = Table.create(str(root / "store"), fmt, durability=durability, sync=recorder)
    table.ensure_text_index()
    held = [({}, {})]

    def done(rows, tags):
        held.append((told(rows), tags))
        recorder.acknowledge()

    program(MemoryStore(table, embedder=EMBEDDER, clock=TickingClock()), done)
    return Run((root, recorder.moments, held))


class Run(tuple):
    """Where a program ran, its moments, and what the store held; 100 MB, which nobody reads."""

    __slots__ = ()

    def __repr__(self):
        return "a run"


def told(rows):
    return {identifier: repr(row) for identifier, row in rows.items()}


def lost(run, moment, choose, target):
    """What is wrong with the store after the power failed at a moment; else "whole" or "torn"."""
    root, _, held = run
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    image(moment, root, target, choose)
    (known, tags), (next_known, _) = held[moment.acknowledged], held[moment.acknowledged :][:2][-1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedStoreWarning)
            store = open_store(target / "store", create=False, upkeep=None)
            rows = told(contents(store))
    except (NotFoundError, StorageError) as error:
        return "none yet" if moment.acknowledged == 0 else f"cannot be opened: {error}"
    if rows not in (known, next_known):
        return f"holds {len(rows)} rows in place of {len(known)} or {len(next_known)}"
    return mended(store, rows, tags)


def mended(store, rows, tags):
    """The same, once what is torn is set aside and a write was made."""
    torn = store.damage is not None
    if torn:
        with pytest.raises(StorageError, match="doctor --fix"):
            store.add("refused")
        store.doctor(fix=True)
    made = store.add("goes on", user="u").id
    again = open_store(store.uri, create=False, upkeep=None)
    if not tags.items() <= again.tags().items():
        return f"has the tags {again.tags()} in place of {tags}"
    left = {i: row for i, row in told(contents(again)).items() if i != made}
    if left != rows:
        return "changed when it was written to"
    return "torn" if torn else "whole"


def some_of(moments):
    step = max(1, len(moments) // IMAGES)
    return moments[:: step if step % 3 else step + 1]


FINE = {"whole", "torn", "none yet"}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.floats(0, 1, exclude_max=True), seed=st.integers(0, 2**32))
def test_a_power_cut_at_any_moment_loses_no_acknowledged_write(run, tmp_path_factory, place, seed):
    moment = run[1][int(place * len(run[1]))]
    target = tmp_path_factory.getbasetemp() / "image"
    assert lost(run, moment, any_of(random.Random(seed)), target) in FINE


@LONG
def test_a_power_cut_that_keeps_nothing_loses_no_acknowledged_write(run, tmp_path):
    found = Counter(
        lost(run, moment, choose, tmp_path / "image")
        for number, moment in enumerate(some_of(run[1]))
        for choose in [(keep_nothing, empty_all, keep_all)[number % 3]]
    )
    assert {*found} == FINE, found


def test_without_the_syncs_the_same_power_cuts_lose_writes(tmp_path):
    process = recorded(tmp_path, Durability.PROCESS)
    chosen = [m for m in process[1] if m.acknowledged in (1, 4, 8)]
    found = [lost(process, moment, keep_nothing, tmp_path / "image") for moment in chosen]
    assert {*found} & FINE == set()


@LONG
def test_the_order_of_the_real_system_calls_loses_no_acknowledged_write(tmp_path):
    reason = can_trace(tmp_path)
    if reason:
        pytest.skip(reason)
    root, said, log = tmp_path / "place", tmp_path / "told", tmp_path / "log"
    root.mkdir()
    command = [sys.executable, CHILD, root / "store", said]
    traced(command, log, env=child_environment(), timeout=300)
    lines = [json.loads(line) for line in said.read_text().splitlines()]
    held = [({}, {}), *((line["rows"], line["tags"]) for line in lines)]
    run = Run((root, moments(log, root, said), held))
    assert [m.acknowledged for m in run[1]][-1] == len(lines)
    found = Counter(
        lost(run, moment, choose, tmp_path / "image")
        for number, moment in enumerate(some_of(run[1]))
        for choose in [(keep_nothing, empty_all, any_of(random.Random(number)))[number % 3]]
    )
    assert {*found} == FINE, found
