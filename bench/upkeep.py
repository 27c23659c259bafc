"""What tending is worth: single adds, which tend the store, against one batch of the same rows.

One JSON line for each run. From the repository root:

    .venv/bin/python bench/upkeep.py              # 5,000 rows of 384 dimensions, a minute or two
    .venv/bin/python bench/upkeep.py --untended   # the same without upkeep, 1,000 rows
    .venv/bin/python bench/upkeep.py --rows 600

Everything is measured as it is left by the last add: nothing is called to tidy up.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import SEED, emit, interleaved, memory, seconds
from bench.overhead import DIMENSION, WORDS, batch, constant_embedder, vectors
from lance_memory import MemoryStore, Retain, Upkeep

SEARCHES = 60
PHASE = 0.1  # of the adds: the first and the last are compared

BARS = {
    "bytes_ratio": 3.0,
    "files": 1_500,
    "versions": 300,
    "search_ratio": 1.5,
    "add_ratio": 1.5,
    "rss_growth_mb": 64.0,
    "open_files_growth": 64,
}
"""At most. Files and versions do not grow with the rows: see `--rows`. The engine keeps the files of
some fragments and indices open, of those that there are: their number goes up and down."""


def files_of(path: Path) -> list[Path]:
    return [file for file in path.rglob("*") if file.is_file()]


def bytes_of(path: Path) -> int:
    return sum(file.stat().st_size for file in files_of(path))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def opened(path: Path, upkeep: Upkeep | None) -> MemoryStore:
    return MemoryStore.open(path, embedder=constant_embedder(), upkeep=upkeep)


def single_adds(store: MemoryStore, rows: int) -> dict[str, Any]:
    """How long adds took in the first and the last part; memory and open files since the half."""
    given, embedded = batch(rows, SEED)["content"].to_pylist(), list(vectors(rows, SEED))
    part = max(1, int(rows * PHASE))
    half = rows // 2
    taken, seen = [], []

    def add(i: int) -> None:
        store.add(given[i], embedding=embedded[i])

    for i in range(rows):
        taken.append(seconds(partial(add, i)))
        if i + 1 in (half, rows):
            seen.append((memory("VmRSS"), open_files()))
    (early_mb, early_files), (late_mb, late_files) = seen
    first, last = taken[:part], taken[-part:]
    return {
        "add_p50_first_ms": round(statistics.median(first) * 1e3, 2),
        "add_p50_last_ms": round(statistics.median(last) * 1e3, 2),
        "add_ratio": round(statistics.median(last) / statistics.median(first), 2),
        "add_p99_ms": round(statistics.quantiles(taken, n=100)[98] * 1e3, 1),
        "add_max_ms": round(max(taken) * 1e3, 1),
        "rss_growth_mb": round(late_mb - early_mb, 1),
        "rss_mb": round(late_mb, 1),
        "open_files_growth": late_files - early_files,
    }


def searches(one: MemoryStore, other: MemoryStore) -> dict[str, float]:
    """Median milliseconds of a hybrid search in both, interleaved, and their ratio."""
    asked = vectors(SEARCHES + 5, SEED + 9)
    words = [
        f"{WORDS[i % len(WORDS)]} {WORDS[(i * 7 + 3) % len(WORDS)]}" for i in range(len(asked))
    ]

    def search(store: MemoryStore, i: int) -> float:
        return seconds(lambda: store.search(words[i], vector=asked[i]))

    interleaved(5, *(lambda i, s=s: search(s, SEARCHES + i) for s in (one, other)))
    mine, theirs = interleaved(SEARCHES, *(lambda i, s=s: search(s, i) for s in (one, other)))
    return {
        "search_p50_ms": round(statistics.median(mine) * 1e3, 2),
        "search_p50_batched_ms": round(statistics.median(theirs) * 1e3, 2),
        "search_ratio": round(statistics.median(mine) / statistics.median(theirs), 2),
    }


def measured(folder: Path, rows: int, upkeep: Upkeep | None, name: str) -> dict[str, Any]:
    """One run: both stores, and a line."""
    batched = opened(folder / "batched", Upkeep())
    batched.add_many(batch(rows, SEED))
    batched.wait_for_upkeep()
    store = opened(folder / "single", upkeep)
    start = time.perf_counter()
    told = single_adds(store, rows)
    took = time.perf_counter() - start
    settled = seconds(store.wait_for_upkeep)
    store.search("settle", vector=vectors(1, 1)[0])  # what is kept in memory is read
    status = store.upkeep_status()
    fields: dict[str, Any] = {
        "bench": name,
        "rows": rows,
        "dimension": DIMENSION,
        "bytes": bytes_of(folder / "single"),
        "bytes_batched": bytes_of(folder / "batched"),
        "bytes_ratio": round(bytes_of(folder / "single") / bytes_of(folder / "batched"), 2),
        "files": len(files_of(folder / "single")),
        "files_batched": len(files_of(folder / "batched")),
        "versions": store.stats().versions,
        "fragments": store.stats().fragments,
        **told,
        **searches(store, batched),
        "adds_s": round(took, 1),
        "settled_s": round(settled, 2),
        "upkeep_failures": [str(failure) for failure in status.failures],
    }
    met = {bar: fields[bar] <= most for bar, most in BARS.items()}
    return emit(**fields, bars=BARS, met=met, all_met=all(met.values()) and not status.failures)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=None, help="default 5,000; untended 1,000")
    parser.add_argument("--untended", action="store_true", help="without upkeep")
    parser.add_argument("--inline", action="store_true", help="upkeep within the adds")
    parser.add_argument("--last", type=int, default=None, help="versions kept; default as shipped")
    options = parser.parse_args(arguments)
    upkeep = Upkeep(mode="inline" if options.inline else "background")
    if options.last:
        upkeep = replace(upkeep, retain=Retain(last=options.last))
    name = "untended" if options.untended else f"upkeep_{upkeep.mode}"
    rows = options.rows or (1_000 if options.untended else 5_000)
    folder = Path(tempfile.mkdtemp(prefix="lance-memory-bench-"))
    try:
        measured(folder, rows, None if options.untended else upkeep, name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
