"""What clustering and a pass cost, against the bare work. One JSON line for each measurement.

    .venv/bin/python bench/curate.py              # 100,000 rows, about 8 minutes
    .venv/bin/python bench/curate.py --quick      # small, for the test; its ratios mean little
    .venv/bin/python bench/curate.py --million    # only 1,000,000 rows in 1,000 scopes, 1 minute

Bare clustering is the matrix product of all rows with all rows, in the same blocks, and nothing
else. A bare pass is the engine's merge of the rows that the pass writes.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCE_MEM_POOL_SIZE", str(4 * 2**30))  # the bare merge needs it

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.corpus import DIMENSION, WORDS, around, corpus, frequencies, questions, vocabulary
from bench.measure import SEED, compared, emit, interleaved, memory, seconds
from bench.overhead import full_rows, table_of, twin
from lance_memory import ConsolidateOptions, FunctionEmbedder, MemoryStore, latest
from lance_memory.curate.cluster.groups import near_duplicates
from lance_memory.curate.cluster.members import blocks_of
from lance_memory.curate.cluster.select import select
from lance_memory.index import near

FLOOR = 0.85
SIZE = 20
QUERIES, SEEN = 1_024, 8_192  # the blocks of `TopK` on the CPU
MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    rows: int = 100_000
    near: int = 20_000
    runs: int = 3
    questions: int = 200
    scopes: int = 1_000
    scope: int = 1_000


QUICK = Sizes(rows=2_100, near=400, runs=1, questions=5, scopes=5, scope=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Memories of which some are said again: vectors float32 [n, d], and a text each."""

    vectors: NDArray[np.float32]
    contents: list[str]

    def table(self, **columns: Any) -> pa.Table:
        """As `add_many` takes it."""
        flat = pa.array(self.vectors.ravel())
        embedding = pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])
        return pa.table({"content": self.contents, **columns, "embedding": embedding})


def repeated(rows: int, near_ones: int, seed: int) -> Repeated:
    """So many memories in nested topics; `near_ones` of them in groups of two to five.

    Two of a group have a cosine of about .93, two of a topic of .8. A text has no number, and those
    of a group have the same words and one more.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, size=near_ones)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), near_ones) + 1]
    sizes[-1] -= sizes.sum() - near_ones
    group = np.repeat(np.arange(len(sizes)), sizes)
    group = np.concatenate([group, np.arange(len(sizes), len(sizes) + rows - near_ones)])
    first = corpus(int(group[-1]) + 1, seed).vectors
    vectors = first[group]
    vectors[:near_ones] = around(vectors[:near_ones], 0.2 / np.sqrt(DIMENSION), rng)
    words = np.array(vocabulary())
    picks = rng.choice(len(words), size=(len(first), WORDS), p=frequencies())
    said = [" ".join(words[line]) for line in picks]
    more = words[np.arange(rows) % len(words)]
    contents = [f"{said[i]} {more[row]}" for row, i in enumerate(group.tolist())]
    order = rng.permutation(rows)
    return Repeated(vectors=vectors[order], contents=[contents[i] for i in order])


def opened(path: Path, known: dict[str, NDArray[np.float32]] | None = None) -> MemoryStore:
    """A store that embeds only what it was told: vectors come with the rows."""
    embedder = FunctionEmbedder(
        lambda texts: np.stack([(known or {})[text] for text in texts]),
        name="known",
        dimension=DIMENSION,
    )
    return MemoryStore.open(path, embedder=embedder, upkeep=None)


def bare_product(rows: NDArray[np.float32]) -> None:
    """Every row with every row, in blocks, and the cosines thrown away."""
    for first in range(0, len(rows), QUERIES):
        for other in range(0, len(rows), SEEN):
            rows[first : first + QUERIES] @ rows[other : other + SEEN].T


class Peak:
    """MB that a piece of work adds to this process at its peak, as Linux counts them."""

    def __init__(self) -> None:
        self.added = 0.0

    def of(self, work: Callable[[], Any]) -> Any:
        """Do it, and keep its peak if it is the highest."""
        gc.collect()
        pa.default_memory_pool().release_unused()
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        answer = work()
        self.added = max(self.added, memory("VmHWM") - before)
        return answer


class Bench:
    """A store of rows in one scope, of which a fifth are near another."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder = folder
        self.sizes = sizes

    @cached_property
    def rows(self) -> Repeated:
        return repeated(self.sizes.rows, self.sizes.near, SEED)

    @cached_property
    def known(self) -> dict[str, NDArray[np.float32]]:
        return dict(zip(self.rows.contents, self.rows.vectors, strict=True))

    @cached_property
    def filled(self) -> Path:
        path = self.folder / "filled"
        store = opened(path)
        store.add_many(self.rows.table())
        store.optimize()
        return path

    # -- clustering -------------------------------------------------------------------------

    def clustering(self) -> None:
        """The vectors in memory: every row with every row, by each method."""
        vectors = self.rows.vectors
        for method in ("greedy", "components", "average"):
            clusters: list[list[int]] = []

            def ours(_: int, method: str = method, clusters: list[list[int]] = clusters) -> float:
                return seconds(
                    lambda: clusters.__setitem__(
                        slice(None),
                        near_duplicates(vectors, floor=FLOOR, max_size=SIZE, method=method),
                    )
                )

            taken = interleaved(1 if method != "greedy" else self.sizes.runs, ours, self._bare)
            compared(f"clustering_{method}", *taken, rows=len(vectors), bar=1.3)

    def blocks(self) -> None:
        """The same within blocks, and the share of the pairs that they find."""
        vectors = self.rows.vectors

        def ours(_: int) -> float:
            return seconds(
                lambda: near_duplicates(
                    vectors, floor=FLOOR, max_size=SIZE, blocks=blocks_of(vectors, None)
                )
            )

        taken = interleaved(self.sizes.runs, ours, self._bare)
        compared("clustering_in_blocks", *taken, rows=len(vectors), bar=1.3)
        whole = near(vectors, 2 * SIZE, floor=FLOOR)
        for name, blocks in {
            "blocks": blocks_of(vectors, None),
            "partitions": blocks_of(vectors, opened(self.filled)._snapshot().centroids()),
        }.items():
            found = near(vectors, 2 * SIZE, floor=FLOOR, blocks=blocks)
            recall = len(found.index) / len(whole.index)
            emit(
                bench=f"pairs_found_in_{name}",
                recall=round(recall, 5),
                pairs=len(whole.index) // 2,
                blocks=len(np.unique(blocks)),
                rows=len(vectors),
                bar=0.99,
                bar_is="at_least",
                met=recall >= 0.99,
            )

    def selecting(self) -> None:
        """From the store on disk: read, cluster, and compare texts; and what it takes of memory."""
        store, peak = opened(self.filled), Peak()
        options = ConsolidateOptions(min_similarity=FLOOR, max_size=SIZE)
        found: list[Any] = []

        def ours(_: int) -> float:
            snapshot = store._snapshot()
            return seconds(lambda: found.append(peak.of(lambda: select(snapshot, None, options))))

        taken = interleaved(self.sizes.runs, ours, self._bare)
        compared("select", *taken, rows=self.sizes.rows, bar=1.3)
        clustered = sum(len(cluster.ids) for cluster in found[-1].clusters)
        self._memory("select_memory", peak, vectors=self.rows.vectors.nbytes, clustered=clustered)

    def _bare(self, _: int) -> float:
        return seconds(lambda: bare_product(self.rows.vectors))

    def _memory(self, name: str, peak: Peak, *, vectors: int, **fields: Any) -> None:
        ratio = peak.added / (vectors / MB)
        emit(
            bench=name,
            peak_mb=round(peak.added, 1),
            vectors_mb=round(vectors / MB, 1),
            ratio=round(ratio, 3),
            **fields,
            bar=2.0,
            met=ratio <= 2.0,
        )

    def million(self) -> None:
        """A thousand scopes of a thousand rows: only narrow columns and a bin are held."""
        path, sizes = self.folder / "million", self.sizes
        store = opened(path)
        step = max(1, 50 * sizes.scope)
        for part, start in enumerate(range(0, sizes.scopes * sizes.scope, step)):
            count = min(step, sizes.scopes * sizes.scope - start)
            rows = repeated(count, count // 5, SEED + part)
            users = [
                f"user {start // sizes.scope + i % (count // sizes.scope)}" for i in range(count)
            ]
            store.add_many(rows.table(user=users))
        peak = Peak()
        options = ConsolidateOptions(min_similarity=FLOOR, max_size=SIZE)
        snapshot = store._snapshot()
        found: list[Any] = []
        took = seconds(lambda: found.append(peak.of(lambda: select(snapshot, None, options))))
        total = sizes.scopes * sizes.scope
        emit(
            bench="select_million",
            seconds=round(took, 1),
            peak_mb=round(peak.added, 1),
            vectors_mb=round(total * DIMENSION * 4 / MB, 1),
            clusters=len(found[0].clusters),
            rows=total,
            scopes=sizes.scopes,
            bar=round(total * DIMENSION * 2 / MB, 1),
            bar_is="mb",
            met=peak.added <= total * DIMENSION * 2 / MB,
        )

    # -- a pass -----------------------------------------------------------------------------

    def commit(self) -> None:
        """Apply a plan that supersedes a fifth of the rows, against a merge of as many rows."""
        plan = self._plan()
        scratch = opened(twin(self.filled, self.folder / "scratch"), self.known)
        scratch.apply(plan)
        written = f"state_at = timestamp '{plan.at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
        prepared = full_rows(self.folder / "scratch", written)

        def ours(_: int) -> float:
            store = opened(twin(self.filled, self.folder / "ours"), self.known)
            store.list(limit=1)
            return seconds(lambda: store.apply(plan))

        def raw(_: int) -> float:
            dataset = table_of(twin(self.filled, self.folder / "raw"))
            dataset.to_table(columns=["id"], limit=1)
            merge = dataset.merge_insert("id").when_matched_update_all()
            return seconds(lambda: merge.when_not_matched_insert_all().execute(prepared))

        taken = interleaved(max(self.sizes.runs, 5), ours, raw)
        compared(f"commit_of_{len(prepared)}_rows", *taken, rows=self.sizes.rows, bar=2.0)

    def search_after(self) -> None:
        """Searches before the pass, and after it and upkeep: the index stays useful."""
        before = opened(twin(self.filled, self.folder / "before"), self.known)
        after = opened(twin(self.filled, self.folder / "after"), self.known)
        after.apply(self._plan())
        after.optimize()
        asked = questions(self.rows.vectors, self.sizes.questions, SEED + 1)

        def side(store: MemoryStore) -> Callable[[int], float]:
            return lambda i: seconds(lambda: store.search(vector=asked[i], mode="vector", k=10))

        for store in (before, after):
            side(store)(0)
        taken = interleaved(len(asked), side(after), side(before))
        compared("search_after_a_pass", *taken, rows=self.sizes.rows, bar=1.1)

    def _plan(self) -> Any:
        store = opened(self.filled, self.known)
        options = ConsolidateOptions(min_similarity=FLOOR, max_size=SIZE, max_dropped=1.0)
        return store.consolidate(options, latest, guard=None, dry_run=True)


def benches(bench: Bench) -> dict[str, Callable[[], None]]:
    return {
        "clustering": bench.clustering,
        "blocks": bench.blocks,
        "select": bench.selecting,
        "commit": bench.commit,
        "search": bench.search_after,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for the test")
    parser.add_argument("--million", action="store_true", help="1,000 scopes of 1,000 rows, only")
    parser.add_argument("--only", nargs="*", default=[], help="names of benches; default: all")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lance-memory-bench-") as folder:
        bench = Bench(Path(folder), QUICK if options.quick else Sizes())
        chosen = {"million": bench.million} if options.million else benches(bench)
        for name, work in chosen.items():
            if not options.only or name in options.only:
                work()


if __name__ == "__main__":
    main()
