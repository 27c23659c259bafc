"""Our store beside others: same rows, same questions, same machine, one after the other.

    pip install -e '.[bench]'                     # in an environment of its own
    python bench/peers.py                         # 100,000 rows, about 3 minutes
    python bench/peers.py --only lance-memory sqlite-vec --rows 20000

Each store is filled in one process and asked in another, so that memory is what a reader needs. Each
has the settings that its documentation gives for the best answers, and the durability it documents.
A peer that is not installed, or not done within the limit, is reported as that.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.corpus import DIMENSION, corpus, questions
from bench.measure import SEED, emit, memory, seconds
from bench.origin import for_children

K = 10
HIDDEN = 10  # every tenth row
PATIENCE = 20.0  # seconds for one kind of call
LIMIT = 420.0  # seconds to fill a store, and again to ask it
SLOW_ROWS = 10_000
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Rows:
    """What is stored: ids are numbers, each with a vector, a text, a tenant and a state."""

    vectors: NDArray[np.float32]
    contents: list[str]

    def __len__(self) -> int:
        return len(self.contents)

    def hidden(self, i: int) -> bool:
        return i % HIDDEN == 0

    def state(self, i: int) -> str:
        return "hidden" if self.hidden(i) else "active"

    def tenant(self, i: int) -> str:
        return f"tenant {i % 7}"

    def batches(self, size: int = BATCH) -> Iterator[range]:
        for start in range(0, len(self), size):
            yield range(start, min(start + size, len(self)))


class Peer(Protocol):
    """One store.

    `fill` is the bulk add. Some also `settle`: hide the rows that are to be hidden, build indices;
    and `tidy`: drop what old versions hold.
    """

    distribution: str
    settings: str
    durability: str

    def fill(self, path: Path, rows: Rows) -> None: ...
    def open(self, path: Path) -> None: ...
    def search(self, vector: NDArray[np.float32]) -> list[int]:
        """Numbers of the nearest active rows, their texts and fields having been read."""
        ...

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None: ...
    def update(self, number: int) -> None: ...
    def delete(self, number: int) -> None: ...


class LanceMemory:
    distribution = "lance-memory"
    settings = "defaults, after optimize()"
    durability = "one atomic commit a call, no fsync: survives the process, not a power cut"

    def _store(self, path: Path) -> Any:
        from lance_memory import FunctionEmbedder, MemoryStore

        embedder = FunctionEmbedder(
            lambda texts: np.ones((len(texts), DIMENSION), np.float32),
            name="ones",
            dimension=DIMENSION,
        )
        return MemoryStore.open(path / "store", embedder=embedder)

    def fill(self, path: Path, rows: Rows) -> None:
        store = self._store(path)
        embedding = pa.FixedSizeListArray.from_arrays(pa.array(rows.vectors.ravel()), DIMENSION)
        numbers = range(len(rows))
        table = pa.table(
            {
                "content": rows.contents,
                "tenant": [rows.tenant(i) for i in numbers],
                "source_ref": [str(i) for i in numbers],
                "embedding": embedding,
            }
        )
        store.add_many(table)

    def settle(self, path: Path, rows: Rows) -> None:
        self.open(path)
        self.store.retire([self.ids[str(i)] for i in range(len(rows)) if rows.hidden(i)])
        self.store.optimize()

    def tidy(self) -> None:
        self.store.optimize(clean_older_than=timedelta(0))

    def open(self, path: Path) -> None:
        self.store = self._store(path)
        some = self.store.to_arrow(columns=["id", "source_ref"])
        self.ids = dict(zip(some["source_ref"].to_pylist(), some["id"].to_pylist(), strict=True))

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        hits = self.store.search(vector=vector, mode="vector", k=K).hits
        return [int(hit.memory.source_ref) for hit in hits]

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None:
        self.store.add(content, embedding=vector, tenant="tenant 1", source_ref=str(number))

    def update(self, number: int) -> None:
        self.store.update(self.ids[str(number)], importance=0.9)

    def delete(self, number: int) -> None:
        self.store.delete(self.ids[str(number)])


class SqliteVec:
    distribution = "sqlite-vec"
    settings = "vec0, cosine, metadata and auxiliary columns; exact scan, there is no index"
    durability = "WAL, synchronous=FULL: fsync at each commit"

    def _connection(self, path: Path) -> Any:
        import apsw  # the sqlite3 of many Pythons loads no extensions
        import sqlite_vec

        base = apsw.Connection(str(path / "store.db"))
        base.enable_load_extension(True)
        base.load_extension(sqlite_vec.loadable_path())
        base.execute("pragma journal_mode=wal; pragma synchronous=full")
        return base

    def fill(self, path: Path, rows: Rows) -> None:
        base = self._connection(path)
        base.execute(
            f"create virtual table memories using vec0(id integer primary key, "
            f"embedding float[{DIMENSION}] distance_metric=cosine, state text, "
            "+content text, +tenant text)"
        )
        for batch in rows.batches():
            with base:
                base.executemany(
                    "insert into memories(id, embedding, state, content, tenant) values (?,?,?,?,?)",
                    (
                        (
                            i,
                            rows.vectors[i].tobytes(),
                            rows.state(i),
                            rows.contents[i],
                            rows.tenant(i),
                        )
                        for i in batch
                    ),
                )

    def open(self, path: Path) -> None:
        self.base = self._connection(path)

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        found = self.base.execute(
            "select id, distance, content, tenant from memories "
            "where embedding match ? and k = ? and state = 'active' order by distance",
            (vector.tobytes(), K),
        )
        return [row[0] for row in found]

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None:
        self.base.execute(
            "insert into memories(id, embedding, state, content, tenant) values (?,?,?,?,?)",
            (number, vector.tobytes(), "active", content, "tenant 1"),
        )

    def update(self, number: int) -> None:
        self.base.execute("update memories set state = 'hidden' where id = ?", (number,))

    def delete(self, number: int) -> None:
        self.base.execute("delete from memories where id = ?", (number,))


class Chroma:
    distribution = "chromadb"
    settings = "PersistentClient, HNSW cosine, ef_construction 200, ef_search 100"
    durability = "SQLite write-ahead log at each call; the HNSW file follows later"

    def _collection(self, path: Path) -> Any:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(path=str(path / "chroma"), settings=settings)
        return self.client.get_or_create_collection(
            "memories",
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine", "ef_construction": 200, "ef_search": 100}},
        )

    def fill(self, path: Path, rows: Rows) -> None:
        collection = self._collection(path)
        for batch in rows.batches(min(BATCH, self.client.get_max_batch_size())):
            collection.add(
                ids=[str(i) for i in batch],
                embeddings=rows.vectors[batch.start : batch.stop],
                documents=rows.contents[batch.start : batch.stop],
                metadatas=[{"state": rows.state(i), "tenant": rows.tenant(i)} for i in batch],
            )

    def open(self, path: Path) -> None:
        self.collection = self._collection(path)

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        found = self.collection.query(
            query_embeddings=[vector],
            n_results=K,
            where={"state": "active"},
            include=["documents", "metadatas", "distances"],
        )
        return [int(i) for i in found["ids"][0]]

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None:
        self.collection.add(
            ids=[str(number)],
            embeddings=[vector],
            documents=[content],
            metadatas=[{"state": "active", "tenant": "tenant 1"}],
        )

    def update(self, number: int) -> None:
        self.collection.update(ids=[str(number)], metadatas=[{"state": "hidden"}])

    def delete(self, number: int) -> None:
        self.collection.delete(ids=[str(number)])


class QdrantLocal:
    distribution = "qdrant-client"
    settings = "local mode on disk, cosine; exact numpy scan, there is no index in local mode"
    durability = "SQLite commit at each call"

    def _client(self, path: Path) -> Any:
        from qdrant_client import QdrantClient

        return QdrantClient(path=str(path / "qdrant"))

    def fill(self, path: Path, rows: Rows) -> None:
        from qdrant_client import models

        client = self._client(path)
        client.create_collection(
            "memories",
            vectors_config=models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE),
        )
        for batch in rows.batches(1_000):
            payloads = [
                {"content": rows.contents[i], "state": rows.state(i), "tenant": rows.tenant(i)}
                for i in batch
            ]
            points = models.Batch(
                ids=list(batch),
                vectors=rows.vectors[batch.start : batch.stop].tolist(),
                payloads=payloads,
            )
            client.upsert("memories", points=points)
        client.close()

    def open(self, path: Path) -> None:
        self.client = self._client(path)

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        from qdrant_client import models

        active = models.FieldCondition(key="state", match=models.MatchValue(value="active"))
        found = self.client.query_points(
            "memories",
            query=vector.tolist(),
            limit=K,
            query_filter=models.Filter(must=[active]),
            with_payload=True,
        )
        return [int(point.id) for point in found.points]

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None:
        from qdrant_client import models

        payload = {"content": content, "state": "active", "tenant": "tenant 1"}
        point = models.PointStruct(id=number, vector=vector.tolist(), payload=payload)
        self.client.upsert("memories", points=[point])

    def update(self, number: int) -> None:
        self.client.set_payload("memories", payload={"state": "hidden"}, points=[number])

    def delete(self, number: int) -> None:
        self.client.delete("memories", points_selector=[number])


class LanceContext:
    distribution = "lance-context"
    settings = "cosine, btree id index, compacted; exact scan, it makes no vector index"
    durability = "one commit a call, no fsync"

    def _context(self, path: Path) -> Any:
        from lance_context import Context

        return Context.create(
            str(path / "context.lance"),
            embedding_dim=DIMENSION,
            distance_metric="cosine",
            id_index_type="btree",
        )

    def fill(self, path: Path, rows: Rows) -> None:
        context = self._context(path)
        for batch in rows.batches(10_000):
            context.add_many(
                {
                    "role": "user",
                    "content": rows.contents[i],
                    "embedding": rows.vectors[i].tolist(),
                    "external_id": str(i),
                    "tenant": rows.tenant(i),
                    "lifecycle_status": "retired" if rows.hidden(i) else "active",
                }
                for i in batch
            )

    def settle(self, path: Path, _: Rows) -> None:
        self.open(path)
        self.context.compact()

    def open(self, path: Path) -> None:
        self.context = self._context(path)

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        found = self.context.search(vector.tolist(), limit=K, include_embedding=False)
        return [int(row["external_id"]) for row in found]

    def add(self, number: int, vector: NDArray[np.float32], content: str) -> None:
        self.context.add(
            "user", content, embedding=vector.tolist(), external_id=str(number), tenant="tenant 1"
        )

    def update(self, number: int) -> None:
        self.context.update(external_id=str(number), lifecycle_status="retired")

    def delete(self, number: int) -> None:
        self.context.delete(external_id=str(number))


class Faiss:
    distribution = "faiss-cpu"
    settings = "IVF-PQ in memory, 256 lists, 48 bytes, 32 probes, a bitmap of active rows; ids only"
    durability = "none: a file written once; the physical floor, not a store"

    def fill(self, path: Path, rows: Rows) -> None:
        import faiss

        faiss.omp_set_num_threads(1)  # several threads wait for each other where cores are shared
        lists = max(1, min(256, len(rows) // 400))
        index = faiss.index_factory(
            DIMENSION, f"IVF{lists},PQ48np", faiss.METRIC_INNER_PRODUCT
        )  # np: no polysemous codes
        index.train(rows.vectors[:: max(1, len(rows) // 65_536)])
        index.add(rows.vectors)
        faiss.write_index(index, str(path / "index.faiss"))

    def open(self, path: Path) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(str(path / "index.faiss"))
        active = np.arange(self.index.ntotal) % HIDDEN != 0
        self.bitmap = np.packbits(active, bitorder="little")
        selector = faiss.IDSelectorBitmap(self.bitmap)
        self.parameters = faiss.SearchParametersIVF(sel=selector, nprobe=32)

    def search(self, vector: NDArray[np.float32]) -> list[int]:
        _, found = self.index.search(vector[None], K, params=self.parameters)
        return [int(i) for i in found[0]]


PEERS: dict[str, Callable[[], Any]] = {
    "lance-memory": LanceMemory,
    "sqlite-vec": SqliteVec,
    "chromadb": Chroma,
    "qdrant-local": QdrantLocal,
    "faiss-ivf-pq": Faiss,
    "lance-context": LanceContext,
}
SLOW = ("qdrant-local", "lance-context")
"""Measured at 10,000 rows, where ours is measured once more. Qdrant itself warns of its local mode
beyond 20,000 points, and points to its server."""


# -- in the process of one peer -----------------------------------------------------------------


@dataclass(slots=True)
class Measured:
    """What one process says, line by line."""

    peer: str
    rows: int
    extra: dict[str, Any] = field(default_factory=dict)

    def say(self, name: str, **values: Any) -> None:
        emit(bench="peer", peer=self.peer, rows=self.rows, measure=name, **values, **self.extra)

    def timed(self, name: str, calls: Sequence[Callable[[], Any]]) -> None:
        """The median of as many of the calls as patience allows."""
        taken: list[float] = []
        for call in calls:
            taken.append(seconds(call))
            if sum(taken) > PATIENCE:
                break
        self.say(name, p50_ms=round(statistics.median(taken) * 1e3, 3), n=len(taken))


def load(data: Path) -> tuple[Rows, NDArray[np.float32], NDArray[np.int64]]:
    contents = json.loads((data / "contents.json").read_text())
    vectors = np.load(data / "vectors.npy", mmap_mode="r")
    return Rows(vectors, contents), np.load(data / "questions.npy"), np.load(data / "truth.npy")


def fill(name: str, data: Path, path: Path) -> None:
    """Bulk add, what it takes until searches are fast, and the size on disk."""
    peer, (rows, _, _) = PEERS[name](), load(data)
    rows = Rows(np.array(rows.vectors), rows.contents)
    took = seconds(lambda: peer.fill(path, rows))
    settled = seconds(lambda: peer.settle(path, rows)) if hasattr(peer, "settle") else 0.0
    told = Measured(name, len(rows))
    told.say(
        "bulk",
        rows_per_s=round(len(rows) / took),
        until_ready_s=round(took + settled, 1),
        settings=peer.settings,
        durability=peer.durability,
        version=importlib.metadata.version(peer.distribution),
    )
    told.say("disk", mb=megabytes(path))
    if hasattr(peer, "tidy"):
        peer.tidy()
        told.say("disk_without_old_versions", mb=megabytes(path))


def megabytes(path: Path) -> float:
    return round(sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 1e6, 1)


def ask(name: str, data: Path, path: Path) -> None:
    """Searches, memory, and single writes."""
    peer, (rows, asked, truth) = PEERS[name](), load(data)
    told = Measured(name, len(rows))
    told.say("open", seconds=round(seconds(lambda: peer.open(path)), 3))
    peer.search(asked[0])
    told.timed("search", [lambda q=q: peer.search(q) for q in asked])
    some = list(zip(asked, truth, strict=True))[:20]
    recalls = [len({*peer.search(q)} & {*best.tolist()}) / K for q, best in some]
    told.say("recall_at_10", recall=round(float(np.mean(recalls)), 3), n=len(some))
    told.say("memory", rss_mb=round(memory("VmRSS")), peak_mb=round(memory("VmHWM")))
    if not hasattr(peer, "add"):
        return
    first = len(rows)
    fresh = corpus(40, SEED + 9, first=first)
    told.timed(
        "single_add",
        [
            lambda i=i: peer.add(first + i, fresh.vectors[i], fresh.contents[i])
            for i in range(len(fresh.contents))
        ],
    )
    old = [i for i in range(len(rows)) if not rows.hidden(i)]
    told.timed("single_update", [lambda i=i: peer.update(i) for i in old[:20]])
    told.timed("single_delete", [lambda i=i: peer.delete(i) for i in old[20:40]])


# -- in the process that runs them all ----------------------------------------------------------


def prepare(data: Path, rows: int, count: int) -> None:
    """Write what every process reads: rows, questions and the true answers."""
    data.mkdir(parents=True)
    made = corpus(rows, SEED)
    asked = questions(made.vectors, count, SEED + 1)
    active = np.arange(rows) % HIDDEN != 0
    scores = np.where(active, asked @ made.vectors.T, -2.0)
    np.save(data / "vectors.npy", made.vectors)
    np.save(data / "questions.npy", asked)
    np.save(data / "truth.npy", np.argsort(-scores, axis=1)[:, :K])
    (data / "contents.json").write_text(json.dumps(made.contents))


def run(name: str, rows: int, data: Path, folder: Path, limit: float) -> None:
    """One peer, in two processes of its own."""
    path = folder / name
    path.mkdir(parents=True)
    for phase in ("fill", "ask"):
        command = [sys.executable, __file__, "--phase", phase, "--only", name]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                [*command, "--data", str(data), "--path", str(path)],
                timeout=limit,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env=for_children(),
            )
        except subprocess.TimeoutExpired:
            Measured(name, rows).say("not_reached", phase=phase, limit_s=limit)
            break
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            spent = round(time.perf_counter() - start, 1)
            Measured(name, rows).say("failed", phase=phase, message=last, after_s=spent)
            break
    shutil.rmtree(path, ignore_errors=True)


def installed(name: str) -> bool:
    try:
        importlib.metadata.version(PEERS[name].distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def plan(names: Sequence[str], rows: int) -> Iterator[tuple[int, list[str]]]:
    """Row counts, and who is measured with them."""
    slow = [name for name in names if name in SLOW]
    yield rows, [name for name in names if name not in SLOW or rows <= SLOW_ROWS]
    if slow and rows > SLOW_ROWS:
        yield SLOW_ROWS, [*(name for name in names if name == "lance-memory"), *slow]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for each process")
    parser.add_argument("--only", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--phase", choices=["fill", "ask"], help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.phase:
        phase = fill if options.phase == "fill" else ask
        phase(options.only[0], options.data, options.path)
        return
    with tempfile.TemporaryDirectory(prefix="lance-memory-bench-") as scratch:
        for rows, names in plan(options.only, options.rows):
            data = Path(scratch) / f"data-{rows}"
            prepare(data, rows, options.questions)
            for name in names:
                if installed(name):
                    run(name, rows, data, Path(scratch) / str(rows), options.limit)
                else:
                    Measured(name, rows).say("not_installed", needs=PEERS[name].distribution)


if __name__ == "__main__":
    main()
