from __future__ import annotations

import dataclasses
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import (
    Bounds,
    ConflictError,
    ConsolidateOptions,
    ConsolidationPlan,
    Derived,
    Execution,
    FunctionEmbedder,
    InvalidInputError,
    Kind,
    Relationship,
    State,
    StoppedError,
    TransformError,
    WriteResult,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def repeated(text, n, **fields):
    """n memories that say the same at different times."""
    return [{"content": text, "event_at": NOON + timedelta(minutes=i), **fields} for i in range(n)]


def contents(store, **where):
    return [m.content for m in store.list(**where)]


def joined(memories):
    return " | ".join(m.content for m in memories)


def rows(store):
    return store.to_arrow().sort_by("id").to_pylist()


def test_near_duplicates_become_one_visible_memory_each(store):
    """C04."""
    store.add_many(
        [*repeated("tea at four", 5), *repeated("rome in may", 3), "something else entirely"]
    )
    result = store.consolidate(reason="nightly")
    assert sorted(contents(store)) == ["rome in may", "something else entirely", "tea at four"]
    assert result.write == WriteResult(
        uri=store.uri,
        version=store.version,
        operation="consolidate",
        ids=result.write.ids,
        inserted=2,
        updated=8,
    )
    assert (result.version, result.plan.rows_saved, result.plan.selected) == (store.version, 6, 9)
    assert (result.inserted, result.updated, result.deleted, result.warnings) == (2, 8, 0, ())
    assert store.count(states="superseded") == 8
    entry = store.log(limit=1)[0]
    assert (entry.operation, entry.reason, entry.inserted, entry.updated) == (
        "consolidate",
        "nightly",
        2,
        8,
    )
    assert entry.manifest["derived"] == [str(c.derived["id"]) for c in result.plan.accepted]
    assert sorted(entry.manifest["sources"]) == sorted(
        m.id for m in store.iter(states="superseded")
    )
    assert entry.op_id == result.plan.op_id


def test_the_derived_memory_carries_what_its_sources_had(store, embedder):
    """C06."""
    store.add_many(
        [
            {
                "content": "tea at four",
                "user": "ana",
                "tags": ["a", "b"],
                "importance": 0.2,
                "event_at": NOON,
                "metadata": {"same": 1, "not": 1},
                "kind": "semantic",
                "confidence": 0.9,
            },
            {
                "content": "tea at four",
                "user": "ana",
                "tags": ["b", "c"],
                "importance": 0.8,
                "event_at": NOON + timedelta(days=2),
                "metadata": {"same": 1, "not": 2},
                "kind": "semantic",
                "confidence": 0.3,
            },
        ]
    )
    sources = store.list()
    store.consolidate()
    (new,) = store.list()
    full = store.get(new.id)
    assert (new.user, new.tags, new.metadata, new.kind) == (
        "ana",
        ("a", "b", "c"),
        {"same": 1},
        Kind.SEMANTIC,
    )
    assert (new.importance, new.confidence) == (pytest.approx(0.8), pytest.approx(0.93))
    assert (new.valid_from, new.event_at) == (NOON, NOON + timedelta(days=2))
    assert (new.source, new.state, new.revision) == ("consolidated", State.ACTIVE, 1)
    assert set(new.relationships) == {
        Relationship(relation="consolidates", target=m.id) for m in sources
    }
    assert full.embedding.tolist() == embedder.embed([new.content])[0].tolist()
    assert {(m.superseded_by, m.state_reason) for m in store.iter(states="superseded")} == {
        (new.id, "consolidated")
    }


def test_every_search_finds_the_derived_memory_and_no_source(store):
    store.add_many(repeated("tea at four", 4))
    store.consolidate()
    store.optimize()
    for mode in ("text", "vector", "hybrid"):
        assert [h.memory.source for h in store.search("tea four", mode=mode)] == ["consolidated"]


@pytest.mark.parametrize("filled", [False, True])
def test_a_pass_that_finds_nothing_writes_nothing(store, filled):
    if filled:
        store.add_many(["one thing", "another matter"])
    before = store.version
    result = store.consolidate()
    assert result.write == WriteResult(uri=store.uri, version=before, operation="consolidate")
    assert (result.plan.clusters, store.version) == ((), before)


def test_a_second_pass_right_after_the_first_finds_nothing(store):
    store.add_many(repeated("tea at four", 4))
    store.consolidate()
    before = store.version
    assert store.consolidate().plan.accepted == ()
    assert store.version == before


def test_a_dry_run_writes_nothing_and_apply_commits_exactly_that(store):
    store.add_many([*repeated("tea at four", 3), *repeated("rome in may", 2)])
    before, was = store.version, rows(store)
    plan = store.consolidate(dry_run=True)
    assert isinstance(plan, ConsolidationPlan)
    assert (store.version, rows(store), plan.version) == (before, was, before)
    store.apply(plan)
    for cluster in plan.accepted:
        new = store.get(str(cluster.derived["id"]))
        assert new.content == cluster.derived["content"]
        assert new.embedding.tolist() == cluster.derived["embedding"]
        assert {e.target for e in new.relationships} == set(cluster.sources)
        assert {store.get(i).superseded_by for i in cluster.sources} == {new.id}
    assert store.count() == len(plan.accepted)


def test_a_dry_run_and_a_pass_agree(store, tmp_path):
    store.add_many([*repeated("tea at four", 3), *repeated("rome in may", 2)])
    twin = store.checkout(store.version, tmp_path / "twin")
    twin.apply(store.consolidate(dry_run=True))
    store.consolidate()
    plain = [
        sorted(
            (m.content, m.state, m.tags, m.event_at, m.valid_from, m.importance, m.metadata == {})
            for m in s.iter(states="any")
        )
        for s in (store, twin)
    ]
    assert plain[0] == plain[1]


def test_a_plan_can_be_saved_loaded_and_applied_by_another_handle(store, reopen):
    store.add_many(repeated("tea at four", 3))
    saved = store.consolidate(dry_run=True).to_json()
    result = reopen(store.uri).apply(ConsolidationPlan.from_json(saved), reason="approved")
    assert (result.inserted, result.updated, contents(store)) == (1, 3, ["tea at four"])
    assert store.log(limit=1)[0].reason == "approved"


@pytest.mark.parametrize("change", ["update", "retire", "delete", "supersede", "apply"])
def test_a_plan_whose_source_was_changed_since_is_stale(store, change):
    """C10, C11."""
    store.add_many(repeated("tea at four", 3))
    plan = store.consolidate(dry_run=True)
    source = store.list()[1].id
    {
        "update": lambda: store.update(source, importance=1),
        "retire": lambda: store.retire(source),
        "delete": lambda: store.delete(source),
        "supersede": lambda: store.supersede(source, "x"),
        "apply": lambda: store.apply(plan),
    }[change]()
    before, was = store.version, rows(store)
    with pytest.raises(ConflictError, match="nothing was written: read and plan again") as caught:
        store.apply(plan)
    assert source in caught.value.ids
    assert (store.version, rows(store)) == (before, was)


def test_rows_that_are_added_while_the_transform_thinks_survive(store, reopen):
    """C11."""
    store.add_many(repeated("tea at four", 2))

    def slow(memories):
        reopen(store.uri).add("tea at four", event_at=NOON + timedelta(days=9))
        return memories[0].content

    store.consolidate(transform=slow)
    assert contents(store) == ["tea at four", "tea at four"]
    assert store.count(states="superseded") == 2


def test_a_source_that_is_changed_while_the_transform_thinks_is_a_conflict(store, reopen):
    store.add_many(repeated("tea at four", 2))

    def slow(memories):
        reopen(store.uri).update(memories[0].id, importance=1)
        return memories[0].content

    with pytest.raises(ConflictError):
        store.consolidate(transform=slow)
    assert store.count() == 2


def test_a_plan_is_still_good_after_upkeep_and_unrelated_writes(store):
    store.add_many(repeated("tea at four", 3))
    plan = store.consolidate(dry_run=True)
    store.add("unrelated")
    store.optimize()
    store.apply(plan)
    assert sorted(contents(store)) == ["tea at four", "unrelated"]


# -- options --------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["tenant", "user", "agent", "session", "run"])
@pytest.mark.parametrize("by", ["similarity", "session", "run", "window"])
def test_a_cluster_never_crosses_a_scope_unless_asked(store, by, level):
    store.add_many(
        [
            {**row, "session": "s", "run": "r", level: name}
            for name in "ab"
            for row in repeated("tea at four", 2)
        ]
    )
    plan = store.consolidate(ConsolidateOptions(by=by), dry_run=True)
    assert [c.size for c in plan.accepted] == [2, 2]
    assert sorted(str(c.derived[level]) for c in plan.accepted) == ["a", "b"]
    wide = store.consolidate(ConsolidateOptions(by=by, across=(level,)), dry_run=True)
    if by == level:
        assert [c.size for c in wide.accepted] == [2, 2]
    else:
        assert [(c.size, c.derived[level]) for c in wide.accepted] == [(4, "")]


def test_different_kinds_and_voices_are_no_near_duplicates(store):
    later = [
        {**r, "event_at": r["event_at"] + timedelta(days=1)} for r in repeated("tea at four", 2)
    ]
    store.add_many(
        [
            *repeated("tea at four", 2),
            *({**row, "kind": "semantic"} for row in later),
            *repeated("tea at four", 2, actor="bob"),
        ]
    )
    assert [c.size for c in store.consolidate(dry_run=True).accepted] == [2, 2, 2]


def test_the_similarity_floor_is_a_cosine(store):
    store.add("a", embedding=[1.0] + [0.0] * 15)
    store.add("b", embedding=[0.8, 0.6] + [0.0] * 14)
    for floor, clusters in ((0.79, 1), (0.81, 0)):
        plan = store.consolidate(
            ConsolidateOptions(min_similarity=floor, max_dropped=1), joined, dry_run=True
        )
        assert len(plan.clusters) == clusters
    assert plan.selected == 2


@pytest.mark.parametrize("by", ["session", "run"])
def test_structure_makes_one_memory_of_each_session_or_run(store, by):
    store.add_many(
        [{"content": f"{name} says {i}", by: name} for name in ("x", "y") for i in range(3)]
    )
    store.consolidate(ConsolidateOptions(by=by), joined)
    assert contents(store) == ["x says 0 | x says 1 | x says 2", "y says 0 | y says 1 | y says 2"]
    assert [getattr(m, by) for m in store.list()] == ["x", "y"]


@pytest.mark.parametrize("by", ["session", "run"])
def test_memories_without_a_session_are_not_one_session(store, by):
    store.add_many(["one thing", "another matter", "a third story"])
    assert store.consolidate(ConsolidateOptions(by=by), joined, dry_run=True).clusters == ()


def test_a_window_holds_what_happened_within_its_length(store):
    hours = (0, 5, 23, 24, 25, 100)
    store.add_many([{"content": f"at {h}", "event_at": NOON + timedelta(hours=h)} for h in hours])
    plan = store.consolidate(ConsolidateOptions(by="window"), joined, dry_run=True)
    assert [c.contents for c in plan.accepted] == [("at 0", "at 5", "at 23"), ("at 24", "at 25")]
    short = ConsolidateOptions(by="window", window=timedelta(hours=6))
    plan = store.consolidate(short, joined, dry_run=True)
    assert [c.contents for c in plan.accepted] == [("at 0", "at 5"), ("at 24", "at 25")]


@pytest.mark.parametrize(
    ("low", "high", "sizes"), [(2, 20, [7, 2]), (3, 20, [7]), (2, 3, [3, 3, 2]), (8, 20, [])]
)
def test_clusters_keep_to_their_sizes(store, low, high, sizes):
    store.add_many(
        [*repeated("tea at four", 7, session="s"), *repeated("rome in may", 2, session="t")]
    )
    for by in ("similarity", "session"):
        options = ConsolidateOptions(by=by, min_size=low, max_size=high)
        found = store.consolidate(options, dry_run=True).clusters
        assert sorted((c.size for c in found), reverse=True) == sizes


def test_only_what_the_filter_names_is_considered(store):
    store.add_many([*repeated("tea at four", 2, tags=["x"]), *repeated("rome in may", 2)])
    hidden = store.list()[2]
    plan = store.consolidate(tags="x", dry_run=True)
    assert (plan.selected, [c.contents[0] for c in plan.clusters]) == (2, ["tea at four"])
    store.retire(hidden.id)
    assert store.consolidate(dry_run=True).selected == 3


def test_expired_memories_are_not_consolidated(store, clock):
    store.add_many(repeated("tea at four", 2, expires_at=clock.now + timedelta(minutes=1)))
    clock.forward(minutes=2)
    assert store.consolidate(dry_run=True).clusters == ()


def test_memories_without_vectors_are_consolidated_by_structure_only(store):
    ids = store.add_many(repeated("tea at four", 2, session="s")).ids
    for i in ids:
        store.update(i, embedding=None)
    assert store.consolidate(dry_run=True).clusters == ()
    plan = store.consolidate(ConsolidateOptions(by="session"), dry_run=True)
    assert [(c.size, c.cohesion) for c in plan.accepted] == [(2, 0.0)]


# -- transforms -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "left it alone"),
        ("", "empty text"),
        (" \n", "empty text"),
        (Derived(content=""), "empty text"),
        ("nothing of it", "dropped 100% of the sources' numbers, names and negations"),
    ],
    ids=str,
)
def test_a_transform_that_drops_the_facts_is_refused_for_its_cluster_alone(store, answer, reason):
    """C05."""
    store.add_many([*repeated("she met Maria in Rome at 16:00", 2), *repeated("plain words", 2)])

    def transform(memories):
        return answer if "Maria" in memories[0].content else "plain words"

    result = store.consolidate(transform=transform)
    (skipped,) = result.plan.skipped
    assert reason in skipped.reason
    assert skipped.derived is None
    assert sorted(contents(store)) == ["plain words", *["she met Maria in Rome at 16:00"] * 2]
    manifest = store.log(limit=1)[0].manifest
    assert [(sorted(s["sources"]), s["reason"]) for s in manifest["skipped"]] == [
        (sorted(skipped.sources), skipped.reason)
    ]


def test_how_much_may_be_dropped_is_an_option(store):
    store.add_many(repeated("she met Maria in Rome", 2))
    for share, accepted in ((0.5, 1), (0.4, 0), (1.0, 1)):
        plan = store.consolidate(
            ConsolidateOptions(max_dropped=share), lambda ms: "met Maria", dry_run=True
        )
        assert len(plan.accepted) == accepted


@pytest.mark.parametrize(
    "answer",
    [
        Derived(content="tea at four", kind="dream"),
        Derived(content="tea at four", importance=5.0),
        Derived(content="tea at four", metadata={"a": {1}}),
        Derived(content="tea at four", tags=[""]),
        Derived(content="tea at four \ud800"),
        Derived(content=None),
        5,
    ],
    ids=str,
)
def test_a_malformed_answer_is_refused_for_its_cluster_when_it_is_planned(store, answer):
    """What a dry run accepts, apply must be able to commit."""
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])
    plan = store.consolidate(
        transform=lambda ms: answer if ms[0].content == "tea at four" else "rome in may",
        dry_run=True,
    )
    assert (len(plan.accepted), len(plan.skipped)) == (1, 1)
    store.apply(plan)
    assert sorted(contents(store)) == ["rome in may", "tea at four", "tea at four"]


def test_a_transform_that_raises_leaves_its_cluster_alone(store):
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])

    def transform(memories):
        if "tea" in memories[0].content:
            raise ZeroDivisionError("the model is gone")
        return "rome in may"

    result = store.consolidate(transform=transform)
    (failed,) = result.plan.failed
    assert failed.reason == "it raised ZeroDivisionError: the model is gone"
    assert sorted(contents(store)) == ["rome in may", "tea at four", "tea at four"]
    assert store.log(limit=1)[0].manifest["skipped"] == [
        {"sources": list(failed.sources), "reason": failed.reason, "failed": True}
    ]


def test_all_or_nothing_writes_nothing_where_a_cluster_failed(store):
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])
    strict = ConsolidateOptions(on_failure="all_or_nothing")
    before, calls = store.version, []

    def transform(memories):
        calls.append(memories[0].content)
        return "" if "tea" in memories[0].content else "rome in may"

    with pytest.raises(TransformError, match=r"1 of 1 cluster failed.*an empty text"):
        store.consolidate(strict, transform)
    assert calls == ["tea at four"]  # a model is not asked for what cannot be written
    plan = store.consolidate(strict, transform, dry_run=True)
    saved = ConsolidationPlan.from_json(plan.to_json())
    assert (saved, len(saved.failed), len(saved.accepted)) == (plan, 1, 0)
    assert saved.cut == "a cluster failed, and all or nothing was asked for"
    with pytest.raises(TransformError, match="nothing was written"):
        store.apply(saved)
    assert (store.version, store.count()) == (before, 4)


def test_all_or_nothing_lets_a_transform_leave_a_cluster_alone(store):
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])
    result = store.consolidate(
        ConsolidateOptions(on_failure="all_or_nothing"),
        lambda ms: None if "tea" in ms[0].content else "rome in may",
    )
    assert (len(result.plan.accepted), store.count()) == (1, 3)


def test_ctrl_c_in_a_transform_leaves_the_store_as_it_was(store):
    """C42."""
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])
    before = store.version

    def transform(memories):
        if "tea" in memories[0].content:
            raise KeyboardInterrupt
        return "rome in may"

    for workers in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            store.consolidate(transform=transform, execution=Execution(workers=workers))
    assert (store.version, store.count()) == (before, 4)


def test_a_pass_that_is_asked_to_stop_writes_nothing(store):
    store.add_many([*repeated("tea at four", 2), *repeated("rome in may", 2)])
    before, stop = store.version, threading.Event()

    def transform(memories):
        stop.set()
        return memories[0].content

    with pytest.raises(StoppedError):
        store.consolidate(transform=transform, stop=stop)
    assert (store.version, store.count()) == (before, 4)


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(max_seconds=100)], ids=["no bound", "time"])
def test_a_stop_while_the_derived_texts_are_embedded_counts_too(tmp_path, reopen, embedder, bounds):
    stop, transformed = threading.Event(), threading.Event()

    def embed(texts):
        if transformed.is_set():
            stop.set()
        return embedder.embed(texts)

    def transform(memories):
        transformed.set()
        return f"{memories[0].content} indeed"

    own = FunctionEmbedder(embed, name="words-16", dimension=embedder.dimension)
    store = reopen(tmp_path / "own", embedder=own)
    store.add_many(repeated("tea at four", 2))
    before = store.version
    with pytest.raises(StoppedError):
        store.consolidate(transform=transform, guard=None, stop=stop, bounds=bounds)
    assert (store.version, store.count()) == (before, 2)


def test_time_that_ran_out_after_the_last_cluster_cuts_nothing(tmp_path, reopen, embedder):
    def embed(texts):
        time.sleep(0.3)
        return embedder.embed(texts)

    own = FunctionEmbedder(embed, name="words-16", dimension=embedder.dimension)
    store = reopen(tmp_path / "own", embedder=own)
    store.add_many(repeated("tea at four", 2))
    result = store.consolidate(guard=None, bounds=Bounds(max_seconds=0.25))
    assert (len(result.plan.accepted), result.plan.cut) == (1, "")


def test_a_pass_ends_at_its_bounds_and_the_next_one_goes_on(store):
    for topic in ("tea at four", "rome in may", "red shoes"):
        store.add_many(repeated(topic, 3))
    one = store.consolidate(bounds=Bounds(max_clusters=1))
    assert (len(one.plan.clusters), one.plan.cut) == (
        1,
        "1 cluster was asked for, and 3 are there",
    )
    two = store.consolidate(bounds=Bounds(max_rows=4))
    assert (two.plan.selected, two.plan.cut, store.count()) == (4, "", 5)
    late = store.consolidate(bounds=Bounds(max_seconds=1e-9))
    assert (late.plan.clusters, late.plan.cut) == ((), "1e-09 s were over")
    store.consolidate()
    assert store.count() == 3


def test_the_facts_that_a_derived_text_lacks_are_listed(store):
    store.add_many(repeated("Ana never met Maria in Rome at 16:00", 2))
    plan = store.consolidate(transform=lambda ms: "Ana met Maria at 16:00", dry_run=True)
    (cluster,) = plan.accepted
    assert cluster.dropped == ("not", "Rome")
    assert "dropped: not, Rome" in str(plan)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"options": lambda ms: "x"}, r"takes ConsolidateOptions \(a transform goes into"),
        ({"options": {}}, "options is {}; it takes ConsolidateOptions"),
        ({"execution": 4}, "execution is 4; it takes Execution"),
        ({"guard": 0.5}, "guard is 0.5; it takes a Guard, or None"),
        ({"bounds": 0}, "bounds is 0; it takes Bounds"),
        ({"stop": True}, "stop is True; it takes Event"),
        ({"transform": "latest"}, "transform is 'latest'; it takes a callable"),
    ],
    ids=["transform as options", "options", "execution", "guard", "bounds", "stop", "transform"],
)
def test_an_argument_of_the_wrong_kind_is_refused(store, wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        store.consolidate(**wrong)


def test_a_transform_sees_whole_memories_oldest_first(store):
    store.add_many(
        [{**row, "role": str(i)} for i, row in enumerate(reversed(repeated("tea at four", 3)))]
    )
    seen = []

    def transform(memories):
        seen.extend(memories)
        return "tea at four"

    store.consolidate(transform=transform, dry_run=True)
    assert [m.event_at for m in seen] == [NOON + timedelta(minutes=i) for i in range(3)]
    assert [m.embedding.shape for m in seen] == [(16,)] * 3


def test_what_a_transform_says_itself_is_taken(store):
    store.add_many(repeated("tea at four", 2))
    store.consolidate(
        transform=lambda ms: Derived(
            content="tea at four",
            kind="procedural",
            tags=["made"],
            metadata={"by": "me"},
            importance=1.0,
            confidence=0.1,
        )
    )
    (new,) = store.list()
    assert (new.kind, new.tags, new.metadata, new.importance, new.confidence) == (
        (Kind.PROCEDURAL, ("made",), {"by": "me"}, 1.0, pytest.approx(0.1))
    )


def test_generations_stack_and_every_one_is_reachable(store):
    for day in range(3):
        store.add_many(
            [
                {**row, "event_at": row["event_at"] + timedelta(days=day)}
                for row in repeated("tea at four", 3)
            ]
        )
        store.consolidate()
    (newest,) = store.list()
    related = store.related(newest.id, depth=9)
    assert {r.depth for r in related} == {1, 2, 3}
    assert len(related) == store.count(states="superseded") == 11
    assert newest.valid_from == NOON
    assert newest.event_at == NOON + timedelta(days=2, minutes=2)


def test_two_passes_of_the_same_sources_have_one_winner(store, reopen):
    """C10."""
    store.add_many(repeated("tea at four", 3))
    other = reopen(store.uri)
    plans = store.consolidate(dry_run=True), other.consolidate(dry_run=True)
    store.apply(plans[0])
    with pytest.raises(ConflictError):
        other.apply(plans[1])
    assert len(store.list()) == 1


def test_a_plan_for_no_cluster_applies_to_nothing(store):
    store.add_many(repeated("tea at four", 2))
    plan = dataclasses.replace(store.consolidate(dry_run=True), clusters=())
    before = store.version
    assert store.apply(plan) == WriteResult(uri=store.uri, version=before, operation="consolidate")
    assert store.scoped(user="ana").apply(plan).version == before


# -- what must not get lost, or come back ----------------------------------------------------


def test_an_ended_fact_stays_ended(store, clock):
    ended = {"valid_from": NOON, "valid_to": NOON + timedelta(days=1)}
    store.add_many(
        [{"content": text, **ended} for text in ("bo works at acme", "at acme works bo")]
    )
    store.consolidate()
    (new,) = store.list()
    assert (new.valid_from, new.valid_to) == (NOON, NOON + timedelta(days=1))
    assert store.count(valid_at=NOON + timedelta(days=2)) == 0


def test_a_key_goes_over_to_the_successor_so_that_upsert_replaces_it(store):
    store.upsert("mara lives in lisbon", key="home", user="mara")
    store.add("in lisbon lives mara", user="mara")
    result = store.consolidate()
    mara = store.scoped(user="mara")
    assert mara.get("home").source == "consolidated"
    mara.upsert("mara lives in porto", key="home")
    assert contents(mara) == ["mara lives in porto"]
    store.rollback(result.plan.version)
    assert mara.get("home").content == "mara lives in lisbon"


def test_of_two_keys_the_successor_has_none(store):
    for key in ("home", "city"):
        store.upsert(f"mara lives in {key}"[:13], key=key)
    store.consolidate()
    assert [m.key for m in store.list()] == [None]


def test_a_key_that_was_given_away_since_makes_the_plan_stale(store, clock):
    now = clock()
    store.add_many(
        [
            {"content": "tea at four", "key": "tea", "expires_at": now + timedelta(hours=1)},
            {"content": "at four tea", "expires_at": now + timedelta(hours=1)},
        ]
    )
    plan = store.consolidate(dry_run=True)
    assert [c.derived["key"] for c in plan.accepted] == ["tea"]
    clock.forward(hours=2)
    store.add("another tea", key="tea")
    store.apply(plan)  # what it derives has expired too, so the key has one live holder
    assert store.get("tea").content == "another tea"


@pytest.mark.parametrize("states", ["any", "superseded", ["retired", "contradicted"]])
def test_what_is_hidden_is_never_made_new_again(store, states):
    store.add_many(repeated("tea at four", 3))
    store.consolidate()
    store.retire([store.add("rome in may").id, store.add("in may rome").id])
    before = rows(store)
    plan = store.consolidate(dry_run=True, states=states)
    assert plan.accepted == ()
    assert store.consolidate(states=states).plan.accepted == ()
    assert rows(store) == before


def test_a_text_that_is_longer_than_its_sources_is_no_consolidation(store):
    store.add_many(repeated("tea at four", 2))
    plan = store.consolidate(transform=lambda ms: "tea at four " * 200, dry_run=True)
    assert [c.reason for c in plan.failed] == [
        "the transform gave 2,400 characters, and the sources have 22"
    ]


def test_a_source_whose_key_was_changed_since_makes_the_plan_stale(store):
    keyed = store.add("tea at four", key="tea").id
    store.add("at four tea")
    plan = store.consolidate(dry_run=True)
    assert [c.derived["key"] for c in plan.accepted] == ["tea"]
    store.update(keyed, key="coffee")
    with pytest.raises(ConflictError):
        store.apply(plan)
