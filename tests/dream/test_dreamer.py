"""The dreamer in one process: passes, triggers, bounds, failures, an end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import pytest

from lance_memory import (
    Bounds,
    ConflictError,
    ConsolidateOptions,
    Dreamer,
    DreamOutcome,
    EmbeddingError,
    Execution,
    FunctionEmbedder,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TransformError,
    Triggers,
)
from lance_memory.dream.lock import held

ANY = ConsolidateOptions(min_similarity=-1.0, max_size=2, max_dropped=1.0, distinct=False)
MINUTE = timedelta(minutes=1)
NOW = datetime(2025, 1, 1, tzinfo=UTC)
WORDS = [chr(97 + n % 26) * (3 + n // 26) + chr(120 - n % 20) for n in range(30)]
LINUX_ROOT = sys.platform == "linux" and os.geteuid() == 0


@pytest.fixture
def turns(store):
    """Six memories; a pass of `ANY` makes pairs of them."""
    store.add_many([f"turn {n}" for n in range(6)])
    return store


@pytest.fixture
def empty(tmp_path, reopen):
    """Another store."""
    return reopen(tmp_path / "empty")


@pytest.fixture
def dreamer(turns, clock):
    """Makes dreamers of the store that end with the test."""
    with contextlib.ExitStack() as stack:

        def make(store=turns, **given):
            made = Dreamer(store, **{"options": ANY, "clock": clock, "guard": None, **given})
            stack.callback(made.stop)
            return made

        yield make


def look(dreamer):
    """One look of the schedule, to the end of the pass that it begins, if any."""
    began = dreamer._pass
    dreamer._look()
    if dreamer._pass is not began:
        dreamer._pass.join(60)


def until(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


# -- one pass -------------------------------------------------------------------------------


def test_a_pass_is_one_version_with_its_manifest(dreamer, turns):
    found = turns.version
    result = dreamer().once()
    assert (result.outcome, result.version) == (DreamOutcome.CONSOLIDATED, found + 1)
    assert (result.clusters, result.rows_saved, result.skipped, result.cut) == (3, 3, 0, "")
    (entry,) = turns.log(limit=1)
    assert (entry.version, entry.operation, entry.reason) == (
        found + 1,
        "consolidate",
        "dream: once",
    )
    assert entry.manifest["derived"] == [cluster.successor for cluster in result.plan.accepted]
    assert turns.count() == 3


def test_a_pass_that_finds_nothing_makes_no_version(dreamer, turns):
    found = turns.version
    result = dreamer(options=ConsolidateOptions(min_similarity=1.0, distinct=True)).once()
    assert (result.outcome, result.version, turns.version) == (DreamOutcome.NOTHING, found, found)


def test_a_dry_run_writes_nothing_and_says_what_a_pass_does(dreamer, turns):
    one = dreamer()
    planned = one.once(dry_run=True)
    assert planned.outcome is DreamOutcome.PLANNED
    assert not list(Path(turns.uri).glob("dream*"))
    assert one.status().last is None
    done = one.once()
    sources = [[*cluster.sources] for cluster in planned.plan.accepted]
    assert [[*cluster.sources] for cluster in done.plan.accepted] == sources
    assert planned.version == done.version - 1


def test_the_status_tells_of_the_last_pass(dreamer, turns, clock):
    one = dreamer(triggers=Triggers(cron="0 3 * * *"))
    before = one.status()
    assert (before.last, before.running, before.lost, before.new_rows) == (None, None, None, 6)
    assert before.next_cron.isoformat() == "2025-01-01T03:00:00+00:00"
    clock.forward(days=2)
    result = one.once()
    turns.add_many(["new a", "new b"])
    after = dreamer().status()
    assert (after.last, after.new_rows, after.unfinished) == (result, 2, False)
    assert one.status().next_cron.isoformat() == "2025-01-03T03:00:00+00:00"


def test_the_store_is_the_same_with_the_files_of_the_dreamer(dreamer, turns, reopen, tmp_path):
    dreamer().once()
    assert {p.name for p in Path(turns.uri).iterdir()} == {
        "memories.lance", "dream.json", "dream.lock"
    }  # fmt: skip
    assert reopen(turns.uri, create=True).count() == 3
    assert turns.checkout(2, tmp_path / "copy").version > 0
    turns.optimize(clean_older_than=timedelta(0))
    assert dreamer().status().last.outcome is DreamOutcome.CONSOLIDATED


def test_a_second_pass_at_the_same_time_is_not_made(dreamer, turns):
    inside, go = threading.Event(), threading.Event()

    def slow(members):
        inside.set()
        go.wait(60)
        return members[0].content

    first = dreamer(transform=slow)
    thread = threading.Thread(target=first.once)
    thread.start()
    assert inside.wait(60)
    busy = dreamer().once()
    running = first.status().running
    go.set()
    thread.join(60)
    assert busy.outcome is DreamOutcome.BUSY
    assert busy.reason.startswith(f"another pass is under way: process {os.getpid()} on ")
    assert (running.pid, running.trigger, running.about) == (os.getpid(), "dream: once", "main")
    assert first.status().running is None
    assert [e.operation for e in turns.log()].count("consolidate") == 1


# -- failures -------------------------------------------------------------------------------


def test_a_conflict_is_told_and_leaves_what_was_new_as_new(dreamer, turns):
    first = turns.list(limit=1)[0].id

    def edits(members):
        turns.update(first, importance=0.9)
        return members[0].content

    one = dreamer(transform=edits, execution=Execution())
    result = one.once()
    assert result.outcome is DreamOutcome.FAILED
    assert isinstance(result.error, ConflictError)
    assert one.status().last.reason == str(result.error)
    assert one.status().new_rows == 6 + 1
    assert turns.count() == 6


def test_an_embedder_that_fails_is_told(turns, reopen, embedder, dreamer):
    def fail(texts):
        raise ConnectionError("the model is down")

    broken = FunctionEmbedder(fail, name=embedder.name, dimension=embedder.dimension)
    one = dreamer(
        reopen(turns.uri, embedder=broken), transform=lambda m: f"{m[0].content}, in short"
    )
    result = one.once()
    assert (result.outcome, type(result.error)) == (DreamOutcome.FAILED, EmbeddingError)
    assert "the model is down" in one.status().last.reason


def test_a_transform_that_fails_leaves_its_cluster_and_the_rest_is_done(dreamer):
    def fails_once(members):
        if members[0].content == "turn 0":
            raise ValueError("no")
        return members[0].content

    result = dreamer(transform=fails_once).once()
    assert (result.outcome, result.clusters, result.skipped) == (DreamOutcome.CONSOLIDATED, 2, 1)
    assert result.failed == 1
    strict = replace(ANY, on_failure="all_or_nothing")
    failed = dreamer(transform=lambda m: 1 / 0, options=strict).once()
    assert failed.outcome is DreamOutcome.FAILED
    assert "all or nothing" in failed.reason


def test_a_transform_that_answers_for_no_cluster_fails_the_pass(dreamer, turns):
    found = turns.version
    one = dreamer(transform=lambda m: 1 / 0)
    result = one.once()
    assert (result.outcome, type(result.error)) == (DreamOutcome.FAILED, TransformError)
    assert result.reason.startswith("all 3 clusters failed; nothing was written; the first: it ")
    assert (turns.version, one.status().last.reason) == (found, result.reason)
    assert one.status().new_rows == 6
    wrong = dreamer(transform=lambda m: 5).once()  # asked again, it gives the same
    assert (wrong.outcome, wrong.failed) == (DreamOutcome.NOTHING, 3)


def test_failures_in_the_background_are_told_and_tried_again_later(dreamer, turns, clock):
    told, broken = [], threading.Event()
    broken.set()

    def transform(members):
        if broken.is_set():
            turns.update(members[0].id, importance=0.1 + turns.version / 1_000)
        return members[0].content

    one = dreamer(
        transform=transform, told=told.append, triggers=Triggers(new_rows=1), execution=Execution()
    )
    look(one)
    assert [r.outcome for r in told] == [DreamOutcome.FAILED]
    assert one.status().retry_at - clock.now <= MINUTE
    look(one)
    assert len(told) == 1
    clock.forward(minutes=1)
    look(one)
    assert len(told) == 2
    assert MINUTE < one.status().retry_at - clock.now <= 2 * MINUTE
    broken.clear()
    clock.forward(minutes=2)
    look(one)
    assert [r.outcome for r in told] == [*[DreamOutcome.FAILED] * 2, DreamOutcome.CONSOLIDATED]
    assert one.status().retry_at is None


def test_a_store_that_cannot_be_read_is_told_and_looked_at_again(dreamer, turns, clock, tmp_path):
    told = []
    one = dreamer(told=told.append, triggers=Triggers(new_rows=1))
    place = Path(turns.uri) / "memories.lance"
    away = place.rename(tmp_path / "away")
    look(one)
    assert [r.outcome for r in told] == [DreamOutcome.FAILED]
    away.rename(place)
    clock.forward(minutes=1)
    look(one)
    assert told[-1].outcome is DreamOutcome.CONSOLIDATED


@pytest.mark.skipif(not LINUX_ROOT, reason="mounting needs root")
def test_on_a_read_only_file_system_the_status_works_and_a_pass_fails_clearly(tmp_path, reopen):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs more rights")
    try:
        store = reopen(place / "store")
        store.add_many(["turn 1", "turn 2"])
        one = Dreamer(store, options=ANY, guard=None)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert one.status().new_rows == 2
        with pytest.raises(StorageError, match=r"dream\.lock cannot be locked"):
            one.once()
        assert one.once(dry_run=True).clusters == 1
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
        assert one.once().outcome is DreamOutcome.CONSOLIDATED
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        assert one.status().last.clusters == 1
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_store_elsewhere_than_in_a_directory_is_refused(turns, tmp_path, reopen):
    remote = reopen(f"file-object-store://{tmp_path}/s")
    with pytest.raises(InvalidInputError, match=r"no local directory.*store.consolidate"):
        Dreamer(remote)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"every": timedelta(0)}, "every="),
        ({"bounds": Bounds(before=(NOW, "a"))}, "goes on by itself"),
        ({"kinds": "odd"}, "no kind"),
        ({"usr": "x"}, "no filter"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(turns, given, said):
    with pytest.raises(InvalidInputError, match=said):
        Dreamer(turns, **given)


# -- triggers -------------------------------------------------------------------------------


def test_an_idle_store_is_consolidated_once(dreamer, turns, clock):
    told = []
    one = dreamer(told=told.append, triggers=Triggers(idle=10 * MINUTE))
    look(one)
    assert told == []
    clock.forward(minutes=10)
    look(one)
    assert [(r.outcome, r.trigger) for r in told] == [
        (DreamOutcome.CONSOLIDATED, "dream: idle 10m")
    ]
    clock.forward(days=1)
    look(one)
    assert len(told) == 1
    turns.add("turn 7")
    look(one)
    assert len(told) == 1
    clock.forward(minutes=10)
    look(one)
    assert len(told) == 2


def test_so_many_new_memories_make_a_pass_due(dreamer, turns):
    told = []
    one = dreamer(told=told.append, triggers=Triggers(new_rows=8))
    look(one)
    turns.add("turn 7")
    turns.retire(turns.list(limit=1)[0].id)
    turns.tag("here")
    look(one)
    assert told == []
    turns.upsert("turn 8", key="k")
    look(one)
    assert [r.trigger for r in told] == ["dream: 8 new rows"]
    turns.add_many([f"turn {n}" for n in range(9, 16)])
    look(one)
    assert len(told) == 1
    turns.upsert("turn 8, again", key="k")
    look(one)
    assert len(told) == 2


def test_a_cadence_makes_a_pass_due_and_a_missed_time_counts_once(dreamer, turns, clock):
    told = []
    one = dreamer(told=told.append, triggers=Triggers(cron="0 3 * * *"))
    look(one)
    clock.forward(hours=3)
    look(one)
    assert [r.trigger for r in told] == ["dream: cron 0 3 * * *"]
    clock.forward(days=1)
    look(one)
    assert len(told) == 1, "nothing was new"
    clock.forward(days=7)
    turns.add_many(["turn 7", "turn 8"])
    later = dreamer(told=told.append, triggers=Triggers(cron="0 3 * * *"))
    look(later)
    look(later)
    assert len(told) == 2


def test_what_is_written_during_a_pass_is_new_after_it(dreamer, turns):
    def writes(members):
        turns.add(f"said meanwhile, version {turns.version}")
        return members[0].content

    one = dreamer(transform=writes, execution=Execution())
    assert one.once().outcome is DreamOutcome.CONSOLIDATED
    assert one.status().new_rows == 3


def test_what_came_and_what_changed_are_both_new(dreamer, turns):
    """A rollback brings one memory back, and changes five."""
    tagged = turns.tag("here")
    gone, *others = [memory.id for memory in turns.list()]
    turns.delete(gone)
    for other in others:
        turns.update(other, importance=0.9)
    one = dreamer()
    one.once(dry_run=True)
    seen = turns.version
    turns.rollback(tagged)
    assert turns.log(limit=1)[0].version == seen + 1
    assert one._news.since(seen) == 6
    turns.upsert("turn a", key="k")
    turns.upsert("turn b", key="k")
    assert one._news.since(seen) == 8


def test_a_batch_that_was_embedded_during_a_pass_is_new_after_it(turns, reopen, embedder, dreamer):
    """Its rows have times from before the pass, and a version after it."""
    inside, go = threading.Event(), threading.Event()

    def slow(texts):
        inside.set()
        assert go.wait(60)
        return embedder.embed(texts)

    patient = FunctionEmbedder(slow, name=embedder.name, dimension=embedder.dimension)
    writer = threading.Thread(
        target=reopen(turns.uri, embedder=patient).add_many, args=(["late a", "late b"],)
    )
    writer.start()
    assert inside.wait(60)
    one = dreamer()
    one.once()
    go.set()
    writer.join(60)
    assert one.status().new_rows == 2


def test_a_pass_that_ended_at_its_bounds_is_gone_on_with(dreamer, turns, clock):
    told = []
    one = dreamer(
        told=told.append,
        triggers=Triggers(idle=10 * MINUTE),
        bounds=Bounds(max_clusters=1, max_rows=100),
    )
    for _ in range(8):
        clock.forward(minutes=11)
        look(one)
    assert [r.clusters for r in told] == [1] * 3
    assert [bool(r.cut) for r in told] == [True, True, False]
    assert turns.count() == 3
    assert not one.status().unfinished


def test_passes_go_down_to_older_memories_while_bounds_cut_them(dreamer, empty, clock):
    """Six old near-duplicates, all of one moment, lie below thirty newer memories."""
    empty.add_many([" ".join(words) for words in permutations(("red", "tea", "hot"))])
    empty.add_many([f"{word} {word[::-1]}" for word in WORDS])
    told = []
    one = dreamer(
        empty,
        options=ConsolidateOptions(min_similarity=0.99, min_size=6),
        told=told.append,
        triggers=Triggers(idle=MINUTE),
        bounds=Bounds(max_rows=20),
    )
    for _ in range(9):
        clock.forward(minutes=2)
        look(one)
    assert [(r.outcome, r.plan.selected, r.clusters) for r in told] == [
        (DreamOutcome.NOTHING, 20, 0),
        (DreamOutcome.CONSOLIDATED, 16, 1),
    ]
    assert (one.status().unfinished, one.status().new_rows) == (False, 0)
    empty.add("the sky is grey")
    clock.forward(minutes=2)
    look(one)
    assert told[-1].plan.selected == 20
    assert not one.status().unfinished, "what is below was looked at before"


def test_each_memory_of_one_moment_is_considered_once_on_the_way_down(dreamer, empty, clock):
    empty.add_many([{"content": word, "id": f"id {n:02}"} for n, word in enumerate(WORDS)])
    asked = []
    one = dreamer(
        empty,
        options=ConsolidateOptions(by="window", max_size=7),
        transform=lambda members: asked.append([m.id for m in members]),
        triggers=Triggers(idle=MINUTE),
        bounds=Bounds(max_rows=7),
    )
    for _ in range(9):
        clock.forward(minutes=2)
        look(one)
    assert asked == [
        [f"id {n:02}" for n in range(start, min(start + 7, 30))] for start in range(0, 30, 7)
    ]


def test_new_memories_and_older_ones_take_turns(dreamer, empty, clock):
    empty.add_many([{"content": word, "id": f"old {n:02}"} for n, word in enumerate(WORDS)])
    asked = []
    one = dreamer(
        empty,
        options=ConsolidateOptions(by="window", max_size=20),
        transform=lambda members: asked.append(members[-1].id),
        bounds=Bounds(max_rows=10),
    )
    for number in range(4):
        one.once()
        clock.forward(days=2)
        empty.add_many([{"content": f"{number}{n}", "id": f"new {number}{n}"} for n in range(2)])
    assert asked == ["old 09", "old 19", "old 05", "new 01", "new 11", "old 29"]
    assert not one.status().unfinished
    assert one.status().new_rows == 4


def test_a_gap_that_bounds_left_between_two_passes_is_looked_at(dreamer, empty, clock):
    """More memories come at once than a pass considers."""
    empty.add_many([{"content": word, "id": f"old {n}"} for n, word in enumerate(WORDS[:4])])
    asked = []
    one = dreamer(
        empty,
        options=ConsolidateOptions(by="window"),
        transform=lambda members: asked.append(members[-1].id),
        triggers=Triggers(idle=MINUTE),
        bounds=Bounds(max_rows=5),
    )
    one.once()
    clock.forward(days=2)
    empty.add_many([{"content": word, "id": f"new {n}"} for n, word in enumerate(WORDS[4:13])])
    for _ in range(9):
        clock.forward(minutes=2)
        look(one)
    assert asked == ["old 3", "new 4", "new 8", "old 3"]


def test_a_bounded_pass_that_changes_nothing_is_not_made_again(dreamer, clock):
    told = []
    one = dreamer(
        told=told.append,
        transform=lambda members: None,
        triggers=Triggers(idle=MINUTE),
        bounds=Bounds(max_rows=4),
    )
    for _ in range(5):
        clock.forward(minutes=2)
        look(one)
    assert [(r.outcome, r.plan.selected) for r in told] == [
        (DreamOutcome.NOTHING, 4),
        (DreamOutcome.NOTHING, 2),
    ]
    assert not one.status().unfinished


def test_dreamers_of_other_scopes_and_filters_have_their_own_last_pass(dreamer, turns):
    for user in ("ann", "bob"):
        turns.add_many([{"content": f"{user} says {n}", "user": user} for n in range(4)])
    ann = dreamer(turns.scoped(user="ann"))
    assert ann.once().clusters == 2
    assert dreamer(user="ann").status().last == ann.status().last
    assert ann.status().about == 'main user="ann"'
    assert dreamer(turns.scoped(user="bob")).status().last is None
    assert dreamer(turns.scoped(user="bob")).status().new_rows == 4
    assert dreamer(kinds={"episodic", "semantic"}).status().about == (
        dreamer(kinds=["semantic", "episodic"]).status().about
    )
    assert dreamer(turns.branch("side")).status().about == "side"


# -- in the background ----------------------------------------------------------------------


def dreaming():
    return [t.name for t in threading.enumerate() if "dream" in t.name or "APS" in t.name]


def test_the_schedule_makes_a_pass_and_leaves_no_thread_behind(dreamer, turns):
    told = []
    with dreamer(
        told=told.append, triggers=Triggers(new_rows=8), every=timedelta(seconds=0.02)
    ) as one:
        assert one.start() is one
        assert dreaming()
        turns.add_many(["turn 7", "turn 8"])
        until(lambda: told)
    assert told[0].outcome is DreamOutcome.CONSOLIDATED
    assert dreaming() == []
    turns.add_many([f"more {n}" for n in range(9)])
    time.sleep(0.1)
    assert len(told) == 1
    with one:
        until(lambda: len(told) == 2)
    assert dreaming() == []


@pytest.mark.parametrize("execution", [Execution(workers=4), Execution(timeout=60.0)])
def test_stop_ends_a_pass_in_the_middle_of_a_slow_transform(dreamer, turns, execution):
    inside, never = threading.Event(), threading.Event()
    told = []

    def slow(members):
        inside.set()
        never.wait(30)
        return members[0].content

    one = dreamer(
        transform=slow, told=told.append, execution=execution, triggers=Triggers(new_rows=1)
    )
    one.start()
    assert inside.wait(60)
    began = time.monotonic()
    one.stop()
    took = time.monotonic() - began
    never.set()
    assert took < 1.0
    assert [r.outcome for r in told] == [DreamOutcome.STOPPED]
    assert one.status().last.outcome is DreamOutcome.STOPPED
    assert turns.count() == 6
    assert one.status().new_rows == 6
    with held(Path(turns.uri) / "dream.lock") as free:
        assert free


def test_stop_need_not_wait(dreamer):
    inside, go = threading.Event(), threading.Event()

    def slow(members):
        inside.set()
        go.wait(60)
        return members[0].content

    one = dreamer(transform=slow, execution=Execution(), triggers=Triggers(new_rows=1)).start()
    assert inside.wait(60)
    began = time.monotonic()
    one.stop(wait=False)
    assert time.monotonic() - began < 1.0
    assert one.status().running is not None
    go.set()
    until(lambda: one.status().running is None)
    assert one.status().last.outcome is DreamOutcome.STOPPED


def test_stop_ends_every_pass_that_was_asked_for(dreamer, reopen, turns):
    """One waits for the other's place, and both were asked of one dreamer."""
    inside = threading.Event()

    def slow(members):
        inside.set()
        time.sleep(0.2)
        return members[0].content

    one = dreamer(transform=slow, execution=Execution(timeout=9.0))
    found = []
    thread = threading.Thread(target=lambda: found.append(one.once()))
    thread.start()
    assert inside.wait(60)
    assert one.once().outcome is DreamOutcome.BUSY
    one.stop()
    thread.join(60)
    assert [r.outcome for r in found] == [DreamOutcome.STOPPED]
    assert one.once().outcome is DreamOutcome.CONSOLIDATED


def test_two_dreamers_in_one_process_make_each_pass_once(dreamer, turns, reopen):
    told = []
    given = {
        "told": told.append,
        "triggers": Triggers(new_rows=1),
        "every": timedelta(seconds=0.02),
    }
    with dreamer(**given), dreamer(reopen(turns.uri), **given):
        until(lambda: told)
        time.sleep(0.2)
    assert [r.outcome for r in told] == [DreamOutcome.CONSOLIDATED]


def test_a_look_costs_next_to_nothing_where_nothing_was_written(dreamer):
    one = dreamer(triggers=Triggers(new_rows=10**6))
    one._look()
    began = time.process_time()
    for _ in range(100):
        one._look()
    assert (time.process_time() - began) / 100 < 0.002


def test_the_file_of_another_release_is_no_obstacle(dreamer, turns):
    (Path(turns.uri) / "dream.json").write_text(json.dumps({"format": 9}))
    assert dreamer().once().outcome is DreamOutcome.CONSOLIDATED


def test_a_dreamer_of_a_store_that_is_gone_says_so(dreamer, turns, tmp_path):
    one = dreamer()
    Path(turns.uri).rename(tmp_path / "away")
    with pytest.raises((NotFoundError, StorageError)):
        one.once(dry_run=True)
