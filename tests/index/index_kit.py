"""Clustered vectors, memories that carry them, and the oracle that every encoder is held against."""

from __future__ import annotations

import numpy as np
from lance.file import LanceFileReader

from lance_memory.storage.described import VECTOR_INDEX

WIDTH = 32


def clustered(count, dimension=WIDTH, seed=0, lengths=False):
    """float32 [count, dimension] around 40 centres: unit vectors, or of lengths 0.3 to 3."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, dimension))
    rows = centres[rng.integers(40, size=count)] + 0.6 * rng.standard_normal((count, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if lengths:
        rows *= rng.uniform(0.3, 3, (count, 1))
    return rows.astype(np.float32)


def oracle(model, rows):
    """Partitions and codes in float64, by the definition and nothing else."""
    spec = model.spec
    x = rows.astype(np.float64)
    centroids, codebook = model.centroids.astype(np.float64), model.codebook.astype(np.float64)
    if spec.metric == "cosine":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    if spec.metric == "dot":
        partitions = (x @ centroids.T).argmax(1)
        coded = x
    else:
        partitions = ((x[:, None] - centroids[None]) ** 2).sum(2).argmin(1)
        coded = x - centroids[partitions]
    parts = coded.reshape(len(x), spec.sub_vectors, 1, -1)
    codes = ((parts - codebook[None]) ** 2).sum(3).argmin(2)
    return partitions, codes


def items(rows, start=0, **fields):
    return [
        {
            "id": identifier(start + i),
            "content": f"memory {start + i}",
            "embedding": row,
            "user": f"u{(start + i) % 10}",
            **fields,
        }
        for i, row in enumerate(rows)
    ]


def identifier(i):
    return f"{i:08d}-0000-7000-8000-000000000000"


def stored_codes(snapshot):
    """What an IVF_PQ index stores: row ids [n], partitions [n], and codes [n, bytes].

    The codes of a partition lie transposed on disk, [bytes, n].
    """
    parts = snapshot.dataset.stats.index_stats(VECTOR_INDEX)["segments"]
    read = [_codes(part) for part in parts]
    return tuple(np.concatenate(column) for column in zip(*read, strict=True))


def _codes(part):
    folder = str(part["uri"]).rpartition("/")[0]
    reader = LanceFileReader(f"{folder}/auxiliary.idx", columns=["_rowid", "__pq_code"])
    rows = reader.read_all().to_table()
    width = rows["__pq_code"].type.list_size
    sizes = [int(p["size"]) for p in part["partitions"]]
    raw = rows["__pq_code"].combine_chunks().flatten().to_numpy().reshape(-1, width)
    blocks = np.split(raw, np.cumsum(sizes)[:-1])
    codes = np.concatenate([block.reshape(width, -1).T for block in blocks])
    partitions = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
    return rows["_rowid"].to_numpy(), partitions, codes
