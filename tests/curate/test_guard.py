"""A pass that would make recall worse is held back, cluster by cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import ConsolidateOptions, Guard, InvalidInputError, StoppedError
from lance_memory.curate.guard import ProbeHit, guarded
from lance_memory.curate.plan import ClusterPlan, Recalled
from lance_memory.record.memory import Scope

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
BY_SESSION = ConsolidateOptions(by="session", max_dropped=1.0)

TEA = ["green tea is at four", "black tea is at five", "iced tea is at six"]
ROME = ["rome in may", "naples in june", "venice in july"]


def told(session, texts, **fields):
    return [
        {"content": text, "session": session, "event_at": NOON + timedelta(minutes=i), **fields}
        for i, text in enumerate(texts)
    ]


def others(store, session, n=30):
    """What answers once the sources no longer do."""
    store.add_many(told(session, [f"green black iced tea {i} at four five six" for i in range(n)]))


def lossy(memories):
    """Keeps one session's texts, and replaces the other's by words of nothing."""
    if "tea" in memories[0].content:
        return "something was said about beverages"
    return ". ".join(memory.content for memory in memories)


def test_a_cluster_whose_summary_is_not_found_any_more_is_left_alone(store):
    store.add_many([*told("a", TEA), *told("b", ROME)])
    others(store, "")
    before = store.count()
    result = store.consolidate(BY_SESSION, lossy)
    (held,), (accepted,) = result.plan.skipped, result.plan.accepted
    assert held.failed
    assert held.reason == (
        "recall would get worse: 3 of 3 probes find a source in the top 10, "
        "and 0 would find it or its successor"
    )
    assert held.recalled == Recalled(probes=3, before=3, after=0)
    assert accepted.recalled == Recalled(probes=3, before=3, after=3)
    assert result.plan.recalled == accepted.recalled
    assert store.count() == before - 2
    assert store.log(limit=1)[0].manifest["recalled"] == {"probes": 3, "before": 3, "after": 3}


def test_what_may_be_lost_is_an_option_and_so_is_the_guard(store):
    store.add_many(told("a", TEA))
    others(store, "")
    for guard, accepted in ((Guard(max_loss=1.0), 1), (None, 1), (Guard(max_loss=0.99), 0)):
        plan = store.consolidate(BY_SESSION, lossy, guard=guard, dry_run=True)
        assert len(plan.accepted) == accepted
    assert store.consolidate(BY_SESSION, lossy, guard=None, dry_run=True).recalled is None


def test_a_dry_run_measures_and_leaves_no_trace(store):
    store.add_many([*told("a", TEA), *told("b", ROME)])
    others(store, "")
    version, log = store.version, store.log(upkeep=True)
    plan = store.consolidate(BY_SESSION, lossy, dry_run=True)
    assert (len(plan.skipped), len(plan.accepted)) == (1, 1)
    assert (store.version, store.log(upkeep=True), store.count(states="superseded")) == (
        version,
        log,
        0,
    )


def test_a_scoped_handle_measures_within_its_scope(store):
    """Another user's memories neither compete with the summary nor answer in its place."""
    store.add_many(told("a", TEA, user="ana"))
    store.add_many(told("x", TEA * 10, user="bob"))
    vague = "tea is at some time"
    found = store.scoped(user="ana").consolidate(BY_SESSION, lambda ms: vague, dry_run=True)
    assert found.recalled == Recalled(probes=3, before=3, after=3)


def test_probes_are_bounded_and_go_round_the_clusters(store):
    for name in "abcd":
        store.add_many(told(name, [f"{text} {name}" for text in ROME]))
    plan = store.consolidate(BY_SESSION, lossy, guard=Guard(probes=6), dry_run=True)
    assert [c.recalled.probes for c in plan.clusters] == [2, 2, 1, 1]
    plan = store.consolidate(BY_SESSION, lossy, guard=Guard(probes=3), dry_run=True)
    assert [c.recalled and c.recalled.probes for c in plan.clusters] == [1, 1, 1, None]


@pytest.mark.parametrize("wrong", [{"max_loss": 1.1}, {"max_loss": -0.1}, {"k": 0}, {"probes": 0}])
def test_a_guard_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidInputError):
        Guard(**wrong)


def test_questions_that_were_asked_are_probes(tmp_path, reopen):
    store = reopen(tmp_path / "asked", record_queries=True)
    store.add_many([*told("a", TEA), *told("b", ROME)])
    others(store, "")
    for _ in range(2):
        store.search("when is black tea", k=3)
    plan = store.consolidate(BY_SESSION, lossy, dry_run=True)
    tea, rome = sorted(plan.clusters, key=lambda c: c.contents)
    assert rome.recalled == Recalled(probes=3, before=3, after=3)
    assert tea.recalled == Recalled(probes=4, before=4, after=0)
    scoped = store.scoped(session="b").consolidate(BY_SESSION, lossy, dry_run=True)
    assert [c.recalled.probes for c in scoped.clusters] == [3]


@pytest.mark.parametrize("others_there", [0, 5])
def test_a_text_about_something_else_is_left_alone_in_the_smallest_scope(store, others_there):
    """Where there are fewer memories than a probe looks at, everything is among the first."""
    store.add_many(told("a", TEA))
    others(store, "", others_there)
    plan = store.consolidate(BY_SESSION, lambda ms: "zanzibar krakow", dry_run=True)
    (cluster,) = plan.failed
    assert cluster.recalled == Recalled(probes=3, before=3, after=0)
    plan = store.consolidate(BY_SESSION, lambda ms: "tea at four, five and six", dry_run=True)
    assert len(plan.accepted) == 1


# -- the rule alone --------------------------------------------------------------------------


def cluster(name, *contents):
    return ClusterPlan(
        sources={f"{name}{i}": (1, NOON, "") for i in range(len(contents))},
        scope=Scope(user="ana", session=name),
        cohesion=1.0,
        derived={"id": f"new {name}"},
        contents=contents,
    )


def go_on():
    """Nobody asked to stop."""


def as_hits(ids):
    return [ProbeHit(name, 0.9, worded=True) for name in ids]


class Searches:
    """Answers by the names of the clusters that are in place, and remembers what was asked."""

    def __init__(self, answer):
        self.answer, self.asked, self.shown = answer, [], []

    def before(self, scope, questions, k):
        self.asked.append((scope, tuple(questions), k))
        return [as_hits(self.answer(question, ())) for question in questions]

    def after(self, clusters):
        names = tuple(c.successor for c in clusters)
        self.shown.append(names)
        return _Open(
            lambda scope, questions, k: [as_hits(self.answer(q, names)) for q in questions]
        )


class _Open:
    def __init__(self, search):
        self.search = search

    def __enter__(self):
        return self.search

    def __exit__(self, *error):
        return None


def test_recorded_questions_are_asked_before_the_sources_own_words():
    searches = Searches(lambda question, names: ["a1", *names])
    recorded = [("when is tea?", ["zzz", "a1", "a0"]), ("where?", ["other"])]
    (measured,) = guarded(
        [cluster("a", "tea is at four", "tea is at five")],
        Guard(probes=2, k=7),
        refuse_stopped=go_on,
        answered=lambda ids: recorded if set(ids) == {"a0", "a1"} else [],
        before=searches.before,
        after=searches.after,
    )
    assert searches.asked == [(Scope(user="ana"), ("when is tea?", "tea is at four"), 7)]
    assert measured.recalled == Recalled(probes=2, before=1, after=2)


@pytest.mark.parametrize(
    ("content", "question"),
    [
        (
            "Tea. The enormous zeppelin crossed Lisbon at dawn yesterday.",
            "enormous zeppelin crossed yesterday",
        ),
        ("tea at four", "tea at four"),
        ("我对花生过敏，不能吃。", "我对花生过敏，不能吃。"),
    ],
)
def test_a_probe_is_what_is_half_remembered_of_a_source(content, question):
    searches = Searches(lambda question, names: [])
    guarded(
        [cluster("a", content)],
        Guard(),
        refuse_stopped=go_on,
        answered=lambda ids: (),
        before=searches.before,
        after=searches.after,
    )
    assert [asked for _, asked, _ in searches.asked] == [(question,)]


def test_what_is_left_alone_competes_again_and_the_others_are_measured_again():
    """While `new b` is there `a` is found; once b is held back, a is no longer, and goes too."""

    def answer(question, names):
        if not names:
            return ["a0", "b0"]
        return ["new a"] if "new b" in names and "a says" in question else []

    searches = Searches(answer)
    measured = guarded(
        [cluster("a", "a says tea", "a says tea"), cluster("b", "b says rome", "b says rome")],
        Guard(),
        refuse_stopped=go_on,
        answered=lambda ids: (),
        before=searches.before,
        after=searches.after,
    )
    assert searches.shown == [("new a", "new b"), ("new a",)]
    assert [c.failed for c in measured] == [True, True]
    assert [c.recalled for c in measured] == [Recalled(probes=1, before=1, after=0)] * 2


def test_a_guard_that_is_asked_to_stop_searches_no_further():
    searches, asked = Searches(lambda question, names: []), []

    def stop_after_two():
        asked.append(len(searches.asked))
        if len(asked) > 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        guarded(
            [cluster("a", "tea at four"), replace(cluster("b", "rome"), scope=Scope(user="bo"))],
            Guard(),
            refuse_stopped=stop_after_two,
            answered=lambda ids: (),
            before=searches.before,
            after=searches.after,
        )
    assert (asked, searches.shown) == ([0, 1], [])


def test_recall_that_gets_better_is_no_loss():
    assert Recalled(probes=9, before=3, after=5).loss == 0.0
    assert Recalled(probes=9, before=0, after=0).loss == 0.0
    assert Recalled(probes=9, before=4, after=3).loss == 0.25
