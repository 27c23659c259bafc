"""The write path on real conversations: what it keeps and why, how fast, and what a job costs.

LoCoMo's conversations, read from a file beside the project (CC BY-NC: never copied into it), are
ingested with the defaults: each session is a conversation, each sample a user. Run it from the repository root:

    .venv/bin/python bench/ingest.py [--data FILE] [--only counts speed embedder queue]
        [--tuning] [--conversations N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.locomo import TUNING, data_path, load
from bench.measure import SEED, emit
from bench.origin import MADE_UP
from lance_memory import (
    Conversation,
    FunctionEmbedder,
    IngestResult,
    MemoryStore,
    Message,
    MiniLM,
    Scope,
    WritePath,
)

UNLIMITED = WritePath()
"""The defaults; a file is no live traffic, and the rate is not limited unless asked for."""

BARS = {"messages_per_second": 2_000, "of_embedder": 0.8, "accept_ms": 5.0}


def conversations(path: Path, *, only: Sequence[str] = ()) -> list[list[Conversation]]:
    """The sessions of each sample, oldest first; the two speakers are named actors."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for turn in load(path).turns:
        if not only or turn["user"] in only:
            found.setdefault((turn["user"], turn["session"]), []).append(turn)
    samples: dict[str, list[Conversation]] = {}
    for (user, session), turns in found.items():
        messages = tuple(
            Message(content=t["content"], actor=t["actor"], at=t["event_at"], ref=t["key"])
            for t in turns
        )
        scope = Scope(tenant="bench", user=user, session=session)
        samples.setdefault(user, []).append(Conversation(messages=messages, scope=scope))
    return list(samples.values())


def counted(results: Iterable[IngestResult]) -> dict[str, dict[str, int]]:
    """All decisions, by step."""
    total: dict[str, Counter[str]] = {}
    for result in results:
        for step, counts in result.counts.items():
            total.setdefault(step, Counter()).update(counts)
    return {step: dict(sorted(counts.items())) for step, counts in total.items()}


def instant(texts: Sequence[str]) -> np.ndarray:
    """Vectors that cost next to nothing, one for each text: what is measured is everything else."""
    seeds = [zlib.crc32(text.encode()) for text in texts]
    return np.stack([_VECTORS[seed % len(_VECTORS)] for seed in seeds])


_VECTORS = np.random.default_rng(SEED).standard_normal((65_521, 384)).astype(np.float32)


class Watched:
    """An embedder that remembers how long it took, and what it was given."""

    def __init__(self) -> None:
        self.inner = MiniLM()
        self.name, self.dimension = self.inner.name, self.inner.dimension
        self.seconds = 0.0
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        begun = time.perf_counter()
        vectors = self.inner.embed(texts)
        self.seconds += time.perf_counter() - begun
        self.texts += len(texts)
        return vectors


def measure_counts(samples: list[list[Conversation]], folder: Path) -> None:
    """What becomes of it with the defaults, and that a replay changes nothing."""
    with MemoryStore.open(folder / "counts") as store:
        begun = time.perf_counter()
        results = [store.ingest(sample, path=UNLIMITED) for sample in samples]
        seconds = time.perf_counter() - begun
        before = store.to_arrow(states="any").num_rows
        replaying = replace(UNLIMITED, gate=None)  # else the gate would know the inputs again
        again = [store.ingest(sample, path=replaying) for sample in samples]
        emit(
            bench="ingest_counts",
            messages=sum(len(one.messages) for sample in samples for one in sample),
            conversations=sum(map(len, samples)),
            seconds=round(seconds, 2),
            decisions=counted(results),
            rows=before,
            visible=store.count(),
            pending=store.count(states="pending"),
            replay_made=sum(len(one.ids) for one in again),
            rows_after_replay=store.to_arrow(states="any").num_rows,
        )


def measure_speed(samples: list[list[Conversation]], folder: Path) -> None:
    """Messages a second with vectors that cost nothing: a job a sample, and a job a session."""
    for name, jobs in (
        ("job_of_a_sample", samples),
        ("job_of_a_session", [[one] for sample in samples for one in sample]),
    ):
        free = FunctionEmbedder(instant, name="free", dimension=384)
        with MemoryStore.open(folder / name, embedder=free) as store:
            messages = sum(len(one.messages) for job in jobs for one in job)
            begun = time.perf_counter()
            for job in jobs:
                store.ingest(job, path=UNLIMITED)
            rate = messages / (time.perf_counter() - begun)
        bar = BARS["messages_per_second"]
        emit(
            bench=f"ingest_speed_{name}",
            jobs=len(jobs),
            messages=messages,
            messages_per_second=round(rate),
            bar=bar,
            met=rate >= bar,
        )


def measure_embedder(samples: list[list[Conversation]], folder: Path) -> None:
    """Messages a second with the default embedder, against that embedder alone on the messages.

    Not every message is embedded, but what is kept of it; `share_of_time` is what of the time was
    embedding.
    """
    watched = Watched()
    texts = [message.content for sample in samples for one in sample for message in one.messages]
    begun = time.perf_counter()
    for start in range(0, len(texts), 256):
        watched.embed(texts[start : start + 256])
    alone = len(texts) / (time.perf_counter() - begun)
    watched.seconds = watched.texts = 0
    with MemoryStore.open(folder / "embedder", embedder=watched) as store:
        begun = time.perf_counter()
        for sample in samples:
            store.ingest(sample, path=UNLIMITED)
        total = time.perf_counter() - begun
    rate = len(texts) / total
    emit(
        bench="ingest_with_default_embedder",
        messages=len(texts),
        messages_per_second=round(rate),
        embedder_alone_messages_per_second=round(alone),
        ratio=round(rate / alone, 2),
        bar=BARS["of_embedder"],
        met=rate / alone >= BARS["of_embedder"],
        texts_embedded=watched.texts,
        share_of_time=round(watched.seconds / total, 3),
    )


def measure_queue(folder: Path) -> None:
    """What the queue adds: `ingest(wait=False)` without the steps before it, to where it returns."""
    free = FunctionEmbedder(instant, name="free", dimension=384)
    said = ["I live in Lisbon and I work as a nurse.", "My sister Ana likes hiking."]
    times = []
    bare = replace(WritePath(), gate=None)
    with MemoryStore.open(folder / "queue", embedder=free, write_path=bare) as store:
        for number in range(220):
            texts = [f"{text} {number}" for text in said]
            begun = time.perf_counter()
            store.ingest(texts, tenant="bench", user=f"u{number}", wait=False)
            times.append(1_000 * (time.perf_counter() - begun))
    median = statistics.median(times[20:])
    emit(
        bench="ingest_accept",
        jobs=len(times) - 20,
        accept_ms=round(median, 3),
        accept_p99_ms=round(sorted(times[20:])[int(0.99 * 200)], 3),
        bar=BARS["accept_ms"],
        met=median <= BARS["accept_ms"],
        data=MADE_UP,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--data")
    words.add_argument("--tuning", action="store_true", help="only the tuning conversations")
    words.add_argument("--conversations", type=int, help="only so many of them")
    parts = ("counts", "speed", "embedder", "queue")
    words.add_argument("--only", nargs="+", choices=parts, default=parts)
    given = words.parse_args(arguments)
    only = TUNING if given.tuning else ()
    samples = conversations(data_path(given.data), only=only)[: given.conversations]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if "counts" in given.only:
            measure_counts(samples, folder)
        if "speed" in given.only:
            measure_speed(samples, folder)
        if "embedder" in given.only:
            measure_embedder(samples, folder)
        if "queue" in given.only:
            measure_queue(folder)


if __name__ == "__main__":
    main()
