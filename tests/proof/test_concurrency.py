"""Many writers at once, in processes, threads and tasks: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from forked import Forked
from proof_kit import contents, keys_held_twice, open_store

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    MemoryStore,
    NotFoundError,
    StorageError,
)
from lance_memory.record.times import utc_now

CHILD = str(Path(__file__).with_name("proof_child.py"))
EVERYTHING = ConsolidateOptions(min_similarity=-1.0, max_dropped=1.0, distinct=False)


def start(verb, *arguments):
    return Forked(CHILD, verb, *arguments)


def together(tmp_path, verb, names, *arguments):
    """Runs a process for each name; none begins before all are ready. Gives what each said."""
    meeting = tmp_path / f"meeting-{verb}-{len(names)}"
    meeting.mkdir()
    processes = [start(verb, tmp_path / "store", meeting, name, *arguments) for name in names]
    try:
        deadline = time.monotonic() + 60
        while len(list(meeting.glob("ready-*"))) < len(names):
            assert time.monotonic() < deadline
            assert not any(process.poll() for process in processes), _errors(processes)
            time.sleep(0.005)
        (meeting / "go").touch()
        said = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert not any(process.returncode for process in processes), said
    return [json.loads(out.splitlines()[-1]) for out, _ in said]


def _errors(processes):
    return [p.communicate()[1] for p in processes if p.poll()]


def test_four_processes_that_add_lose_and_double_nothing(tmp_path):
    """4 writers with 25 adds each: 100 memories, and 100 versions that added one."""
    store = open_store(tmp_path / "store")
    (alone,) = together(tmp_path, "add_own", ["solo"], 25)
    said = together(tmp_path, "add_own", ["w1", "w2", "w3", "w4"], 25)
    found = contents(store)
    ids = [identifier for one in [alone, *said] for identifier in one["ids"]]
    assert len(set(ids)) == 125
    assert found.keys() == set(ids)
    assert [e.inserted for e in store.log()] == [1] * 125
    span = max(one["end"] for one in said) - min(one["start"] for one in said)
    times = [t * 1000 for one in said for t in one["times"]]
    solo = [t * 1000 for t in alone["times"]]
    print(  # noqa: T201 (figures, shown by pytest -s)
        f"\n4 processes: {100 / span:.0f} adds/s, mean {statistics.mean(times):.1f} ms, "
        f"median {statistics.median(times):.1f} ms, worst {max(times):.0f} ms an add; "
        f"alone: {25 / (alone['end'] - alone['start']):.0f} adds/s, "
        f"mean {statistics.mean(solo):.1f} ms, median {statistics.median(solo):.1f} ms"
    )


def test_four_processes_that_add_the_same_double_nothing(tmp_path):
    """Same keys, same contents, same ids, same upserts at once: one live row of each."""
    store = open_store(tmp_path / "store")
    said = together(tmp_path, "add_same", ["w1", "w2", "w3", "w4"], 10)
    rows = contents(store)
    assert sum(one["stored"] for one in said) == 30
    assert not keys_held_twice(rows, utc_now())
    texts = [row["content"] for row in rows.values()]
    assert sorted(t for t in texts if t.startswith("by content")) == sorted(
        f"by content {n}" for n in range(10)
    )
    assert {i for i in rows if i.startswith("id-")} == {f"id-{n}" for n in range(10)}
    live = [r["key"] for r in rows.values() if r["state"] == "active" and r["key"] is not None]
    assert sorted(live) == sorted([f"k{n}" for n in range(10)] + [f"u{n}" for n in range(10)])
    upserted = [r for r in rows.values() if (r["key"] or "").startswith("u")]
    assert len(upserted) == 40
    successors = {r["id"]: r["superseded_by"] for r in upserted}
    assert all(by is None or by in successors for by in successors.values())


def test_of_two_consolidations_of_the_same_sources_one_wins(tmp_path):
    """Both have planned before either commits; the loser gets ConflictError (C10)."""
    store = open_store(tmp_path / "store")
    store.add_many([f"source {n}" for n in range(6)])
    said = together(tmp_path, "consolidate", ["one", "two"])
    assert sorted(one["outcome"] for one in said) == ["conflict", "won"]
    assert store.count() == 1
    assert store.count(states="any") == 7
    (summary,) = store.list()
    sources = store.list(states="superseded")
    assert {m.superseded_by for m in sources} == {summary.id}
    assert {r.target for r in summary.relationships} == {m.id for m in sources}


def test_rows_added_while_a_transform_thinks_survive(tmp_path):
    """They are not among the sources, and stay visible (C11)."""
    store, other = open_store(tmp_path / "store"), open_store(tmp_path / "store")
    store.add_many([f"source {n}" for n in range(4)])

    def slow(cluster):
        other.add("added meanwhile")
        store.add("added meanwhile through the same handle")
        other.optimize(vector_index_from=2)
        return "summary"

    result = store.consolidate(EVERYTHING, slow, guard=None)
    assert result.write.inserted == 1
    assert {m.content for m in store.list()} == {
        "summary",
        "added meanwhile",
        "added meanwhile through the same handle",
    }


@pytest.mark.parametrize("verb", ["update", "retire", "delete", "supersede", "update_and_back"])
def test_a_source_that_was_touched_makes_the_plan_stale(tmp_path, verb):
    """Whatever was done to one source while the transform was thinking: nothing is written."""
    store, other = open_store(tmp_path / "store"), open_store(tmp_path / "store")
    ids = store.add_many([f"source {n}" for n in range(4)]).ids

    def touch():
        if verb == "supersede":
            other.supersede([ids[2]], "another successor")
        elif verb == "update_and_back":
            other.update(ids[2], content="edited")
            other.update(ids[2], content="source 2")
        else:
            getattr(other, verb)(ids[2], **({"content": "edited"} if verb == "update" else {}))

    def slow(cluster):
        touch()
        return "summary"

    with pytest.raises(ConflictError) as caught:
        store.consolidate(EVERYTHING, slow, guard=None)
    assert caught.value.ids == (ids[2],)
    assert all(m.content != "summary" for m in store.list(states="any"))
    assert store.get(ids[0]).state == "active"


def test_twenty_threads_share_one_handle(tmp_path):
    """Adding and searching at once: no error, no lost write (C46)."""
    store = open_store(tmp_path / "store")
    store.add_many([f"apple {n}" for n in range(10)])

    def work(name):
        ids = []
        for n in range(2):
            ids.append(store.add(f"pear {name} {n}", key=f"{name}-{n}").id)
            assert len(store.search("apple", mode="text", k=50)) == 10
            assert store.get(f"{name}-{n}").id == ids[-1]
        return ids

    with ThreadPoolExecutor(20) as pool:
        ids = [identifier for part in pool.map(work, range(20)) for identifier in part]
    assert len(set(ids)) == 40
    assert set(ids) < contents(store).keys()
    assert store.count() == 50


def test_twenty_tasks_share_one_handle(tmp_path):
    """asyncio.to_thread over one handle: no error, no lost write (C46)."""
    store = open_store(tmp_path / "store")

    async def work(name):
        for n in range(2):
            await asyncio.to_thread(store.add, f"pear {name} {n}")
            found = await asyncio.to_thread(store.search, "pear", mode="text", k=200)
            assert len(found) > n

    async def everybody():
        await asyncio.gather(*(work(name) for name in range(20)))

    asyncio.run(everybody())
    assert store.count() == 40
    assert len(store.search("pear", mode="text", k=200)) == 40


def test_threads_that_add_the_same_at_once_store_it_once(tmp_path):
    """Through one handle and through two (C01)."""
    handles = [open_store(tmp_path / "store"), open_store(tmp_path / "store")]
    gate = threading.Barrier(8)

    def work(n):
        stored = 0
        for round in range(6):
            gate.wait()
            stored += handles[n % 2].add(f"the same {round}").outcome == "stored"
        return stored

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 6
    assert sorted(m.content for m in handles[0].list()) == [f"the same {n}" for n in range(6)]


def test_handles_that_write_in_turn_lose_nothing(tmp_path):
    """A, B, A, B ... through all verbs; each sees the other's last word (C47)."""
    a, b = open_store(tmp_path / "store"), open_store(tmp_path / "store")
    ids = []
    for n in range(10):
        for handle, other in ((a, b), (b, a)):
            ids.append(handle.add(f"turn {len(ids)}").id)
            assert other.get(ids[-1]).content == f"turn {len(ids) - 1}"
            other.update(ids[-1], tags=[f"seen-{n}"])
            assert handle.get(ids[-1]).tags == (f"seen-{n}",)
        if n == 5:
            a.optimize(vector_index_from=5)
    assert set(contents(a)) == set(contents(b)) == set(ids)
    assert a.version == b.version


def test_an_add_is_known_again_after_the_table_was_emptied(tmp_path):
    """A handle remembers contents by fragment; emptied tables must not fool it (C01)."""
    a, b = open_store(tmp_path / "store"), open_store(tmp_path / "store")
    for n in range(5):
        a.add(f"warm {n}")
    for n in range(4):
        (a, b)[n % 2].delete([m.id for m in a.list()])
        first = (b, a)[n % 2].add("once more")
        again = a.add("once more")
        assert (again.id, again.outcome) == (first.id, "already_there")
        assert a.count() == 1


def test_short_sessions_leave_the_store_readable(tmp_path):
    """20 sessions (open, add one, exit), a third of them killed: all that was said is there (C48)."""
    path, seed = tmp_path / "store", random.Random(7)
    open_store(path)
    acknowledged, killed = set(), 0

    def session(n):
        process = start("add_one", path, f"session {n}")
        with process:
            process.stdout.readline()
            if n % 3 == 0:
                time.sleep(delays[n])
                process.kill()
            said = process.stdout.readline()
        return json.loads(said)["id"] if said.endswith("\n") else None

    delays = [seed.uniform(0, 0.02) for _ in range(20)]
    with ThreadPoolExecutor(2) as pool:
        for identifier in pool.map(session, range(20)):
            acknowledged |= {identifier} - {None}
            killed += identifier is None
    store = open_store(path)
    found = contents(store)
    assert acknowledged <= found.keys()
    assert len(found) - len(acknowledged) <= killed
    assert len(acknowledged) >= 13
    texts = [row["content"] for row in found.values()]
    assert len(set(texts)) == len(texts)
    assert len(store.search("session", mode="text", k=50)) == len(texts)


def test_a_reader_of_a_cleaned_version_is_told_and_the_store_goes_on(tmp_path):
    """A view whose files went raises NotFoundError or StorageError (C30)."""
    store = open_store(tmp_path / "store")
    ids = [store.add(f"apple {n}").id for n in range(6)]
    store.delete(ids[:3])
    view = store.at(store.version - 1)
    assert view.count() == 6
    store.optimize(vector_index_from=3, clean_older_than=timedelta(0))
    with pytest.raises((NotFoundError, StorageError)) as caught:
        [view.to_arrow(), view.search("apple", k=10)]
    assert "version" in str(caught.value) or "search" in str(caught.value)
    with pytest.raises(NotFoundError):
        store.at(view._pinned.version)
    store.add("apple goes on")
    assert len(store.search("apple", mode="text", k=50)) == 4


def test_upkeep_beside_writers_loses_nothing(tmp_path):
    """Compaction and cleaning again and again while two threads write."""
    store, keeper = open_store(tmp_path / "store"), open_store(tmp_path / "store")
    stop = threading.Event()
    runs, overtaken = [], []

    def keep():
        while not stop.is_set():
            try:
                runs.append(
                    keeper.optimize(vector_index_from=10, clean_older_than=timedelta(0)).version
                )
            except ConflictError:
                overtaken.append(1)

    def write(name):
        ids = []
        for n in range(30):
            ids.append(store.add(f"{name} apple {n}").id)
            if n % 5 == 4:
                store.update(ids[n - 2], content=f"{name} pear {n}")
                store.delete(ids[n - 3])
        return [i for n, i in enumerate(ids) if n % 5 != 1]

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        with ThreadPoolExecutor(2) as pool:
            ids = [i for part in pool.map(write, ("one", "two")) for i in part]
    finally:
        stop.set()
        thread.join()
    print(f"\nupkeep beside two writers: {len(runs)} runs, {len(overtaken)} overtaken")  # noqa: T201
    assert contents(store).keys() == set(ids)
    assert len(store.search("pear", mode="text", k=100)) == 12


def test_many_who_make_the_same_store_at_once_lose_nothing(tmp_path, embedder):
    """The engine's own "create" overwrites what another made a moment before."""
    for turn in range(4):
        path, gate = tmp_path / f"store {turn}", threading.Barrier(6)

        def make(i, path=path, gate=gate):
            gate.wait()
            return MemoryStore.open(path, embedder=embedder).add(f"memory {i}").id

        with ThreadPoolExecutor(6) as pool:
            ids = list(pool.map(make, range(6)))
        store = MemoryStore.open(path, embedder=embedder)
        assert sorted(m.id for m in store.list()) == sorted(ids)
        assert len(store.search("memory 3", mode="text")) > 0
