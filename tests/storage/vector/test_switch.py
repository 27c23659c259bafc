"""A switch of the vectors meets upkeep and clocks."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from lance_memory.record.schema import CLOSED
from lance_memory.storage import Audit, switch_vectors
from lance_memory.storage.engine import lance
from lance_memory.storage.upkeep.steps import alone
from lance_memory.storage.vector import switch


@pytest.fixture
def filled(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=None)
    store.add_many(["one", "two", "three"])
    return store


def switched(store):
    """Other vectors, of a model of another name."""
    table = store._table

    def vectors_of(snapshot, ids):
        for number in ids:
            hashes = snapshot.of_fragments([number], columns=["content_hash"])["content_hash"]
            yield hashes, np.ones((len(hashes), table.format.dimension), np.float32)

    def audit(_):
        return Audit(operation="reembed", at=store._clock())

    fmt = replace(table.format, embedding_model="another")
    return switch_vectors(table, fmt, vectors_of=vectors_of, audit=audit)


def test_a_switch_that_closes_the_table_does_not_block_upkeep_that_waits_for_writers(
    filled, monkeypatch
):
    """Who takes both locks takes that of upkeep first."""
    monkeypatch.setattr(switch, "_POLITE", 0)
    table, done = filled._table, []
    with alone(table):
        thread = threading.Thread(target=lambda: done.append(switched(filled)))
        thread.start()
        time.sleep(0.3)  # it waits for the lock
        free = table.writing.acquire(timeout=30)
        if free:
            table.writing.release()
    thread.join()
    assert (free, len(done)) == (True, 1)


def closed(store, seconds):
    """What a re-embedding that was killed has left."""
    updates = {CLOSED: str(time.time() + seconds)}
    operation = lance.LanceOperation.UpdateConfig(
        schema_metadata_updates=lance.LanceOperation.UpdateMap(updates=updates)
    )
    dataset = store._table.latest().dataset
    lance.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def test_a_pause_from_before_the_clock_was_set_back_holds_nobody_up(filled):
    closed(filled, 3_600)
    start = time.monotonic()
    filled.add("at once")
    assert time.monotonic() - start < 10


def test_a_pause_is_waited_for(filled):
    closed(filled, 1)
    start = time.monotonic()
    filled.add("after it")
    assert time.monotonic() - start > 0.5
