"""A program of a user, as mypy --strict sees it from outside; `test_user_code.py` has it checked.

It is never run. What a user calls most, what the answers hold, and the protocols that a user's own
classes satisfy without naming them as a base.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import assert_type

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lance_memory as lm
from lance_memory import MemoryStore, MemoryView

# -- classes of the user's own


class Letters:
    """An Embedder that counts letters, with marks of its own for questions."""

    name = "letters"
    dimension = 26

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[float(text.count(chr(97 + n))) + 0.1 for n in range(26)] for text in texts]
        return np.asarray(rows, np.float32)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed([f"query: {text}" for text in texts])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


class Longest:
    """A Transform that works on many clusters at once."""

    batch_size = 8

    def __call__(self, cluster: Sequence[lm.Memory], /) -> str | None:
        return max((memory.content for memory in cluster), key=len, default=None)

    def many(
        self, clusters: Sequence[Sequence[lm.Memory]], /
    ) -> Sequence[lm.Derived | str | Exception | None]:
        return [self(cluster) for cluster in clusters]


class Newest:
    """A Classifier."""

    def __call__(
        self, earlier: lm.Statement, later: lm.Statement, *, cosine: float | None
    ) -> lm.Judgement:
        same = cosine is not None and cosine > 0.95
        resolution = lm.Resolution.UPDATE if same else lm.Resolution.NEW
        return lm.Judgement(resolution=resolution, reason="mine")


class Greetings:
    """An Extractor that takes what greets."""

    def extract(
        self, conversation: lm.Conversation, *, reading: lm.Reading
    ) -> lm.Passed[lm.Candidate]:
        found = [
            lm.Candidate(
                content=message.content,
                category=lm.Category.FACT,
                importance=0.5,
                confidence=0.9,
                scope=conversation.scope,
                event=conversation.event(place, job="mine"),
                event_at=reading.when(conversation, place),
                role=message.role,
            )
            for place, message in enumerate(conversation.messages)
            if message.content.startswith("Hello")
        ]
        return lm.Passed(items=tuple(found))


class Names:
    """A Redactor."""

    def redact(self, text: str) -> lm.Redacted:
        place = text.find("Mara")
        found = () if place < 0 else (lm.Finding(kind="name", start=place, end=place + 4),)
        return lm.Redacted(text=text.replace("Mara", "[name]", 1), found=found)


class Rooms:
    """An Overlay that adds what a domain knows."""

    name = "rooms"

    def additions(self, memories: Sequence[lm.Memory], *, now: datetime) -> lm.Additions:
        return lm.Additions(metadata={memory.id: {"room": 12} for memory in memories})


class ByLength:
    """A Reranker."""

    def rerank(self, query: str, hits: Sequence[lm.Hit]) -> list[float]:
        return [float(len(hit.memory.content)) for hit in hits]


def weight(messages: Sequence[lm.Message], /) -> float:
    """An ImportanceAssessor may be a function."""
    return min(1.0, sum(len(message.content) for message in messages) / 1_000)


def first_two(cluster: Sequence[lm.Memory]) -> lm.Derived | None:
    """And so may a Transform."""
    texts = [memory.content for memory in cluster[:2]]
    return lm.Derived(content=" ".join(texts), kind=lm.Kind.SEMANTIC) if texts else None


def words(texts: Sequence[str]) -> list[int]:
    """A tokenizer."""
    return [len(text.split()) for text in texts]


EMBEDDERS: tuple[lm.Embedder, ...] = (
    Letters(),
    lm.FunctionEmbedder(Letters().embed, name="letters", dimension=26),
    lm.MiniLM(),
)
TRANSFORMS: tuple[lm.Transform, ...] = (Longest(), first_two, lm.latest, lm.extractive)
BATCH: lm.BatchTransform = Longest()
CLASSIFIER: lm.Classifier = Newest()
EXTRACTOR: lm.Extractor = Greetings()
REDACTOR: lm.Redactor = Names()
OVERLAY: lm.Overlay = Rooms()
RERANKER: lm.Reranker = ByLength()
ASSESSOR: lm.ImportanceAssessor = weight
COUNTER: lm.TokenCounter = Letters()
QUERIES: lm.QueryEmbedder = Letters()

# -- a store, and what its verbs answer


def opened(path: str) -> MemoryStore:
    path_of_ingest = lm.WritePath(
        redact=lm.Redact(redactor=Names()),
        extract=lm.Extract(extractor=Greetings()),
        resolve=lm.Resolve(classifier=Newest()),
        overlays={"hotel": (Rooms(),)},
    )
    return MemoryStore.open(
        path,
        embedder=Letters(),
        author="me",
        durability="power",
        quotas=lm.Quotas.from_json({}),
        write_path=path_of_ingest,
    )


def remembered(store: MemoryStore) -> str:
    mara = store.scoped(tenant="acme", user="mara")
    assert_type(mara, MemoryStore)
    added = mara.add("I like tea.", tags=["food"], importance=0.7, event_at=datetime.now(UTC))
    assert_type(added, lm.AddResult)
    assert_type(added.outcome, lm.Outcome)
    many = mara.add_many(["One.", {"content": "Two.", "key": "two"}])
    assert_type(many.already_there, Mapping[int, str])
    put = mara.upsert("Mara lives in Porto.", key="home", kind=lm.Kind.PROFILE)
    changed = mara.update(put.id, content="Mara lives in Faro.", reason="moved")
    assert_type(changed, lm.WriteResult)
    assert_type(changed.ids, tuple[str, ...])
    mara.supersede([added.id, put.id], "Mara likes tea, and lives in Faro.")
    mara.retire("two", reason="a test")
    assert_type(mara.unretire(many.ids[1]), lm.WriteResult)
    assert_type(mara.delete(user="mara", until=datetime.now(UTC)).deleted, int)
    return added.id


def read(view: MemoryView, ref: str) -> None:
    memory = view.get(ref)
    assert_type(memory, lm.Memory)
    assert_type(memory.scope, lm.Scope)
    assert_type(memory.state, lm.State)
    assert_type(memory.tags, tuple[str, ...])
    assert_type(memory.embedding, NDArray[np.float32] | None)
    assert_type(memory.expires_at, datetime | None)
    assert_type(view.find(ref), lm.Memory | None)
    assert_type(view.list(limit=3, states="any", tags=["food"]), list[lm.Memory])
    assert_type(view.iter(), Iterator[lm.Memory])
    assert_type(view.count(kinds=[lm.Kind.EPISODIC]), int)
    ranking = lm.Ranking(recency=lm.Recency(half_life=timedelta(days=30)), reranker=ByLength())
    found = view.search("tea", k=3, mode=lm.Mode.HYBRID, ranking=ranking)
    assert_type(found, lm.SearchResult)
    for hit in found:
        assert_type(hit, lm.Hit)
        assert_type(hit.similarity, float | None)
        assert_type(hit.explain(), str)
    assert_type(view.search_many(["tea", "trains"]), list[lm.SearchResult])
    assert_type(view.related(ref), list[lm.Related])
    assert_type(view.lineage(ref).sources, tuple[lm.LineageNode, ...])
    assert_type(view.history(ref), list[lm.MemoryChange])
    assert_type(view.to_polars(), pl.LazyFrame)
    assert_type(view.sql("select count(*) from memories"), pl.DataFrame)
    assert_type(view.embeddings([ref])[ref], NDArray[np.float32])
    assert_type(view.stats().by_state, Mapping[str, int])


def past(store: MemoryStore) -> None:
    before = store.at(datetime.now(UTC) - timedelta(days=1))
    assert_type(before, MemoryView)
    before.add("This is the past.")  # type: ignore[attr-defined]  # a view has no writes
    entry = store.log(limit=1)[0]
    assert_type(entry.scopes, tuple[lm.Scope, ...] | None)
    assert_type(store.tag("here"), int)
    assert_type(store.tags(), dict[str, int])
    assert_type(store.branch("try"), MemoryStore)
    assert_type(store.branches(), list[lm.Branch])
    difference = store.diff("here")
    assert_type(difference.updated, tuple[lm.Change, ...])
    assert_type(store.rollback("here", dry_run=True), lm.RollbackPlan)
    assert_type(store.rollback("here"), lm.WriteResult)
    assert_type(store.revert(entry.version, dry_run=True), lm.RollbackPlan)
    assert_type(store.revert(entry.version), lm.WriteResult)
    assert_type(store.merge("try", dry_run=True), lm.MergePlan)
    assert_type(store.merge("try", prefer="theirs"), lm.WriteResult)


def dreamt(store: MemoryStore) -> None:
    options = lm.ConsolidateOptions(min_similarity=0.8, across=("session",))
    plan = store.consolidate(options, first_two, dry_run=True, user="mara")
    assert_type(plan, lm.ConsolidationPlan)
    assert_type(plan.accepted, tuple[lm.ClusterPlan, ...])
    assert_type(store.apply(plan, reason="tidy"), lm.WriteResult)
    assert_type(store.consolidate(transform=Longest()), lm.ConsolidationResult)
    dreamer = lm.Dreamer(store, triggers=lm.Triggers(cron="0 3 * * *"), transform=Longest())
    assert_type(dreamer.once().outcome, lm.DreamOutcome)
    weak = store.plan_retirement(below=0.1, decay=lm.Decay(half_life=timedelta(days=30)))
    assert_type(weak, lm.RetirePlan)
    due = store.plan_retention(lm.RetentionPolicy())
    assert_type(store.retain(due, archive=None), lm.RetentionResult)
    assert_type(store.forget(["a"], dry_run=True), lm.ForgetPlan)
    assert_type(store.forget(["a"]), lm.ForgetResult)
    assert_type(store.optimize(), lm.UpkeepResult)
    assert_type(store.doctor().findings, tuple[lm.HealthFinding, ...])
    assert_type(store.backup("elsewhere", keep=lm.Retain(last=3)), lm.BackupResult)


def said(store: MemoryStore) -> None:
    talk = [{"role": "user", "content": "Hello, I am Mara."}]
    result = store.ingest(talk, user="mara", session="monday")
    assert_type(result, lm.IngestResult)
    assert_type(result.status, lm.IngestStatus)
    assert_type(result.decisions, tuple[lm.Decision, ...])
    assert_type(store.pending(), list[lm.Waiting])
    assert_type(store.jobs.get(result.job).state, lm.JobState)
    assert_type(store.quota("acme"), lm.QuotaStatus)


def turned(store: MemoryStore) -> str:
    options = lm.ContextOptions(budget_tokens=300, tokenizer=words)
    agent = lm.Agent(store.scoped(tenant="acme", user="noa"), assessor=weight, options=options)
    assert_type(agent.observe("monday", "I live in Faro.", "Noted!"), lm.Observed)
    agent.flush("monday")
    assert_type(agent.profile.set("language", "pt", confidence=0.9), lm.Fact)
    assert_type(agent.procedural.learn("book", context="a trip", steps=["find"]), lm.Procedure)
    pack = agent.context("tuesday", "Where does she live?", 300)
    assert_type(pack, lm.ContextPack)
    assert_type(pack.items, tuple[lm.ContextItem, ...])
    workspace = lm.Workspace(store.scoped(tenant="acme"))
    assert_type(workspace.set_prompt("system", "Be brief."), lm.ItemResult)
    return pack.text


def failed(store: MemoryStore) -> Sequence[str]:
    try:
        store.get("nobody")
    except lm.AmbiguousError as error:
        return error.candidates
    except (lm.NotFoundError, lm.ConflictError):
        return ()
    except lm.LanceMemoryError as error:
        return [str(error)]
    return ()
