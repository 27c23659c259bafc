"""An agent that listens to real conversations, and what it has at hand when it is asked.

LoCoMo's conversations (see bench/locomo.py) are ten users of one tenant. Every turn is observed in
order by `Agent`, with the default write path, while the clock moves; a session is flushed when it
is over. Then each labelled question gets a context pack. What counts is how much of its evidence is
in the pack: the turns that the labels name, by their ids. Beside it the same budget is filled, in
the same form, by other orders: by the plain vector of the question, and by the latest turns.

    .venv/bin/python bench/agent_week.py [--data FILE] [--budget 1500] [--conversations N]
        [--sessions N] [--by turn|session] [--every N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from bench.locomo import TUNING, Corpus, Question, data_path, load
from bench.measure import emit
from lance_memory import (
    Agent,
    ContextItem,
    ContextOptions,
    ContextSource,
    Distiller,
    Interaction,
    Kind,
    Memory,
    MemoryStore,
    Mode,
)
from lance_memory.agent.context.candidate import Candidate
from lance_memory.agent.context.pack import packed
from lance_memory.agent.context.score import scored
from lance_memory.embed.tokens import count_tokens

BUDGET = 1_500
BAR = 1.15
"""Evidence in the pack, over that in the same budget filled by the plain vector."""

CURVE = (500, 1_000, 1_500, 2_500, 4_000)
TENANT = "locomo"
DEPTH = 150
AFTER = timedelta(days=1)


class Clock:
    """Where the story is."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


# -- observing ------------------------------------------------------------------------------------


def sessions(corpus: Corpus) -> list[list[dict[str, Any]]]:
    """The turns of each session of each user, all sessions in the order of time."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for turn in corpus.turns:
        found[turn["user"], turn["session"]].append(turn)
    return sorted(found.values(), key=lambda turns: (turns[0]["event_at"], turns[0]["user"]))


def observed(store: MemoryStore, corpus: Corpus, clock: Clock, *, by: str) -> dict[str, Any]:
    """Listen to all of it; how long each step took, in ms, and what is in the store then."""
    agents: dict[str, Agent] = {}
    taken: dict[str, list[float]] = defaultdict(list)
    failures: Counter[str] = Counter()
    for turns in sessions(corpus):
        user, session = turns[0]["user"], turns[0]["session"]
        agent = agents.setdefault(user, Agent(store.scoped(tenant=TENANT, user=user)))
        for some in [turns] if by == "session" else [[turn] for turn in turns]:
            clock.now = some[-1]["event_at"]
            begun = time.perf_counter()
            made = agent.observe_many(map(interaction, some))
            taken["observe"].append(1e3 * (time.perf_counter() - begun) / len(some))
            failures.update([*made.failures, *(f for one in made.observed for f in one.failures)])
        begun = time.perf_counter()
        agent.flush(session)
        taken["flush"].append(1e3 * (time.perf_counter() - begun))
    clock.now += AFTER
    store.optimize()
    return {
        "turns": len(corpus.turns),
        "sessions": len(taken["flush"]),
        "kinds": dict(store.stats().by_kind),
        "visible": store.count(),
        "failures": dict(failures),
        **{f"{name}_p50_ms": round(statistics.median(ms), 2) for name, ms in taken.items()},
        **{f"{name}_p95_ms": round(percentile(ms, 95), 2) for name, ms in taken.items()},
    }


def interaction(turn: dict[str, Any]) -> Interaction:
    """A turn; whoever speaks is named, as there are two people and no assistant."""
    return Interaction(
        session=turn["session"],
        user_input=turn["content"],
        actor=turn["actor"],
        at=turn["event_at"],
        ref=turn["key"],
    )


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share))


# -- asking ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one way gave for one question."""

    question: Question
    items: tuple[ContextItem, ...]
    tokens: int
    ms: float
    held: frozenset[str] = frozenset()

    @property
    def recall(self) -> float:
        """Share of the evidence that is in the pack itself: the turns, not what is made of them."""
        return self.found(ContextSource.EPISODIC, ContextSource.WORKING)

    def found(self, *sources: ContextSource) -> float:
        """Share of the evidence that items of these sources are, or come from; of any for none."""
        refs = {item.ref for item in self.items if not sources or item.source in sources}
        return len(refs & self.question.evidence) / len(self.question.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What is in a budget."""

    items: tuple[ContextItem, ...]
    tokens: int


Way = Callable[[str, str, int], Filled]
"""(user, question, budget) -> what is in it."""


@dataclass(slots=True)
class Asking:
    """The users' agents over the store, and other ways to fill a budget."""

    store: MemoryStore
    turns: dict[str, list[Candidate]] = field(default_factory=dict)

    def ways(self) -> dict[str, Way]:
        return {
            "pack": partial(self.packed, mode="hybrid"),
            "pack_vector": partial(self.packed, mode="vector"),
            "vector_top_k": self.plain,
            "vector_without_names": partial(self.searched, mode=Mode.VECTOR),
            "hybrid_top_k": partial(self.searched, mode=Mode.HYBRID),
            "latest_turns": self.latest,
        }

    def agent(self, user: str) -> Agent:
        return Agent(self.store.scoped(tenant=TENANT, user=user))

    def packed(self, user: str, text: str, budget: int, *, mode: str) -> Filled:
        """`Agent.context`, asked in a new session."""
        pack = self.agent(user).context("question", text, budget, options=ContextOptions(mode=mode))
        if pack.degraded:
            raise RuntimeError(f"degraded: {pack.failures}")
        return Filled(items=pack.items, tokens=pack.tokens)

    def plain(self, user: str, text: str, budget: int) -> Filled:
        """The turns nearest to the vector of the question as it was asked."""
        vector = self.store.embedder.embed([text])[0]
        scope = self.store.scoped(tenant=TENANT, user=user)
        hits = scope.search(vector=vector, k=DEPTH, kinds=Kind.EPISODIC)
        return self.filled(user, [hit.memory for hit in hits], budget)

    def searched(self, user: str, text: str, budget: int, *, mode: Mode) -> Filled:
        """The hits of the store's own search over the turns, best first."""
        scope = self.store.scoped(tenant=TENANT, user=user)
        hits = scope.search(text, k=DEPTH, mode=mode, kinds=Kind.EPISODIC)
        return self.filled(user, [hit.memory for hit in hits], budget)

    def latest(self, user: str, text: str, budget: int) -> Filled:  # noqa: ARG002 - of every way
        """The last turns."""
        scope = self.store.scoped(tenant=TENANT, user=user)
        newest = scope.list(kinds=Kind.EPISODIC, newest_first=True, limit=DEPTH)
        return self.filled(user, newest, budget)

    def filled(self, user: str, memories: Sequence[Memory], budget: int) -> Filled:
        """As many as fit, in that order, in the form of a pack."""
        total = len(memories)
        options = ContextOptions(relevance=1.0, min_score=0.0)
        candidates = [
            Candidate(
                id=memory.id,
                source=ContextSource.EPISODIC,
                kind=memory.kind,
                content=memory.content,
                relevance=1.0 - place / total,
                who=memory.actor,
                at=memory.happened_at,
                scope=memory.scope,
                ref=memory.source_ref,
                verbatim=True,
            )
            for place, memory in enumerate(memories)
            if memory.source == "working"
        ]
        made = packed(
            scored(candidates, options),
            budget=budget,
            options=options,
            count=partial(count_tokens, self.store.embedder),
            within=self.store.scoped(tenant=TENANT, user=user).scope,
        )
        return Filled(items=made.items, tokens=made.tokens)


def asked(way: Way, questions: Iterable[Question], budget: int) -> list[Answer]:
    """Every question by one way."""
    found = []
    for question in questions:
        begun = time.perf_counter()
        made = way(question.conversation, question.text, budget)
        ms = 1e3 * (time.perf_counter() - begun)
        found.append(Answer(question=question, items=made.items, tokens=made.tokens, ms=ms))
    return found


# -- figures --------------------------------------------------------------------------------------


def figures(answers: Sequence[Answer]) -> dict[str, Any]:
    """Means over the questions; recall in per cent."""
    ms = [one.ms for one in answers]
    return {
        "questions": len(answers),
        "recall": percent(one.recall for one in answers),
        "recall_with_facts": percent(one.found() for one in answers),
        "tokens": round(float(np.mean([one.tokens for one in answers])), 1),
        "most_tokens": max(one.tokens for one in answers),
        "items": round(float(np.mean([len(one.items) for one in answers])), 1),
        "p50_ms": round(percentile(ms, 50), 1),
        "p95_ms": round(percentile(ms, 95), 1),
    }


def percent(shares: Iterable[float]) -> float:
    return round(100 * float(np.mean([*shares])), 2)


def parts(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """All, and each half."""
    halves: dict[str, list[Answer]] = {"all": [*answers]}
    for one in answers:
        half = "tuning" if one.question.conversation in TUNING else "held_out"
        halves.setdefault(half, []).append(one)
    return halves


def layers(answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """Of each layer: items and tokens in a pack, and the evidence that it brings, in per cent."""
    found = {}
    for source in ContextSource:
        of = [[item for item in one.items if item.source is source] for one in answers]
        if any(of):
            found[str(source)] = {
                "items": round(float(np.mean([len(items) for items in of])), 2),
                "tokens": round(float(np.mean([sum(i.tokens for i in items) for items in of])), 1),
                "evidence": percent(one.found(source) for one in answers),
            }
    return found


def by_category(answers: Sequence[Answer]) -> dict[str, float]:
    ordered = sorted(answers, key=lambda one: one.question.category)
    return {
        str(category): percent(one.recall for one in some)
        for category, some in groupby(ordered, key=lambda one: one.question.category)
    }


def compare(recalls: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The pack over the plain vector, and over the others, in each half."""
    ratios = {
        way: {half: round(recalls["pack"][half] / of[half], 3) for half in of if of[half]}
        for way, of in recalls.items()
        if way != "pack"
    }
    met = {half: ratio >= BAR for half, ratio in ratios["vector_top_k"].items()}
    return emit(bench="agent_week_target", bar=BAR, ratios=ratios, met=met)


# -- the script -----------------------------------------------------------------------------------


def curve(asking: Asking, questions: Sequence[Question]) -> None:
    """Recall at several budgets, on some of the questions."""
    ways = asking.ways()
    names = ("pack", "hybrid_top_k", "vector_without_names", "vector_top_k", "latest_turns")
    for name, budget in product(names, CURVE):
        emit(
            bench="agent_week_curve",
            way=name,
            budget=budget,
            questions=len(questions),
            recall=percent(one.recall for one in asked(ways[name], questions, budget)),
        )


def chosen(corpus: Corpus, given: argparse.Namespace) -> Corpus:
    """The first conversations and sessions, and of the questions about them every so manieth."""
    users = list(dict.fromkeys(turn["user"] for turn in corpus.turns))[: given.conversations]
    last = given.sessions or len(corpus.turns)
    turns = [
        turn
        for turn in corpus.turns
        if turn["user"] in users and int(turn["session"].split("_")[1]) <= last
    ]
    there = {turn["key"] for turn in turns}
    questions = [q for q in corpus.questions if q.evidence and q.evidence <= there]
    return replace(corpus, turns=turns, questions=questions[:: given.every])


def run(corpus: Corpus, folder: Path, *, budget: int, by: str) -> None:
    """Observe, ask, tell."""
    clock = Clock(min(turn["event_at"] for turn in corpus.turns))
    with MemoryStore.open(folder / "store", clock=clock, author="bench/agent_week.py") as store:
        emit(bench="agent_week_observe", by=by, **observed(store, corpus, clock, by=by))
        asking = Asking(store)
        recalls: dict[str, dict[str, float]] = {}
        for name, way in asking.ways().items():
            halves = parts(asked(way, corpus.questions, budget))
            recalls[name] = {}
            for half, answers in halves.items():
                told = figures(answers)
                recalls[name][half] = told["recall"]
                more = {"layers": layers(answers), "categories": by_category(answers)}
                line = f"agent_week_{name}_{half}"
                emit(bench=line, budget=budget, **told, **(more if name == "pack" else {}))
        compare(recalls)
        curve(asking, corpus.questions[::8])
        distilled(store, asking, corpus.questions, budget)


def distilled(
    store: MemoryStore, asking: Asking, questions: Sequence[Question], budget: int
) -> None:
    """Snapshots of all sessions and days, and the packs that have them too."""
    begun = time.perf_counter()
    made = Distiller(store.scoped(tenant=TENANT)).distill()
    seconds = time.perf_counter() - begun
    refs = {m.id: m.source_ref for m in store.list(kinds=Kind.EPISODIC, source="working")}
    sources = {
        memory.id: {refs.get(edge.target, "") for edge in memory.relationships}
        for memory in store.list(source="distilled")
    }
    way = partial(asking.packed, mode="distilled")
    for half, answers in parts(asked(way, questions, budget)).items():
        held = [
            len(_held(one, sources) & one.question.evidence) / len(one.question.evidence)
            for one in answers
        ]
        emit(
            bench=f"agent_week_pack_distilled_{half}",
            budget=budget,
            snapshots=len(made.snapshots),
            distill_s=round(seconds, 2),
            **figures(answers),
            recall_with_snapshots=percent(held),
            layers=layers(answers),
        )


def _held(one: Answer, sources: dict[str, set[str]]) -> set[str]:
    """The turns that are in a pack, and those that a snapshot in it was made of."""
    found = {item.ref for item in one.items}
    return found.union(*(sources.get(item.id, set()) for item in one.items))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="locomo10.json")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--conversations", type=int, help="only the first so many")
    parser.add_argument("--sessions", type=int, help="only the first so many of each")
    parser.add_argument("--by", choices=("turn", "session"), default="turn")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth question")
    given = parser.parse_args(arguments)
    corpus = chosen(load(data_path(given.data)), given)
    with tempfile.TemporaryDirectory(prefix="lance-memory-week-") as folder:
        run(corpus, Path(folder), budget=given.budget, by=given.by)


if __name__ == "__main__":
    main()
