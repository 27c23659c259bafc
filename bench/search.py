"""How fast and how right search is, against the bare engine. One JSON line for each measurement.

    .venv/bin/python bench/search.py            # 100,000 rows, about 3 minutes
    .venv/bin/python bench/search.py --quick    # small, for the test; its ratios mean little

Ours is `store.search(...)` with default options: visible rows only, whole memories. Bare is the
engine's own index query with the same probes and refine, without a filter, ids only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.corpus import DIMENSION, SUBTOPICS, Corpus, asked, corpus, questions
from bench.measure import SEED, compared, emit, interleaved, seconds
from lance_memory import FunctionEmbedder, MemoryStore
from lance_memory.embed import MiniLM
from lance_memory.storage.ranking.depth import depth

K = 10
CANDIDATES = 100
SESSION = 20  # rows of a session
RECALL = 0.98
LMEM = Path(sys.executable).parent / "lmem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    rows: int = 100_000
    questions: int = 200
    batch: int = 1_000
    cold_rows: int = 1_000
    cold_runs: int = 15


QUICK = Sizes(rows=5_600, questions=4, batch=20, cold_rows=20, cold_runs=1)


def opened(path: Path) -> MemoryStore:
    """A store whose embedder is never asked: vectors come with the rows and the questions."""
    embedder = FunctionEmbedder(
        lambda texts: np.ones((len(texts), DIMENSION), np.float32), name="ones", dimension=DIMENSION
    )
    return MemoryStore.open(path, embedder=embedder, upkeep=None)


class Filled:
    """A store with every index, and its rows in memory to compare with."""

    def __init__(self, path: Path, rows: Corpus, columns: dict[str, NDArray[np.str_]]) -> None:
        self.store = opened(path)
        self.rows = rows
        self.columns = columns
        self.ids = np.array(self.store.add_many(rows.table(**columns)).ids)
        self.visible = np.ones(len(self.ids), bool)

    def hide(self, places: NDArray[np.int64]) -> None:
        """Retire these rows, and bring the store in order."""
        self.store.retire(self.ids[places].tolist(), reason="of the measurement")
        self.visible[places] = False
        self.store.optimize()

    @cached_property
    def dataset(self) -> lance.LanceDataset:
        """The engine's own handle."""
        return lance.dataset(f"{self.store.uri}/memories.lance")

    def passing(self, **equal: str) -> NDArray[np.bool_]:
        """The visible rows of a scope."""
        mask = self.visible.copy()
        for name, value in equal.items():
            mask &= self.columns[name] == value
        return mask

    def recall(self, vectors: NDArray[np.float32], **equal: str) -> float:
        """Of the true ten nearest visible rows, the share that a search finds."""
        mask = self.passing(**equal)
        ids, among = self.ids[mask], self.rows.vectors[mask]
        found = 0
        for vector in vectors:
            best = ids[np.argsort(-(among @ vector), kind="stable")[:K]]
            hits = self.store.search(vector=vector, mode="vector", k=K, **equal).hits
            found += len({*best} & {hit.memory.id for hit in hits})
        return found / (K * len(vectors))

    def bare(self, vector: NDArray[np.float32], k: int = K, *, share: float = 1.0) -> pa.Table:
        """The engine's index query, as deep as ours is where such a share of the rows passes."""
        deep = depth(k, share=share)
        return self.dataset.to_table(
            columns=["id", "_distance"],
            nearest={
                "column": "embedding",
                "q": vector,
                "k": k,
                "metric": "cosine",
                "minimum_nprobes": deep.probes,
                "refine_factor": deep.refine,
            },
        )

    def bare_words(self, text: str, k: int) -> pa.Table:
        """The engine's text query."""
        query = lance.query.MatchQuery(text, "content")
        return self.dataset.to_table(columns=["id", "_score"], full_text_query=query, limit=k)


class Bench:
    """A store with a tenth of its rows hidden, and one with the half nearest to the questions."""

    def __init__(self, folder: Path, sizes: Sizes) -> None:
        self.folder = folder
        self.sizes = sizes
        self.rng = np.random.default_rng(SEED)
        rows = corpus(sizes.rows, SEED)
        self.asked = questions(rows.vectors, sizes.questions, SEED + 1)
        self.texts = asked(sizes.questions, SEED + 2)
        self.filled = Filled(folder / "filled", rows, self._scopes(rows))
        hidden = self.rng.choice(sizes.rows, sizes.rows // 10, replace=False)
        self.filled.hide(hidden)

    def _scopes(self, rows: Corpus) -> dict[str, NDArray[np.str_]]:
        """Scopes of a tenth and a hundredth of the rows: spread over all topics, or some topics."""
        topic, count = rows.subtopics // SUBTOPICS, len(rows.contents)
        return {
            "tenant": np.where(self.rng.random(count) < 0.1, "tenth spread", "other"),
            "user": np.where(self.rng.random(count) < 0.01, "hundredth spread", "other"),
            "agent": np.where(topic < 4, "tenth in 4 topics", "other"),
            "run": np.where(rows.subtopics < 10, "hundredth in 10 subtopics", "other"),
            "session": np.array([f"session {i // SESSION}" for i in range(count)]),
        }

    # -- one vector search ------------------------------------------------------------------

    def vector(self) -> None:
        """All visible rows."""
        self._against_bare("vector_search", self.filled, self.asked, bar=1.5)
        self._recall("vector_search", self.filled, self.asked)

    def half_superseded(self) -> None:
        """Half of the rows hidden, and those the nearest to the questions."""
        rows = self.filled.rows
        filled = Filled(self.folder / "half", rows, {})
        nearness = np.max([rows.vectors @ vector for vector in self.asked], axis=0)
        filled.hide(np.argsort(-nearness)[: self.sizes.rows // 2])
        self._against_bare("vector_search_half_hidden", filled, self.asked, bar=1.5)
        self._recall("vector_search_half_hidden", filled, self.asked)

    def scopes(self) -> None:
        """A tenth and a hundredth of the rows, asked about what is in the scope, and elsewhere."""
        for name in ("tenant", "user", "agent", "run"):
            values = self.filled.columns[name]
            scope = {name: next(value for value in np.unique(values) if value != "other")}
            label = scope[name].replace(" ", "_")
            own = questions(
                self.filled.rows.vectors[self.filled.passing(**scope)], len(self.asked), SEED + 3
            )
            if label.startswith("hundredth"):
                self._against_bare(f"vector_search_{label}", self.filled, own, bar=2.0, **scope)
            self._against_unfiltered(label, own, **scope)
            self._recall(f"vector_search_{label}", self.filled, own, **scope)
            self._recall(f"vector_search_{label}_asked_elsewhere", self.filled, self.asked, **scope)

    def scope_after_writes(self) -> None:
        """A hundredth of the rows, a write before each search; bare is asked without writes."""
        store, scope = self.filled.store, {"user": "hundredth spread"}

        def ours(i: int) -> float:
            store.update(self._victim, importance=(i % 10) / 10)
            return self._ours(self.filled, self.asked, scope)(i)

        taken = interleaved(min(40, len(self.asked)), ours, self._bare(self.filled, self.asked))
        self._compared("vector_search_hundredth_spread_after_a_write", taken, bar=2.0)

    @cached_property
    def _victim(self) -> str:
        return str(self.filled.ids[np.flatnonzero(self.filled.passing(user="hundredth spread"))[0]])

    # -- both legs, and many ----------------------------------------------------------------

    def hybrid(self) -> None:
        """Words and vector together, against the sum of the two bare queries.

        Fusion looks at 100 candidates of each leg, so that is what bare is asked for; a second
        line says it for 10. The question's embedding comes with it, and is measured apart.
        """
        filled = self.filled

        def ours(i: int) -> float:
            vector, text = self.asked[i], self.texts[i]
            return seconds(lambda: filled.store.search(text, vector=vector, k=K))

        def bare(k: int) -> Callable[[int], float]:
            return lambda i: seconds(
                lambda: (filled.bare(self.asked[i], k), filled.bare_words(self.texts[i], k))
            )

        for k in (CANDIDATES, K):
            taken = interleaved(len(self.asked), ours, bare(k))
            self._compared(f"hybrid_search_against_{k}_of_each_leg", taken, bar=1.2)

    def embedding(self) -> None:
        """What a question's embedding costs, with the default embedder."""
        embedder = MiniLM()
        texts = [f"what did they say about {text} last week?" for text in self.texts]
        embedder.embed(texts[:1])
        taken = [seconds(lambda text=text: embedder.embed([text])) for text in texts]
        emit(bench="question_embedding", ms=ms(taken), n=len(taken), model=embedder.name)

    def batch(self) -> None:
        """A thousand questions at once, against one by one."""
        many = questions(self.filled.rows.vectors, self.sizes.batch, SEED + 4)
        ones = many[: len(self.asked)]
        store = self.filled.store
        runs = interleaved(
            3,
            lambda _: seconds(lambda: store.search_many(vectors=many, mode="vector", k=K)),
            lambda _: seconds(
                lambda: [store.search(vector=one, mode="vector", k=K) for one in ones]
            ),
        )
        at_once = len(many) / statistics.median(runs[0])
        one_by_one = len(ones) / statistics.median(runs[1])
        emit(
            bench="batch_search",
            at_once_per_s=round(at_once),
            one_by_one_per_s=round(one_by_one),
            ratio=round(at_once / one_by_one, 2),
            n=len(many),
            rows=self.sizes.rows,
            bar=5.0,
            bar_is="at_least",
            met=at_once / one_by_one >= 5.0,
        )

    # -- the command ------------------------------------------------------------------------

    def cold(self) -> None:
        """`lmem search` from the shell to the printed hits, default embedder, whole processes."""
        path = self.folder / "cold"
        store = MemoryStore.open(path)
        store.add_many(corpus(self.sizes.cold_rows, SEED).contents)
        store.optimize()
        line = [str(LMEM), "--store", str(path), "search", "what was said about it"]
        if not LMEM.exists() or subprocess.run(line, capture_output=True).returncode:
            print("lmem search does not run here; left out", file=sys.stderr)
            return
        taken = [
            seconds(lambda: subprocess.run(line, capture_output=True, check=True))
            for _ in range(self.sizes.cold_runs)
        ]
        took = statistics.median(taken)
        emit(
            bench="lmem_search_cold",
            ms=ms(taken),
            max_ms=round(max(taken) * 1e3, 1),
            n=len(taken),
            rows=self.sizes.cold_rows,
            bar=1.2,
            bar_is="seconds",
            met=took <= 1.2,
        )

    # -- inside -----------------------------------------------------------------------------

    def _ours(
        self, filled: Filled, vectors: NDArray[np.float32], scope: dict[str, str]
    ) -> Callable[[int], float]:
        def one(i: int) -> float:
            return seconds(
                lambda: filled.store.search(vector=vectors[i], mode="vector", k=K, **scope)
            )

        one(0)
        return one

    def _bare(
        self, filled: Filled, vectors: NDArray[np.float32], share: float = 1.0
    ) -> Callable[[int], float]:
        filled.bare(vectors[0])
        return lambda i: seconds(lambda: filled.bare(vectors[i], share=share))

    def _against_bare(
        self, name: str, filled: Filled, vectors: NDArray[np.float32], *, bar: float, **scope: str
    ) -> None:
        share = 1.0 if scope else float(filled.visible.mean())
        ours, bare = self._ours(filled, vectors, scope), self._bare(filled, vectors, share)
        self._compared(name, interleaved(len(vectors), ours, bare), bar=bar)

    def _against_unfiltered(self, label: str, vectors: NDArray[np.float32], **scope: str) -> None:
        ours = self._ours(self.filled, vectors, scope)
        whole = self._ours(self.filled, vectors, {})
        taken = interleaved(len(vectors), ours, whole)
        self._compared(f"vector_search_{label}_against_unfiltered", taken, bar=3.0)

    def _compared(self, name: str, taken: list[list[float]], *, bar: float) -> None:
        compared(name, *taken, rows=self.sizes.rows, bar=bar)

    def _recall(
        self, name: str, filled: Filled, vectors: NDArray[np.float32], **scope: str
    ) -> None:
        found = filled.recall(vectors, **scope)
        emit(
            bench=f"{name}_recall_at_10",
            recall=round(found, 4),
            passing=int(filled.passing(**scope).sum()),
            n=len(vectors),
            rows=self.sizes.rows,
            bar=RECALL,
            bar_is="at_least",
            met=found >= RECALL,
        )


def ms(taken: list[float]) -> float:
    return round(statistics.median(taken) * 1e3, 2)


def benches(bench: Bench) -> dict[str, Callable[[], Any]]:
    return {
        "vector": bench.vector,
        "scopes": bench.scopes,
        "hybrid": bench.hybrid,
        "batch": bench.batch,
        "embedding": bench.embedding,
        "half": bench.half_superseded,
        "cold": bench.cold,
        "writes": bench.scope_after_writes,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for the test")
    parser.add_argument("--only", nargs="*", default=[], help="names of benches; default: all")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="lance-memory-bench-") as folder:
        bench = Bench(Path(folder), QUICK if options.quick else Sizes())
        for name, work in benches(bench).items():
            if not options.only or name in options.only:
                work()


if __name__ == "__main__":
    main()
