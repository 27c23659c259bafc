"""The main job on real conversations: import, recall, consolidate, look back, revert, roll back.

Then how much labelled evidence a search finds, over all questions and by category.

The conversations are LoCoMo's, read from a file beside the project (CC BY-NC: never copied into
it). Run it from the repository root:

    .venv/bin/python bench/locomo.py [--data FILE] [--no-recall]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.measure import Stopwatch, emit
from bench.origin import about, file_data
from bench.retrieval import MADIAL, Asked, ask, figures, groups, madial
from lance_memory import ConsolidateOptions, MemoryStore, MemoryView, MiniLM, Mode, Ranking

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_DATA = ROOT.parent / "shared" / "data" / "locomo10.json"
DATA_VARIABLE = "LANCE_MEMORY_LOCOMO"
TUNING = ("conv-26", "conv-41", "conv-43", "conv-47", "conv-49")
"""The conversations that numbers may be looked at while something is tuned."""

BARS = {5: 67.0, 10: 77.0, 20: 84.0}
"""Recall at each cut, in per cent, that the default search has to reach over all questions."""

OTHER_WAYS: dict[str, dict[str, Any]] = {
    "words": {"mode": Mode.TEXT},
    "vector": {"mode": Mode.VECTOR},
    "fusion_alone": {"ranking": Ranking(neighbours=0, actor_bonus=0, period_bonus=0)},
    "without_neighbours": {"ranking": Ranking(neighbours=0)},
    "without_actor": {"ranking": Ranking(actor_bonus=0)},
    "without_period": {"ranking": Ranking(period_bonus=0)},
    "rrf": {"ranking": Ranking(fusion="rrf")},
    "rrf_alone": {"ranking": Ranking(fusion="rrf", neighbours=0, actor_bonus=0, period_bonus=0)},
}
"""What the parts of the default are worth, and what else there is."""

PASSES: dict[str, ConsolidateOptions] = {
    "default": ConsolidateOptions(),
    "lower_floor": ConsolidateOptions(min_similarity=0.7),
    "lower_floor_across_sessions": ConsolidateOptions(min_similarity=0.7, across=("session",)),
}
K = 10
ASKED_CATEGORIES = (1, 4)
"""The fixed questions of the main job: of each conversation the first of each of these."""

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_AM_PM = "%I:%M %p on %d %B, %Y"


# -- the data -----------------------------------------------------------------------------------


def data_path(given: str | None = None) -> Path:
    """Where the conversations are: an argument, the environment, or beside the project."""
    return Path(given or os.environ.get(DATA_VARIABLE) or DEFAULT_DATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A labelled question. `evidence` has keys of turns that exist."""

    conversation: str
    text: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Turns as memories, questions, and what had to be cleaned."""

    turns: list[dict[str, Any]]
    questions: list[Question]
    malformed: int = 0
    dangling: int = 0
    without_evidence: int = 0


def load(path: Path) -> Corpus:
    """The file as memories and questions; lines say from now on that they are measured on it."""
    about(data=file_data("LoCoMo", path))
    samples = json.loads(path.read_text(encoding="utf-8"))
    turns = [turn for sample in samples for turn in conversation_turns(sample)]
    known = {turn["key"] for turn in turns}
    labels = [_labels(sample, entry) for sample in samples for entry in sample["qa"]]
    questions = [
        Question(
            conversation=sample["sample_id"],
            text=entry["question"],
            category=int(entry["category"]),
            evidence=frozenset(_labels(sample, entry)[0]) & known,
        )
        for sample in samples
        for entry in sample["qa"]
    ]
    return Corpus(
        turns=turns,
        questions=questions,
        malformed=sum(bad for _, bad in labels),
        dangling=sum(len(set(keys) - known) for keys, _ in labels),
        without_evidence=sum(not question.evidence for question in questions),
    )


def some_of(corpus: Corpus, *, conversations: int | None = None, every: int = 1) -> Corpus:
    """The first so many conversations, and of what is asked about them every so manieth question."""
    users = list(dict.fromkeys(turn["user"] for turn in corpus.turns))[:conversations]
    return replace(
        corpus,
        turns=[turn for turn in corpus.turns if turn["user"] in users],
        questions=[one for one in corpus.questions if one.conversation in users][::every],
    )


def conversation_turns(sample: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The turns of one conversation; a session is a second longer with each turn."""
    talk, user = sample["conversation"], sample["sample_id"]
    sessions = [name for name in talk if _SESSION.fullmatch(name)]
    for session in sorted(sessions, key=lambda name: int(name.split("_")[1])):
        start = session_time(talk[f"{session}_date_time"])
        for place, turn in enumerate(talk[session]):
            yield {
                "content": content_of(turn),
                "key": f"{user}/{turn['dia_id']}",
                "user": user,
                "session": session,
                "actor": turn["speaker"],
                "role": "user",
                "source": "imported",
                "event_at": start + timedelta(seconds=place),
            }


def session_time(text: str) -> datetime:
    """Such as "1:56 pm on 8 May, 2023", taken as UTC."""
    return datetime.strptime(text.strip(), _AM_PM).replace(tzinfo=UTC)


def content_of(turn: Mapping[str, Any]) -> str:
    """What was said, and what the picture shows that came with it."""
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else str(turn["text"])


def clean_evidence(given: Iterable[str]) -> tuple[list[str], int]:
    """Turn ids out of labels such as "D8:6; D9:17", "D:11:26" and "D30:05".

    Returns:
        The ids, and how many labels were not one well-formed id.
    """
    found: list[str] = []
    malformed = 0
    for label in given:
        ids = [f"D{int(session)}:{int(turn)}" for session, turn in _EVIDENCE.findall(label)]
        malformed += ids != [label]
        found += ids
    return found, malformed


def _labels(sample: Mapping[str, Any], entry: Mapping[str, Any]) -> tuple[list[str], int]:
    ids, malformed = clean_evidence(entry.get("evidence") or ())
    return [f"{sample['sample_id']}/{identifier}" for identifier in ids], malformed


def fixed_questions(corpus: Corpus) -> list[Question]:
    """Of each conversation the first question of each of two categories that has evidence."""
    first: dict[tuple[str, int], Question] = {}
    for question in corpus.questions:
        if question.evidence and question.category in ASKED_CATEGORIES:
            first.setdefault((question.conversation, question.category), question)
    return list(first.values())


# -- recall -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """`hit`: share of the questions with a piece of evidence among K; `share`: mean part found."""

    questions: int
    hit: float
    share: float


def recall(view: MemoryView, questions: Sequence[Question]) -> Recall:
    """Ask each question inside its conversation; a successor counts for all of its sources."""
    keys = keys_held(view)
    parts = []
    for question in questions:
        hits = view.search(question.text, k=K, user=question.conversation)
        held = frozenset().union(*(keys[hit.memory.id] for hit in hits))
        parts.append(len(held & question.evidence) / len(question.evidence))
    return Recall(
        questions=len(parts),
        hit=round(float(np.mean([part > 0 for part in parts])), 4),
        share=round(float(np.mean(parts)), 4),
    )


def keys_held(view: MemoryView) -> dict[str, frozenset[str]]:
    """Id → the keys of the turns that a memory is, or came from."""
    rows = view.to_arrow(columns=["id", "key", "superseded_by"]).to_pylist()
    successor = {row["id"]: row["superseded_by"] for row in rows}
    held: dict[str, set[str]] = {row["id"]: set() for row in rows}
    for row in rows:
        place = row["id"]
        while place is not None and row["key"] is not None:
            held[place].add(row["key"])
            place = successor[place]
    return {identifier: frozenset(keys) for identifier, keys in held.items()}


# -- the main job -------------------------------------------------------------------------------


def picture(view: MemoryView) -> pa.Table:
    """Every row with every column, by id: two equal pictures are equal contents."""
    rows = view.to_arrow()
    return rows.take(pc.sort_indices(rows["id"])).combine_chunks()


def bytes_under(path: str | Path) -> int:
    return sum(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())


@dataclass(slots=True, kw_only=True)
class PassReport:
    """One consolidation with its way back. The truths are what the test asserts."""

    name: str
    clusters: int
    skipped: int
    rows_saved: int
    superseded: int
    visible_before: int
    visible_after: int
    sources_hidden: bool
    sources_related: bool
    looking_back_equal: bool
    revert_equal: bool
    rollback_equal: bool
    versions: int
    bytes: int
    recall: Recall
    seconds: dict[str, float]


@dataclass(slots=True, kw_only=True)
class Report:
    """What the main job did."""

    turns: int
    stored: int
    stored_again: int
    visible: int
    recall: Recall
    versions: int
    bytes: int
    seconds: dict[str, float]
    passes: list[PassReport] = field(default_factory=list)


class TimedMiniLM:
    """The default embedder, with the seconds it took."""

    def __init__(self) -> None:
        self.inner = MiniLM()
        self.name = self.inner.name
        self.dimension = self.inner.dimension
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> Any:
        watch = Stopwatch()
        vectors = watch("embed", lambda: self.inner.embed(texts))
        self.seconds += watch.steps["embed"]
        return vectors


class MainJob:
    """The conversations in a store at `path`."""

    def __init__(self, corpus: Corpus, path: Path) -> None:
        self.corpus = corpus
        self.embedder = TimedMiniLM()
        self.store = MemoryStore.open(path, embedder=self.embedder, author="bench/locomo.py")

    @cached_property
    def asked(self) -> list[Question]:
        return fixed_questions(self.corpus)

    def bring_in(self) -> Report:
        """Import twice, keep the store in shape, ask, and tag the outcome "before"."""
        watch = Stopwatch()
        first = watch("import", lambda: self.store.add_many(self.corpus.turns))
        watch.steps["import_embedding"] = round(self.embedder.seconds, 3)
        again = watch("import_again", lambda: self.store.add_many(self.corpus.turns))
        watch("optimize", self.store.optimize)
        found = watch("recall", lambda: recall(self.store, self.asked))
        self.store.tag("before")
        return Report(
            turns=len(self.corpus.turns),
            stored=first.stored,
            stored_again=again.stored,
            visible=self.store.count(),
            recall=found,
            versions=self.store.version,
            bytes=bytes_under(self.store.uri),
            seconds=watch.steps,
        )

    def there_and_back(self, name: str, options: ConsolidateOptions) -> PassReport:
        """Consolidate, look back, revert; the same again, and roll back to the tag "before"."""
        watch = Stopwatch()
        store = self.store
        before, visible = picture(store), store.count()
        plan = watch("plan", lambda: store.consolidate(options, dry_run=True))
        done = watch("apply", lambda: store.apply(plan))
        after = store.count()
        sources = {source: c.derived["id"] for c in plan.accepted for source in c.sources}
        hidden = not sources.keys() & set(_ids(store))
        related = watch("related", lambda: sources_related(store, plan.accepted))
        found = watch("recall", lambda: recall(store, self.asked))
        then = watch("look_back", lambda: picture(store.at("before")))
        watch("revert", lambda: store.revert(done.version))
        reverted = picture(store)
        if sources:
            watch("apply_again", lambda: store.consolidate(options))
            watch("rollback", lambda: store.rollback("before"))
        rolled_back = picture(store)
        return PassReport(
            name=name,
            clusters=len(plan.accepted),
            skipped=len(plan.skipped),
            rows_saved=plan.rows_saved,
            superseded=len(sources),
            visible_before=visible,
            visible_after=after,
            sources_hidden=hidden,
            sources_related=related,
            looking_back_equal=then.equals(before),
            revert_equal=reverted.equals(before),
            rollback_equal=rolled_back.equals(before),
            versions=store.version,
            bytes=bytes_under(store.uri),
            recall=found,
            seconds=watch.steps,
        )


def _ids(view: MemoryView) -> list[str]:
    return view.to_arrow(columns=["id"], states="visible")["id"].to_pylist()


def sources_related(store: MemoryStore, clusters: Sequence[Any], *, shown: int = 25) -> bool:
    """Whether every source of the first and last clusters is reached from its successor."""
    for cluster in [*clusters[:shown], *clusters[-shown:]]:
        found = store.related(str(cluster.derived["id"]), relation="consolidates")
        if {edge.memory.id for edge in found} != set(cluster.sources):
            return False
    return True


def run(path: Path, corpus: Corpus) -> Report:
    """The main job, start to end, in a new store at `path`."""
    job = MainJob(corpus, path)
    report = job.bring_in()
    report.passes = [job.there_and_back(name, options) for name, options in PASSES.items()]
    return report


# -- the script ---------------------------------------------------------------------------------


def _recall_fields(found: Recall) -> dict[str, Any]:
    return {"questions": found.questions, f"hit@{K}": found.hit, f"recall@{K}": found.share}


def print_import(report: Report) -> None:
    emit(
        bench="locomo_import",
        rows=report.stored,
        stored_again=report.stored_again,
        visible=report.visible,
        versions=report.versions,
        bytes=report.bytes,
        seconds=report.seconds,
        **_recall_fields(report.recall),
    )


def print_pass(one: PassReport) -> None:
    emit(
        bench=f"locomo_consolidate_{one.name}",
        rows=one.visible_before,
        clusters=one.clusters,
        skipped=one.skipped,
        rows_saved=one.rows_saved,
        superseded=one.superseded,
        visible_after=one.visible_after,
        sources_hidden=one.sources_hidden,
        sources_related=one.sources_related,
        looking_back_equal=one.looking_back_equal,
        revert_equal=one.revert_equal,
        rollback_equal=one.rollback_equal,
        versions=one.versions,
        bytes=one.bytes,
        seconds=one.seconds,
        **_recall_fields(one.recall),
    )


def asked_all(store: MemoryStore, corpus: Corpus, **options: Any) -> list[Asked]:
    """Every question, inside its conversation, with default options unless others are given."""
    return [
        ask(
            store,
            question.text,
            question.evidence,
            category=question.category,
            part="tuning" if question.conversation in TUNING else "held_out",
            user=question.conversation,
            **options,
        )
        for question in corpus.questions
    ]


def print_retrieval(store: MemoryStore, corpus: Corpus) -> None:
    """Evidence found over all questions: in all, by half, by category; then the other ways."""
    watch = Stopwatch()
    asked = watch("ask", lambda: asked_all(store, corpus))
    for name, group in groups(asked).items():
        line = figures(group)
        bars = {cut: line[f"recall@{cut}"] >= bar for cut, bar in BARS.items()}
        emit(
            bench=f"locomo_retrieval_{name}",
            **line,
            **({"bars": BARS, "met": bars} if name == "all" else {}),
        )
    emit(bench="locomo_retrieval_time", ms_per_question=1e3 * watch.steps["ask"] / len(asked))
    for name, options in OTHER_WAYS.items():
        emit(bench=f"locomo_retrieval_way_{name}", **figures(asked_all(store, corpus, **options)))


def print_madial(folder: Path, *, every: int = 1) -> None:
    """The events that 160 dialogues should recall; a small set, and no conversation of turns."""
    memories, dialogues = madial(folder)
    data = file_data("MADial-Bench", folder / MADIAL[1])
    with (
        tempfile.TemporaryDirectory(prefix="lance-memory-madial-") as place,
        MemoryStore.open(Path(place) / "store") as store,
    ):
        store.add_many(memories)
        store.optimize()
        for mode in Mode:
            told = [ask(store, x.text, x.evidence, mode=mode) for x in dialogues[::every]]
            emit(bench=f"madial_retrieval_{mode}", **figures(told), data=data)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help=f"locomo10.json; or {DATA_VARIABLE}; or {DEFAULT_DATA}")
    parser.add_argument("--no-recall", action="store_true", help="without the long recall run")
    parser.add_argument("--conversations", type=int, help="only the first so many")
    parser.add_argument("--every", type=int, default=1, help="only every so manieth question")
    options = parser.parse_args(arguments)
    corpus = load(data_path(options.data))
    corpus = some_of(corpus, conversations=options.conversations, every=options.every)
    emit(
        bench="locomo_data",
        turns=len(corpus.turns),
        questions=len(corpus.questions),
        malformed_labels=corpus.malformed,
        dangling_labels=corpus.dangling,
        without_evidence=corpus.without_evidence,
    )
    with tempfile.TemporaryDirectory(prefix="lance-memory-locomo-") as folder:
        job = MainJob(corpus, Path(folder) / "store")
        with job.store:  # upkeep ends before the folder goes
            print_import(job.bring_in())
            if not options.no_recall:
                print_retrieval(job.store, corpus)
                print_madial(data_path(options.data).parent, every=options.every)
            for name, chosen in PASSES.items():
                print_pass(job.there_and_back(name, chosen))


if __name__ == "__main__":
    main()
