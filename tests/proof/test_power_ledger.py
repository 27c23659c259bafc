"""After a power cut, what a durable ledger has acknowledged is there.

The real system calls of a process that appends are made on a disk that forgets; what it may have
kept at each moment is opened again.
"""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

import pytest
from ledger_power_child import WRITES
from power_kit import any_of, empty_all, image, keep_nothing
from power_trace import can_trace, moments, traced
from proof_kit import child_environment, open_store

from lance_memory.errors import StorageError
from lance_memory.ledger import open_ledger

CHILD = Path(__file__).with_name("ledger_power_child.py")


def recorded(folder, durability):
    """The directory that a process wrote in, and the moments of it."""
    reason = can_trace(folder)
    if reason:
        pytest.skip(reason)
    root, told, log = folder / "place", folder / "told", folder / "log"
    root.mkdir()
    command = [sys.executable, CHILD, root / "store" / "ingest" / "ledger.sqlite", told, durability]
    traced(command, log, env=child_environment(), timeout=120)
    return root, moments(log, root, told)


def lost(root, moment, choose, target):
    """How many acknowledged writes are missing after the power failed at a moment."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    image(moment, root, target, choose)
    ledger = open_ledger(target / "store" / "ingest" / "ledger.sqlite")
    try:
        found = [int(value.split()[1].removesuffix(b"word")) for _, value in ledger.items("said")]
    except StorageError:
        found = []
    finally:
        ledger.close()
    assert found == list(range(1, len(found) + 1))  # whatever is there, none is between
    return max(0, moment.acknowledged - len(found))


@pytest.mark.slow
def test_a_power_cut_takes_no_write_that_a_durable_ledger_has_acknowledged(tmp_path):
    root, found = recorded(tmp_path, "power")
    assert found[-1].acknowledged == WRITES
    choices = [keep_nothing, empty_all, any_of(random.Random(7))]
    for number, moment in enumerate(found):
        assert lost(root, moment, choices[number % 3], tmp_path / "image") == 0, number


@pytest.mark.slow
def test_without_it_the_same_power_cuts_take_writes(tmp_path):
    root, found = recorded(tmp_path, "process")
    told = [lost(root, moment, keep_nothing, tmp_path / "image") for moment in found]
    assert max(told) == WRITES


def test_the_ledger_of_a_store_is_as_durable_as_the_store(tmp_path):
    for durability in ("process", "power"):
        store = open_store(tmp_path / durability, durability=durability)
        assert store.ledger.durable == (durability == "power")
        branch = store.branch("side")
        assert branch.ledger.durable == (durability == "power")
