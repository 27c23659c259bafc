"""How much labelled evidence a search finds: metrics, and the questions of two data sets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lance_memory import MemoryView, Ranking

CUTS = (5, 10, 20, 50)
MADIAL = ("madial_memory.json", "madial_dialogue.json")
"""The events, and the dialogues that should recall them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question with the places, from 0 on, at which its evidence was found; `total` is all of it."""

    category: int
    part: str
    places: tuple[int, ...]
    total: int

    def recall(self, cut: int) -> float:
        """Share of the evidence among the first `cut`; 1 where there is none to find."""
        return sum(p < cut for p in self.places) / self.total if self.total else 1.0

    def reciprocal_rank(self) -> float:
        if not self.total:
            return 1.0
        return 1.0 / (1 + min(self.places)) if self.places else 0.0

    def ndcg(self, cut: int) -> float:
        """Binary relevance, log2 discount (Järvelin and Kekäläinen 2002)."""
        if not self.total:
            return 1.0
        gain = sum(1.0 / np.log2(p + 2) for p in self.places if p < cut)
        return float(gain / sum(1.0 / np.log2(p + 2) for p in range(min(cut, self.total))))


def figures(asked: Sequence[Asked]) -> dict[str, Any]:
    """Means over the questions, in per cent."""

    def mean(value: Callable[[Asked], float]) -> float:
        return round(100 * float(np.mean([value(one) for one in asked])), 2) if asked else 0.0

    return {
        "questions": len(asked),
        **{f"recall@{cut}": mean(lambda one, c=cut: one.recall(c)) for cut in CUTS},
        "mrr": mean(Asked.reciprocal_rank),
        "ndcg@10": mean(lambda one: one.ndcg(10)),
    }


def groups(asked: Iterable[Asked]) -> dict[str, list[Asked]]:
    """All, each part, and each category of each part."""
    found: dict[str, list[Asked]] = {}
    for one in asked:
        for name in (
            "all",
            one.part,
            f"all_category_{one.category}",
            f"{one.part}_category_{one.category}",
        ):
            found.setdefault(name, []).append(one)
    return dict(sorted(found.items()))


def ask(
    view: MemoryView,
    text: str,
    evidence: frozenset[str],
    *,
    category: int = 0,
    part: str = "all",
    key: Callable[[Any], str | None] = lambda memory: memory.key,
    mode: str = "hybrid",
    ranking: Ranking | None = None,
    **where: Any,
) -> Asked:
    """One question, and where the memories with the evidence's keys stand among the first hits."""
    hits = view.search(text, k=max(CUTS), mode=mode, ranking=ranking, **where)
    places = tuple(i for i, hit in enumerate(hits) if key(hit.memory) in evidence)
    return Asked(category=category, part=part, places=places, total=len(evidence))


# -- MADial-Bench -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """What was said up to the point where an event should be recalled, and which events."""

    text: str
    evidence: frozenset[str]


_LINE = re.compile(r'^<(?P<speaker>[^>]+)>:\s*"?(?P<text>.*?)"?\s*$', re.DOTALL)


def madial(folder: Path) -> tuple[list[Mapping[str, Any]], list[Dialogue]]:
    """The events as memories, and the dialogues."""
    events = _lines(folder / MADIAL[0])
    memories = [
        {
            "content": event["event"],
            "key": number,
            "event_at": datetime.strptime(event["time"], "%Y-%m-%d").replace(tzinfo=UTC),
        }
        for entry in events
        for number, event in entry.items()
    ]
    known = {str(memory["key"]) for memory in memories}
    dialogues = [
        Dialogue(
            text=_so_far(entry["dialogue"], entry["test-turn"][0]),
            evidence=frozenset(str(i) for i in entry["relevant-id"]) & known,
        )
        for entry in _lines(folder / MADIAL[1])
    ]
    return memories, dialogues


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _so_far(lines: Sequence[str], turn: int) -> str:
    """The user's lines, each with the name, before the answer at `turn`, which recalls the event.

    The events tell of the user by name, so the name belongs to the question.
    """
    said = [match for line in lines[:turn] if (match := _LINE.match(line.strip()))]
    own = [m for m in said if m["speaker"] != "Assistant"]
    return "\n".join(f"{m['speaker']}: {m['text'].strip()}" for m in own)
