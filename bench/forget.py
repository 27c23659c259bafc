"""How long it takes to forget a tenant, and one memory, and what the proof looked at.

    python bench/forget.py                     # five tenants of 10,000 rows of 384 dimensions
    python bench/forget.py --tenants 3 --rows 200

Each store has a tag that holds the tenant, and the indices that `optimize` makes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bench.corpus import DIMENSION, corpus
from bench.measure import SEED, Stopwatch, emit
from lance_memory import FunctionEmbedder, MemoryStore


def filled(path: Path, tenants: int, rows: int) -> MemoryStore:
    embedder = FunctionEmbedder(
        lambda texts: np.ones((len(texts), DIMENSION), np.float32), name="ones", dimension=DIMENSION
    )
    store = MemoryStore.open(path / "store", embedder=embedder)
    for number in range(tenants):
        chunk = corpus(rows, SEED + number, first=number * rows)
        store.add_many(chunk.table(tenant=np.full(rows, f"tenant {number}")))
    store.optimize()
    return store


def measured(path: Path, tenants: int, rows: int, *, tagged: bool) -> None:
    store = filled(path, tenants, rows)
    if tagged:
        store.tag("held")
    watch = Stopwatch()
    watch("plan", lambda: store.forget(tenant="tenant 1", dry_run=True))
    many = watch("forget", lambda: store.forget(tenant="tenant 1"))
    one = store.list(tenant="tenant 0", limit=1)[0].id
    watch("one", lambda: store.forget(one))
    proof = asdict(many.proof)
    emit(
        bench="forget_tenant",
        rows=tenants * rows,
        forgotten=len(many.plan.ids),
        tagged=tagged,
        plan_s=watch.steps["plan"],
        forget_s=watch.steps["forget"],
        forget_one_s=watch.steps["one"],
        **{name: proof[name] for name in ("versions", "data_files", "index_files", "raw_files")},
        found=len(many.proof.found),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenants", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000, help="of each tenant")
    options = parser.parse_args(arguments)
    for tagged in (False, True):
        with tempfile.TemporaryDirectory(prefix="lance-memory-bench-") as made:
            measured(Path(made), options.tenants, options.rows, tagged=tagged)


if __name__ == "__main__":
    main()
