"""What consolidation saves and what it costs: rows against recall, on real conversations.

LoCoMo's turns (see bench/locomo.py) are consolidated at several floors with transforms that need no
model. After each pass all questions are asked, and a piece of evidence counts as found where its
turn, or the memory that took its place, is among the first 10. Then the pass is undone.

    .venv/bin/python bench/consolidation.py [--data FILE] [--floors .85 .7 ...]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bench.locomo import TUNING, Corpus, data_path, keys_held, load, some_of
from bench.measure import Stopwatch, emit
from bench.retrieval import Asked
from lance_memory import ConsolidateOptions, Guard, MemoryStore, extractive, latest

FLOORS = (0.85, 0.8, 0.75, 0.7, 0.65, 0.6)
TRANSFORMS = {"extractive": extractive, "latest": latest}
GUARDS = {"guarded": Guard(), "unguarded": None}
K = 10


def asked_all(store: MemoryStore, corpus: Corpus) -> tuple[list[Asked], float]:
    """Every question inside its conversation, each piece of evidence at its first place.

    And the mean length of the first 10 hits together, in characters: a summary is longer than a
    turn, so the same number of hits may say more.
    """
    keys = keys_held(store)
    by_user = defaultdict(list)
    for question in corpus.questions:
        by_user[question.conversation].append(question)
    found, characters = [], 0
    for user, questions in by_user.items():
        answers = store.search_many([q.text for q in questions], k=K, user=user)
        for question, answer in zip(questions, answers, strict=True):
            characters += sum(len(hit.memory.content) for hit in answer.hits)
            held = [keys[hit.memory.id] & question.evidence for hit in answer.hits]
            first: dict[str, int] = {}
            for place, some in enumerate(held):
                for key in some:
                    first.setdefault(key, place)
            found.append(
                Asked(
                    category=question.category,
                    part="tuning" if user in TUNING else "held out",
                    places=tuple(sorted(first.values())),
                    total=len(question.evidence),
                )
            )
    return found, round(characters / len(found), 1)


def recall(asked: Sequence[Asked]) -> dict[str, float]:
    """Mean share of the evidence among the first 10, in per cent: of all, and of each half."""

    def mean(some: Sequence[Asked]) -> float:
        return round(100 * sum(one.recall(K) for one in some) / len(some), 2) if some else 0.0

    halves = {part: [one for one in asked if one.part == part] for part in ("tuning", "held out")}
    return {"all": mean(asked), **{part: mean(some) for part, some in halves.items()}}


def one_pass(
    store: MemoryStore,
    corpus: Corpus,
    *,
    floor: float,
    transform: str,
    guard: str,
    before: dict[str, float],
) -> dict[str, Any]:
    """Consolidate, ask, undo."""
    watch = Stopwatch()
    visible, start = store.count(), store.version
    options = ConsolidateOptions(min_similarity=floor, across=("session",))
    done = watch(
        "pass",
        lambda: store.consolidate(options, TRANSFORMS[transform], guard=GUARDS[guard]),
    )
    asked, characters = watch("ask", lambda: asked_all(store, corpus))
    if store.version != start:
        store.rollback(start)
    assert store.count() == visible
    plan = done.plan
    held_back = [c for c in plan.failed if c.reason.startswith("recall")]
    return emit(
        bench="consolidation",
        floor=floor,
        transform=transform,
        guard=guard,
        rows=visible,
        clusters=len(plan.accepted),
        rows_saved=plan.rows_saved,
        saved_percent=round(100 * plan.rows_saved / visible, 2),
        dropped_too_much=len(plan.failed) - len(held_back),
        held_back=len(held_back),
        recall_before=before,
        recall_after=recall(asked),
        characters=characters,
        seconds=watch.steps,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="locomo10.json")
    parser.add_argument("--floors", type=float, nargs="+", default=FLOORS)
    parser.add_argument("--conversations", type=int, help="only the first so many")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth question")
    given = parser.parse_args(arguments)
    corpus = load(data_path(given.data))
    corpus = some_of(corpus, conversations=given.conversations, every=given.every)
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryStore.open(Path(folder) / "store", author="bench/consolidation.py") as store,
    ):
        store.add_many(corpus.turns)
        store.optimize()
        asked, characters = asked_all(store, corpus)
        before = recall(asked)
        emit(bench="consolidation_before", recall=before, characters=characters)
        ways = [
            {"transform": transform, "guard": guard, "floor": floor}
            for transform, guard, floor in product(TRANSFORMS, GUARDS, given.floors)
        ]
        for way in ways:
            one_pass(store, corpus, before=before, **way)


if __name__ == "__main__":
    main()
