"""What a GPU gains: train, encode, self-join and batch search, on the device and on the CPU.

One JSON line for each measurement. It needs torch and numpy, and takes cuVS where it is there;
neither lance nor pyarrow. Run it from the repository root:

    python bench/gpu.py                                  # CUDA, 1,000,000 rows
    python bench/gpu.py --device cpu --rows 20000        # the same, without a GPU
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if importlib.util.find_spec("lance") is None:
    # The index room needs numpy alone; the package around it imports the engine.
    sys.modules["lance_memory"] = types.ModuleType("lance_memory")
    sys.modules["lance_memory"].__path__ = [str(ROOT / "lance_memory")]

from bench.origin import origin  # noqa: E402
from lance_memory.errors import LanceMemoryError  # noqa: E402
from lance_memory.index import Graph, IvfPqModel, TopK, Trainer, near, pick  # noqa: E402
from lance_memory.index.encode import encode, prepared  # noqa: E402
from lance_memory.index.sizes import sample_rows, spec_for  # noqa: E402

SEED = 20251129


def vectors(count: int, dimension: int) -> np.ndarray:
    """Unit vectors around centres that lie around centres, float32 [count, dimension]."""
    rng = np.random.default_rng(SEED)
    around = rng.standard_normal((60, dimension), np.float32)
    centres = around[rng.integers(60, size=2_000)]
    centres = centres + 0.7 * rng.standard_normal((2_000, dimension), np.float32)
    rows = np.empty((count, dimension), np.float32)
    for start in range(0, count, 100_000):
        part = rows[start : start + 100_000]
        part[:] = centres[rng.integers(2_000, size=len(part))]
        part += 0.5 * rng.standard_normal(part.shape, np.float32)
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows


def machine(device: str) -> dict[str, Any]:
    import torch

    return {
        **origin(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "seed": SEED,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the answer. Answers are numpy's, so the device has finished by then."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def top_k(queries: np.ndarray, rows: np.ndarray, device: str) -> np.ndarray:
    """The cosines of the ten nearest rows of each query, float32 [m, 10]."""
    search = TopK(queries, 10, device=device)
    search.see(np.arange(len(rows)), rows)
    return search.found()[0]


def pairs(graph: Graph) -> np.ndarray:
    """A number for each row and neighbour, int64 [p]."""
    n = len(graph.full)
    return np.repeat(np.arange(n), np.diff(graph.offsets)) * n + graph.index


def common(some: np.ndarray, others: np.ndarray) -> float:
    """The share of the numbers that both have."""
    return len(np.intersect1d(some, others)) / max(len(some), len(others), 1)


def error_of(model: IvfPqModel, rows: np.ndarray) -> float:
    """Mean squared distance of rows to what their codes stand for: the lower, the better."""
    partitions, codes = encode(model, rows)
    parts = [book[codes[:, i]] for i, book in enumerate(model.codebook)]
    rebuilt = model.centroids[partitions] + np.concatenate(parts, axis=1)
    return float(((prepared(rows, model.spec.metric) - rebuilt) ** 2).sum(axis=1).mean())


class Bench:
    """The measurements, each against the CPU in the same run."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.rows = vectors(options.rows, options.dimension)
        self.spec = spec_for(options.rows, options.dimension, seed=SEED)
        self.sample = self.rows[: sample_rows(self.spec, options.dimension)]
        self.machine = machine(options.device)

    def emit(self, bench: str, seconds: float, against: float, **fields: Any) -> None:
        line = {
            "bench": bench,
            "seconds": round(seconds, 3),
            "cpu_seconds": round(against, 3),
            "ratio": round(against / seconds, 2),
            "rows": len(self.rows),
            "dimension": self.options.dimension,
            **fields,
            **self.machine,
        }
        print(json.dumps(line), flush=True)

    def train_and_encode(self, trainers: list[Trainer]) -> None:
        base, model = timed(lambda: pick("torch:cpu").trainer.train(self.sample, self.spec))
        probe = self.sample[:10_000]
        plain, codes = timed(lambda: encode(model, self.rows))
        for trainer in trainers:
            trainer.train(self.sample[: self.spec.rows_needed], self.spec)  # the device wakes up
            took, made = timed(lambda t=trainer: t.train(self.sample, self.spec))
            self.emit(
                "train",
                took,
                base,
                trainer=trainer.name,
                sample=len(self.sample),
                partitions=self.spec.partitions,
                sub_vectors=self.spec.sub_vectors,
                error=round(error_of(made, probe), 5),
                cpu_error=round(error_of(model, probe), 5),
            )
            took, ours = timed(lambda t=trainer: t.encode(model, self.rows))
            same = ours[0] == codes[0]
            self.emit(
                "encode",
                took,
                plain,
                trainer=trainer.name,
                same_partition=round(float(same.mean()), 5),
                same_code=round(float((ours[1] == codes[1])[same].mean()), 5),
            )

    def search(self) -> None:
        device, joined = self.options.device, self.rows[: self.options.join_rows]
        top_k(joined[:10], joined, device)  # the device wakes up
        took, ours = timed(lambda: near(joined, 10, floor=0.5, device=device))
        base, plain = timed(lambda: near(joined, 10, floor=0.5, device="cpu"))
        same = common(pairs(ours), pairs(plain))
        self.emit("self_join", took, base, joined=len(joined), same=round(same, 5))
        queries = self.rows[:1_000]
        took, found = timed(lambda: top_k(queries, self.rows, device))
        base, plain_found = timed(lambda: top_k(queries, self.rows, "cpu"))
        same = float(np.isclose(found, plain_found, atol=1e-4).mean())
        self.emit("top_k", took, base, queries=len(queries), same=round(same, 5))


def trainers_for(device: str) -> list[Trainer]:
    """Those of the device; one that cannot be used is named on stderr."""
    found = []
    for name in ["torch:cuda", "cuvs"] if device == "cuda" else ["torch:cpu"]:
        try:
            found.append(pick(name).trainer)
        except LanceMemoryError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--join-rows", type=int, default=50_000)
    options = parser.parse_args()
    trainers = trainers_for(options.device)
    if not trainers:
        sys.exit(f"nothing to measure on {options.device}")
    bench = Bench(options)
    bench.search()
    bench.train_and_encode(trainers)


if __name__ == "__main__":
    main()
