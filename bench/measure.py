"""What the scripts of this folder share: interleaved timings and JSON lines."""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from bench.origin import origin

SEED = 20251129


def machine() -> dict[str, Any]:
    """Where the numbers come from; stands in every line."""
    return {
        **origin(),
        "pylance": lance.__version__,
        "pyarrow": pa.__version__,
        "seed": SEED,
    }


def emit(**fields: Any) -> dict[str, Any]:
    """Print one measurement as a JSON line, and return it. A field wins over where it comes from."""
    line = {**fields, **{k: v for k, v in machine().items() if k not in fields}}
    print(json.dumps(line, ensure_ascii=False), flush=True)
    return line


def seconds(work: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def memory(name: str) -> float:
    """MB of this process: "VmRSS" now, "VmHWM" at its peak, as Linux counts them."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1e3


class Stopwatch:
    """Seconds per named step."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    def __call__(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        answer = work()
        self.steps[name] = round(time.perf_counter() - start, 3)
        return answer


Sample = Callable[[int], float]
"""Does run number i, and gives the seconds that count."""


def interleaved(runs: int, *sides: Sample) -> list[list[float]]:
    """Seconds of each side, run by run; which side goes first rotates, as load drifts."""
    taken: list[list[float]] = [[] for _ in sides]
    gc.collect()
    for i in range(runs):
        for turn in range(len(sides)):
            side = (i + turn) % len(sides)
            taken[side].append(sides[side](i))
    return taken


def compared(
    bench: str, ours: list[float], raw: list[float], *, rows: int, bar: float
) -> dict[str, Any]:
    """Emit ours against raw: medians, their ratio, quartiles of the paired ratios, maxima."""
    mine, theirs = statistics.median(ours), statistics.median(raw)
    pairs = [a / b for a, b in zip(ours, raw, strict=True)]
    low, _, high = statistics.quantiles(pairs, n=4) if len(pairs) > 1 else (pairs[0],) * 3
    return emit(
        bench=bench,
        ours_ms=round(mine * 1e3, 3),
        raw_ms=round(theirs * 1e3, 3),
        ratio=round(mine / theirs, 3),
        ratio_q1=round(low, 3),
        ratio_q3=round(high, 3),
        ours_max_ms=round(max(ours) * 1e3, 3),
        raw_max_ms=round(max(raw) * 1e3, 3),
        n=len(ours),
        rows=rows,
        bar=bar,
        met=mine / theirs <= bar,
    )
