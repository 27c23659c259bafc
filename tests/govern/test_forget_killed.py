"""Forgetting that is killed, and forgetting while others write: real processes."""

from __future__ import annotations

import shutil
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from forget_child import embedder
from forked import Forked

from lance_memory import ConflictError, LanceMemoryError, MemoryStore, NotFoundError

SECRET = "the zanzibarine recipe of quxomatic personage"
CHILD = Path(__file__).parent / "forget_child.py"
KILLS = 8


def opened(path):
    return MemoryStore.open(path, create=False, embedder=embedder())


def child(path, last):
    return Forked(CHILD, path, "ann", last)


def a_store(path):
    """With a tag, a branch, a source of a forgotten successor, and a query; what is to stay."""
    store = MemoryStore.open(path, embedder=embedder(), record_queries=True)
    store.add_many([{"content": f"note {i} of bob", "user": "bob"} for i in range(8)])
    store.optimize()
    gone = [store.add(f"{SECRET} {i}", user="ann").id for i in range(2)]
    store.tag("held")
    store.delete(gone[0])
    store.optimize()
    store.search(SECRET, user="ann")
    store.query_log.close()
    return {m.id for m in store.list(user="bob", states="any")}, gone


def copied(template, path):
    """A copy with a branch of its own: a branch knows where its files are."""
    shutil.copytree(template, path)
    opened(path).branch("trial", "held").add("on the branch", user="bob")


def holding(path, gone):
    needles = [b"zanzibarine", b"quxomatic", *(i.encode() for i in gone)]
    files = [p for p in Path(path).rglob("*") if p.is_file()]
    return [str(p) for p in files if any(n in p.read_bytes() for n in needles)]


@pytest.mark.slow
def test_a_forgetting_that_was_killed_anywhere_is_finished_by_the_next_run(tmp_path):
    kept, gone = a_store(tmp_path / "template")
    copied(tmp_path / "template", tmp_path / "whole")
    whole = child(tmp_path / "whole", 0)
    steps = int(whole.communicate()[0])
    assert whole.returncode == 0

    last = steps * 9 // 10  # another run may take a few steps less
    points = [1 + i * (last - 1) // (KILLS - 1) for i in range(KILLS)]
    for point in points:
        copied(tmp_path / "template", tmp_path / str(point))
    running = {point: child(tmp_path / str(point), point) for point in points}
    begun = 0
    for point, process in running.items():
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        path = tmp_path / str(point)
        store = opened(path)
        mark = store.unfinished_forgetting()
        begun += mark is not None
        if mark is None:  # it had not begun, or was done
            with suppress(NotFoundError):
                store.forget(user="ann")
        else:
            assert set(mark.ids) == set(gone)
            assert store.finish_forgetting().proof.found == ()
        assert store.unfinished_forgetting() is None
        assert {m.id for m in store.list(states="any")} == kept
        assert {m.id for m in store.at("held").list(states="any")} == kept
        assert len(store.branch("other", "held").list(states="any")) == len(kept)
        assert store.queries() == []
        assert holding(path, gone) == []
    assert begun >= KILLS // 2


@pytest.mark.slow
def test_writers_lose_nothing_while_others_are_forgotten(tmp_path):
    kept, gone = a_store(tmp_path / "store")
    written, stop = [], threading.Event()

    def write(number):
        store = opened(tmp_path / "store")
        while not stop.wait(0.02):  # else whoever forgets is overtaken again and again
            try:
                added = store.add(f"note {number} {len(written)}", user=f"writer{number}")
                written.append(added.id)
            except ConflictError:
                continue
        store.wait_for_upkeep()

    threads = [threading.Thread(target=write, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    try:
        done = opened(tmp_path / "store").forget(user="ann")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    store = opened(tmp_path / "store")
    assert done.proof.found == ()
    assert {m.id for m in store.list(states="any")} == kept | set(written)
    assert holding(tmp_path / "store", gone) == []
    assert len(written) > 5


@pytest.mark.slow
def test_who_reads_a_version_that_was_cleaned_up_is_told_so(tmp_path):
    a_store(tmp_path / "store")
    store = opened(tmp_path / "store")
    past = store.at(store.version)
    opened(tmp_path / "store").forget(user="ann")
    with pytest.raises(LanceMemoryError, match="cleaned up"):
        past.list(states="any")
