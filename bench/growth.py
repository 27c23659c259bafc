"""How search, building, memory and disk grow with the number of memories.

    python bench/growth.py                          # 10,000, 100,000 and 1,000,000 rows: 3 minutes
    python bench/growth.py --rows 10000 100000

A store is filled in one process and searched in another, with default options; a tenth of its rows
is hidden.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.corpus import DIMENSION, Corpus, asked, corpus, questions
from bench.measure import SEED, emit, memory, seconds
from bench.origin import for_children
from lance_memory import FunctionEmbedder, MemoryStore

K = 10
CHUNK = 50_000
HIDDEN = 10


def opened(path: Path) -> MemoryStore:
    embedder = FunctionEmbedder(
        lambda texts: np.ones((len(texts), DIMENSION), np.float32), name="ones", dimension=DIMENSION
    )
    return MemoryStore.open(path / "store", embedder=embedder, upkeep=None)


def chunks(rows: int) -> Iterator[Corpus]:
    for first in range(0, rows, CHUNK):
        yield corpus(min(CHUNK, rows - first), SEED + first, first=first)


def scopes(count: int, first: int) -> dict[str, NDArray[np.str_]]:
    """A tenant with a tenth of the rows and a user with a hundredth; sessions of 20 rows."""
    numbers = np.arange(first, first + count)
    return {
        "tenant": np.where(numbers % 10 == 3, "tenth", "other"),
        "user": np.where(numbers % 100 == 7, "hundredth", "other"),
        "session": np.array([f"session {i // 20}" for i in numbers]),
    }


class Truth:
    """The nearest visible rows of each question, kept while the store is filled."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors
        self.scores = np.full((len(vectors), K), -2.0, np.float32)
        self.ids = np.full((len(vectors), K), "", dtype=object)

    def see(self, rows: NDArray[np.float32], ids: NDArray[np.object_]) -> None:
        scores = np.concatenate([self.scores, self.vectors @ rows.T], axis=1)
        known = np.concatenate([self.ids, np.broadcast_to(ids, (len(self.ids), len(ids)))], axis=1)
        best = np.argsort(-scores, axis=1)[:, :K]
        self.scores = np.take_along_axis(scores, best, axis=1)
        self.ids = np.take_along_axis(known, best, axis=1)


def fill(path: Path, rows: int, count: int) -> None:
    """Add, hide, optimize; the questions and their true answers are left beside the store."""
    store = opened(path)
    added = hidden = 0.0
    truth: Truth | None = None
    for number, chunk in enumerate(chunks(rows)):
        if truth is None:
            truth = Truth(questions(chunk.vectors, count, SEED + 1))
        table = chunk.table(**scopes(len(chunk.contents), number * CHUNK))
        ids: list[str] = []
        added += seconds(lambda t=table, i=ids: i.extend(store.add_many(t).ids))
        hidden += seconds(lambda i=ids: store.retire(i[::HIDDEN]))
        seen = np.arange(len(ids)) % HIDDEN != 0
        truth.see(chunk.vectors[seen], np.array(ids, dtype=object)[seen])
    indexed = seconds(store.optimize)
    peak = memory("VmHWM")
    store.optimize(clean_older_than=timedelta(0))
    size = sum(f.stat().st_size for f in (path / "store").rglob("*") if f.is_file())
    if truth is None:
        return
    np.save(path / "questions.npy", truth.vectors)
    (path / "truth.json").write_text(json.dumps(truth.ids.tolist()))
    told = {
        "add_s": round(added, 1),
        "hide_s": round(hidden, 1),
        "optimize_s": round(indexed, 1),
        "build_s": round(added + indexed, 1),
        "build_peak_mb": round(peak),
        "disk_mb": round(size / 1e6, 1),
        "vectors_mb": round(rows * DIMENSION * 4 / 1e6, 1),
    }
    (path / "built.json").write_text(json.dumps(told))


def search(path: Path, rows: int) -> None:
    """Ask, and say everything about this number of rows in one line."""
    vectors = np.load(path / "questions.npy")
    truth = json.loads((path / "truth.json").read_text())
    store = opened(path)
    first = seconds(lambda: store.search(vector=vectors[0], mode="vector", k=K))
    found = [store.search(vector=vector, mode="vector", k=K).hits for vector in vectors]
    right = [
        len({hit.memory.id for hit in hits} & {*best}) / K
        for hits, best in zip(found, truth, strict=True)
    ]

    def p50(**scope: Any) -> float:
        store.search(vector=vectors[0], mode="vector", k=K, **scope)
        taken = [
            seconds(lambda v=v: store.search(vector=v, mode="vector", k=K, **scope))
            for v in vectors
        ]
        return round(statistics.median(taken) * 1e3, 2)

    alone, tenth, hundredth = p50(), p50(tenant="tenth"), p50(user="hundredth")
    texts = asked(len(vectors), SEED + 2)
    both = [
        seconds(lambda t=t, v=v: store.search(t, vector=v, k=K))
        for t, v in zip(texts, vectors, strict=True)
    ]
    emit(
        bench="growth",
        rows=rows,
        search_p50_ms=alone,
        search_tenth_p50_ms=tenth,
        search_hundredth_p50_ms=hundredth,
        hybrid_p50_ms=round(statistics.median(both) * 1e3, 2),
        search_first_ms=round(first * 1e3, 1),
        recall_at_10=round(float(np.mean(right)), 4),
        search_rss_mb=round(memory("VmRSS")),
        n=len(vectors),
        **json.loads((path / "built.json").read_text()),
    )


def measured(rows: int, count: int, folder: Path) -> None:
    """One number of rows, in two processes of its own."""
    path = folder / str(rows)
    path.mkdir()
    for phase in ("fill", "search"):
        command = [sys.executable, __file__, "--phase", phase, "--path", path, "--rows", rows]
        subprocess.run(
            [*map(str, command), "--questions", str(count)], check=True, env=for_children()
        )
    shutil.rmtree(path)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="where the stores are made; they are removed")
    parser.add_argument("--phase", choices=["fill", "search"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.phase == "fill":
        fill(options.path, options.rows[0], options.questions)
    elif options.phase == "search":
        search(options.path, options.rows[0])
    else:
        with tempfile.TemporaryDirectory(prefix="lance-memory-bench-", dir=options.folder) as made:
            for rows in options.rows:
                measured(rows, options.questions, Path(made))


if __name__ == "__main__":
    main()
