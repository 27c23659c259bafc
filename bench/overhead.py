"""What the package costs over the engine it stands on: ours and raw pylance, side by side.

One JSON line for each measurement. Run it from the repository root:

    .venv/bin/python bench/overhead.py            # 100,000 rows, some minutes
    .venv/bin/python bench/overhead.py --quick    # small, for the test; its ratios mean little
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from bench.measure import SEED, compared, emit, interleaved, seconds
from lance_memory import Derived, FunctionEmbedder, MemoryStore

DIMENSION = 384
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "ra", "so") for b in ("ten", "vak", "lim")]
LMEM = Path(sys.executable).parent / "lmem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    rows: int = 100_000
    sources: int = 1_000
    runs: int = 20
    bulk_runs: int = 20
    adds_between: int = 100
    help_runs: int = 20


QUICK = Sizes(rows=600, sources=20, runs=3, bulk_runs=2, adds_between=5, help_runs=1)


def vectors(count: int, seed: int) -> np.ndarray:
    """Unit vectors around 200 centres, float32 [count, DIMENSION]."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(200, DIMENSION))
    noisy = centres[rng.integers(200, size=count)] + 0.6 * rng.normal(size=(count, DIMENSION))
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def batch(count: int, seed: int) -> pa.Table:
    """Contents of about 20 words that are all different, with their embeddings."""
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(WORDS), size=(count, 18))
    texts = [f"note {seed}-{i} {' '.join(WORDS[p] for p in row)}" for i, row in enumerate(picks)]
    flat = pa.array(vectors(count, seed).ravel())
    embedding = pa.FixedSizeListArray.from_arrays(flat, DIMENSION)
    return pa.table({"content": texts, "embedding": embedding})


def constant_embedder() -> FunctionEmbedder:
    """Costs nothing that matters beside a write."""
    return FunctionEmbedder(
        lambda texts: np.ones((len(texts), DIMENSION), np.float32), name="ones", dimension=DIMENSION
    )


def opened(path: Path) -> MemoryStore:
    return MemoryStore.open(path, embedder=constant_embedder(), upkeep=None)


def table_of(path: Path) -> lance.LanceDataset:
    return lance.dataset(str(path / "memories.lance"))


def twin(source: Path, target: Path) -> Path:
    """The same store, byte for byte: data files never change, so links are copies."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)
    return target


def full_rows(path: Path, predicate: str | None = None) -> pa.Table:
    """Rows as the store has written them, in memory, under ids of their own."""
    return table_of(path).to_table(filter=predicate).combine_chunks()


class Bench:
    """A scratch folder with an empty store, and one of `sizes.rows` rows with every index."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder = folder
        self.sizes = sizes
        self.empty = folder / "empty"
        self.filled = folder / "filled"
        opened(self.empty)
        store = opened(twin(self.empty, self.filled))
        store.add_many(batch(sizes.rows, SEED))
        store.optimize()
        self.ids = table_of(self.filled).to_table(columns=["id"])["id"].to_pylist()
        self.rng = np.random.default_rng(SEED)

    def pair(self, source: Path) -> tuple[Path, Path]:
        """Two equal stores: for ours, and for raw."""
        return twin(source, self.folder / "ours"), twin(source, self.folder / "raw")

    # -- bulk -----------------------------------------------------------------------------

    def bulk_add(self, *, into: str) -> None:
        """One batch of as many rows as the filled store has, into the empty or the filled one."""
        source = self.empty if into == "empty" else self.filled
        given = batch(self.sizes.rows, SEED + 1)
        scratch = opened(twin(self.empty, self.folder / "scratch"))
        scratch.add_many(given)
        rows = full_rows(self.folder / "scratch")

        def ours(_: int) -> float:
            store = opened(twin(source, self.folder / "ours"))
            return seconds(lambda: store.add_many(given))

        def raw(_: int) -> float:
            dataset = table_of(twin(source, self.folder / "raw"))
            return seconds(lambda: lance.write_dataset(rows, dataset, mode="append"))

        taken = interleaved(self.sizes.bulk_runs, ours, raw)
        compared(f"bulk_add_into_{into}", *taken, rows=self.sizes.rows, bar=1.5)

    # -- single add -----------------------------------------------------------------------

    def single_add(self) -> None:
        """Single durable adds: right after upkeep, and with a hundred adds since."""
        mine, theirs = self.pair(self.filled)
        store, dataset = opened(mine), table_of(theirs)
        total = 2 * self.sizes.runs + self.sizes.adds_between + 2
        given = batch(total, SEED + 2)
        contents = given["content"].to_pylist()
        embedded = list(vectors(total, SEED + 2))
        scratch = opened(twin(self.empty, self.folder / "scratch"))
        scratch.add_many(given)
        rows = full_rows(self.folder / "scratch")

        def ours(i: int) -> float:
            return seconds(lambda: store.add(contents[i], embedding=embedded[i]))

        def raw(i: int) -> float:
            nonlocal dataset
            row = rows.slice(i, 1)

            def append() -> None:
                nonlocal dataset
                dataset = lance.write_dataset(row, dataset, mode="append")

            return seconds(append)

        def phase(first: int, runs: int) -> list[list[float]]:
            return interleaved(runs, lambda i: ours(first + i), lambda i: raw(first + i))

        phase(0, 2)  # the first ones open files
        fresh = phase(2, self.sizes.runs)
        compared("single_add_after_optimize", *fresh, rows=self.sizes.rows, bar=1.5)
        phase(2 + self.sizes.runs, self.sizes.adds_between)
        later = phase(2 + self.sizes.runs + self.sizes.adds_between, self.sizes.runs)
        name = f"single_add_after_{self.sizes.runs + self.sizes.adds_between}_adds"
        compared(name, *later, rows=self.sizes.rows, bar=1.5)

    def first_add(self) -> None:
        """The first add of a handle that was just opened, as a short-lived process does it."""
        mine, theirs = self.pair(self.filled)
        given = batch(self.sizes.runs, SEED + 3)
        contents = given["content"].to_pylist()
        embedded = list(vectors(self.sizes.runs, SEED + 3))
        scratch = opened(twin(self.empty, self.folder / "scratch"))
        scratch.add_many(given)
        rows = full_rows(self.folder / "scratch")

        def ours(i: int) -> float:
            store = opened(mine)
            return seconds(lambda: store.add(contents[i], embedding=embedded[i]))

        def raw(i: int) -> float:
            dataset = table_of(theirs)
            return seconds(lambda: lance.write_dataset(rows.slice(i, 1), dataset, mode="append"))

        taken = interleaved(self.sizes.runs, ours, raw)
        compared("single_add_first_of_a_handle", *taken, rows=self.sizes.rows, bar=1.5)

    # -- get ------------------------------------------------------------------------------

    def get(self) -> None:
        """One memory by its id."""
        mine, theirs = self.pair(self.filled)
        store, dataset = opened(mine), table_of(theirs)
        runs = 10 * self.sizes.runs
        wanted = self.rng.choice(self.ids, size=runs + 5).tolist()

        def ours(i: int) -> float:
            return seconds(lambda: store.get(wanted[i]))

        def raw(i: int) -> float:
            return seconds(lambda: dataset.to_table(filter=f"id = '{wanted[i]}'"))

        interleaved(5, ours, raw)  # the first ones open files
        taken = interleaved(runs, lambda i: ours(i + 5), lambda i: raw(i + 5))
        compared("get_by_id", *taken, rows=self.sizes.rows, bar=1.5)

    # -- supersede ------------------------------------------------------------------------

    def supersede(self) -> None:
        """N memories get one successor, each run on a fresh equal store, warmed by one read."""
        count = self.sizes.sources
        chosen = [
            self.rng.choice(self.ids, size=count, replace=False).tolist()
            for _ in range(self.sizes.runs)
        ]
        prepared = [self._superseded(ids, i) for i, ids in enumerate(chosen)]

        def ours(i: int) -> float:
            store = opened(twin(self.filled, self.folder / "ours"))
            store.get(self.ids[0])
            derived = Derived(content=f"The successor of run {i}")
            return seconds(lambda: store.supersede(chosen[i], derived))

        def raw(i: int, *, read: bool) -> float:
            dataset = table_of(twin(self.filled, self.folder / "raw"))
            dataset.to_table(filter=f"id = '{self.ids[0]}'")
            listed = ", ".join(f"'{identifier}'" for identifier in chosen[i])

            def work() -> None:
                if read:
                    dataset.to_table(filter=f"id IN ({listed})")
                merge = dataset.merge_insert("id").when_matched_update_all()
                merge.when_not_matched_insert_all().execute(prepared[i])

            return seconds(work)

        mine, merge, both = interleaved(
            self.sizes.runs, ours, lambda i: raw(i, read=False), lambda i: raw(i, read=True)
        )
        rows = self.sizes.rows
        compared(f"supersede_{count}_against_merge", mine, merge, rows=rows, bar=2.0)
        compared(f"supersede_{count}_against_read_and_merge", mine, both, rows=rows, bar=2.0)

    def _superseded(self, ids: Sequence[str], run: int) -> pa.Table:
        """The rows that such a supersede writes, as the store itself wrote them once."""
        store = opened(twin(self.filled, self.folder / "scratch"))
        done = store.supersede(ids, Derived(content=f"The successor of run {run}"))
        listed = ", ".join(f"'{identifier}'" for identifier in done.ids)
        return full_rows(self.folder / "scratch", f"id IN ({listed})")

    # -- command --------------------------------------------------------------------------

    def command_help(self) -> None:
        """`lmem --help`, whole processes; raw is an interpreter that does nothing."""
        if not LMEM.exists() or subprocess.run([LMEM, "--help"], capture_output=True).returncode:
            print("lmem --help does not run here; left out", file=sys.stderr)
            return

        def run(*command: object) -> float:
            line = [str(part) for part in command]
            return seconds(lambda: subprocess.run(line, capture_output=True, check=True))

        ours, raw = interleaved(
            self.sizes.help_runs,
            lambda _: run(LMEM, "--help"),
            lambda _: run(sys.executable, "-c", "pass"),
        )
        took, bare = statistics.median(ours), statistics.median(raw)
        emit(
            bench="lmem_help",
            ours_ms=round(took * 1e3, 1),
            raw_ms=round(bare * 1e3, 1),
            ratio=round(took / bare, 2),
            n=len(ours),
            rows=0,
            bar=0.35,
            bar_is="seconds",
            met=took <= 0.35,
        )


def benches(bench: Bench) -> dict[str, Callable[[], None]]:
    return {
        "bulk_empty": lambda: bench.bulk_add(into="empty"),
        "bulk_filled": lambda: bench.bulk_add(into="filled"),
        "single": bench.single_add,
        "first": bench.first_add,
        "get": bench.get,
        "supersede": bench.supersede,
        "help": bench.command_help,
    }


def profiled(work: Callable[[], Any]) -> None:
    """Run under cProfile; the table goes to standard error."""
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(45)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for the test")
    parser.add_argument("--only", nargs="*", default=[], help="names of benches; default: all")
    parser.add_argument("--profile", action="store_true", help="cProfile tables on stderr")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lance-memory-bench-") as folder:
        bench = Bench(Path(folder), QUICK if options.quick else Sizes())
        for name, work in benches(bench).items():
            if not options.only or name in options.only:
                profiled(work) if options.profile else work()


if __name__ == "__main__":
    main()
