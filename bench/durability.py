"""What writes cost that survive a power cut: against those that do not, and a bare fsync.

One JSON line for each measurement. Run it from the repository root:

    .venv/bin/python bench/durability.py            # half a minute
    .venv/bin/python bench/durability.py --quick    # small, for the test; its ratios mean little

`--place DIRECTORY` says on which disk; by default the one of temporary files, which must not be
in memory (tmpfs) for the figures to mean anything.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import emit, interleaved, seconds
from bench.overhead import batch, constant_embedder
from lance_memory import MemoryStore
from lance_memory.files import to_disk
from lance_memory.record.times import utc_now
from lance_memory.storage import Table
from lance_memory.storage.disk import whole
from lance_memory.storage.disk.durable import Sync

_BLOCK = bytes(4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    singles: int = 150
    adders: int = 8
    rounds: int = 5
    adds_each: int = 12
    batches: int = 10
    batch_rows: int = 1_000


QUICK = Sizes(singles=3, adders=2, rounds=1, adds_each=2, batches=1, batch_rows=20)


def opened(path: Path, durability: str) -> MemoryStore:
    """A store with a few rows, whose upkeep does not come between."""
    store = MemoryStore.open(path, embedder=constant_embedder(), durability=durability, upkeep=None)
    store.add_many([f"first {number}" for number in range(10)])
    return store


def bare_fsync(place: Path) -> Callable[[int], float]:
    """A new file of 4 KB, on the disk."""

    def sample(run: int) -> float:
        def write() -> None:
            with (place / f"bare-{run}").open("wb") as file:
                file.write(_BLOCK)
                file.flush()
                os.fsync(file.fileno())

        return seconds(write)

    return sample


def single(place: Path, sizes: Sizes) -> None:
    """One add after the other: process, power, and a bare fsync, interleaved."""
    stores = {name: opened(place / f"single-{name}", name) for name in ("process", "power")}
    taken = interleaved(
        sizes.singles,
        *(
            lambda run, store=store: seconds(lambda: store.add(f"note {run}"))
            for store in stores.values()
        ),
        bare_fsync(place),
    )
    process, power, bare = (statistics.median(each) * 1e3 for each in taken)
    emit(
        bench="durability_single_add",
        process_ms=round(process, 3),
        power_ms=round(power, 3),
        bare_fsync_ms=round(bare, 3),
        ratio=round(power / process, 3),
        extra_in_fsyncs=round((power - process) / bare, 2),
        runs=sizes.singles,
    )


def concurrent(place: Path, sizes: Sizes, *, slower_ms: float = 0.0) -> None:
    """Several threads that add at once: process, power, and power without a shared sync.

    `slower_ms` is added to each sync: what a disk takes that has no memory of its own to trust.
    """

    def sync(path: Path) -> None:
        to_disk(path)
        time.sleep(slower_ms / 1e3)

    sides = [("process", False), ("power", False), ("power", True)]
    stores = [
        slowed(opened(place / f"many-{slower_ms}-{number}", name), sync)
        for number, (name, _) in enumerate(sides)
    ]

    def rate(store: MemoryStore, run: int, *, alone: bool) -> float:
        # Whoever holds this lock while it waits for the disk shares its sync with nobody.
        lock = store._table.writing if alone else nullcontext()

        def adder(number: int) -> None:
            for one in range(sizes.adds_each):
                with lock:
                    store.add(f"note {run} {number} {one}")

        with ThreadPoolExecutor(sizes.adders) as pool:
            return seconds(lambda: list(pool.map(adder, range(sizes.adders))))

    taken = interleaved(
        sizes.rounds,
        *(
            lambda run, store=store, alone=alone: rate(store, run, alone=alone)
            for store, (_, alone) in zip(stores, sides, strict=True)
        ),
    )
    adds = sizes.adders * sizes.adds_each
    process, power, alone = (statistics.median(each) * 1e3 / adds for each in taken)
    emit(
        bench="durability_concurrent_adds" + ("_slow_disk" if slower_ms else ""),
        adders=sizes.adders,
        sync_slower_by_ms=slower_ms,
        process_ms_per_add=round(process, 3),
        power_ms_per_add=round(power, 3),
        power_without_group_commit_ms_per_add=round(alone, 3),
        ratio=round(power / process, 3),
        group_commit_saves=round(1 - power / alone, 3),
        runs=sizes.rounds,
    )


def slowed(store: MemoryStore, sync: Sync) -> MemoryStore:
    """The same store through syncs of our own."""
    table = Table.open(store.uri, durability=store._table.durability, sync=sync)
    return MemoryStore(table, embedder=store.embedder, clock=utc_now, upkeep=None)


def batched(place: Path, sizes: Sizes) -> None:
    """A batch as one version."""
    stores = {name: opened(place / f"batch-{name}", name) for name in ("process", "power")}
    taken = interleaved(
        sizes.batches,
        *(
            lambda run, store=store: seconds(partial(store.add_many, batch(sizes.batch_rows, run)))
            for store in stores.values()
        ),
    )
    process, power = (statistics.median(each) * 1e3 for each in taken)
    emit(
        bench="durability_batched_add",
        rows=sizes.batch_rows,
        process_ms=round(process, 3),
        power_ms=round(power, 3),
        ratio=round(power / process, 3),
        runs=sizes.batches,
    )


def opening(place: Path, sizes: Sizes) -> None:
    """What it costs to look at the files of the newest version when a store is opened."""
    store = opened(place / "opening", "process")
    for number in range(sizes.singles * 2):
        store.add(f"fragment {number}")
    table = store._table
    checked, whole_open = interleaved(
        max(3, sizes.batches),
        lambda _: seconds(lambda: whole.damage(table)),
        lambda _: seconds(
            lambda: MemoryStore.open(store.uri, embedder=constant_embedder(), upkeep=None)
        ),
    )
    emit(
        bench="durability_look_at_opening",
        fragments=len(table.latest().fragment_ids),
        look_ms=round(statistics.median(checked) * 1e3, 3),
        open_ms=round(statistics.median(whole_open) * 1e3, 3),
        runs=max(3, sizes.batches),
    )


def main(arguments: list[str] | None = None) -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--place", type=Path, default=None)
    given: Any = parser.parse_args(arguments)
    sizes = QUICK if given.quick else Sizes()
    with tempfile.TemporaryDirectory(dir=given.place) as folder:
        slow = partial(concurrent, slower_ms=5.0)
        for measurement in (single, concurrent, slow, batched, opening):
            measurement(Path(folder), sizes)


if __name__ == "__main__":
    main()
