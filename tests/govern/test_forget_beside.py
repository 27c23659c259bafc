"""Forget: what lies beside the versions goes too, and nobody who has not committed loses files."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from lance_memory import ConflictError, FunctionEmbedder, MemoryStore, StorageError
from lance_memory import maintenance as verbs
from lance_memory.govern.doctor import treatment
from lance_memory.govern.forget import beside, run
from lance_memory.storage.lock import held
from lance_memory.storage.vector import switch

pytestmark = pytest.mark.disk

SECRET = "the zanzibarine recipe of quxomatic personage"
LOCKS = ("forget.lock", "reembed.lock", "upkeep.lock")


def data_of(store):
    return Path(store.uri) / "memories.lance" / "data"


def aged(path):
    """The file, as old as one that nobody is about to commit, and clean-up leaves alone."""
    then = time.time() - 60
    os.utime(path, (then, then))
    return path


def newest(folder):
    return max(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def model(dimension, *, name="other"):
    return FunctionEmbedder(
        lambda texts: np.ones((len(texts), dimension), np.float32), name=name, dimension=dimension
    )


def taken(store):
    """Which of the locks somebody holds."""
    found = []
    for name in LOCKS:
        try:
            with held(Path(store.uri) / name, wait=0.0):
                pass
        except ConflictError:
            found.append(name)
    return found


def test_torn_files_of_killed_writers_go(store):
    store.add("a note of bob", user="bob")
    one = store.add(SECRET, user="ann")
    whole, data = newest(data_of(store)).read_bytes(), data_of(store)
    torn = [
        data / name for name in (".tmpAb12Cd", "00torn.lance", "00empty.lance", "00zeros.lance")
    ]
    contents = (whole[: len(whole) // 2], whole[:-20], b"", whole[: len(whole) // 2] + b"\0" * 900)
    for path, content in zip(torn, contents, strict=True):
        path.write_bytes(content)
        aged(path)
    assert store.forget(one.id).proof.found == ()
    assert [path.name for path in torn if path.exists()] == []


def test_files_of_an_index_that_nobody_finished_go(store):
    store.add("a note of bob", user="bob")
    one = store.add(SECRET, user="ann")
    store.optimize()
    killed = data_of(store).parent / "_indices" / "00000000-0000-4000-8000-000000000000"
    killed.mkdir()
    words = killed / "part_0_tokens.lance"
    words.write_bytes(b"zanzibarine")
    aged(words)
    branch = store.branch("trial")
    store.forget(one.id)
    assert not words.exists()
    assert branch.search("note", mode="text", k=1).hits[0].memory.content == "a note of bob"


@pytest.mark.parametrize("names", [False, True])
def test_the_proof_looks_at_the_bytes_of_what_cannot_be_read(store, monkeypatch, names):
    one = store.add(SECRET, user="ann")
    remove, written = run.remove_orphans, data_of(store) / ".tmpAb12Cd"

    def and_a_writer_begins(work):
        remove(work)
        written.write_bytes(one.id.encode() * names + b"half a file")

    monkeypatch.setattr(run, "remove_orphans", and_a_writer_begins)
    if not names:
        assert store.forget(one.id).proof.found == ()
        return
    with pytest.raises(StorageError, match="still hold"):
        store.forget(one.id)
    aged(written)
    monkeypatch.setattr(run, "remove_orphans", remove)
    assert store.finish_forgetting().proof.found == ()
    assert not written.exists()


def test_a_clock_that_was_set_back_does_not_hold_it_up(store, monkeypatch):
    one = store.add(SECRET, user="ann")
    orphan = data_of(store) / "00killed.lance"
    orphan.write_bytes(newest(data_of(store)).read_bytes())
    os.utime(orphan, (4_000_000_000, 4_000_000_000))
    monkeypatch.setattr(beside, "_IN_FLIGHT", timedelta(seconds=0.2))
    monkeypatch.setattr(beside, "_LOOK_AGAIN", 0.25)
    looks, orphans = [], beside._orphans

    def counted(work):
        looks.append(work)
        assert len(looks) < 9
        return orphans(work)

    monkeypatch.setattr(beside, "_orphans", counted)
    store.forget(one.id)
    assert not orphan.exists()


def test_vectors_of_an_interrupted_reembedding_go(tmp_path, monkeypatch):
    store = MemoryStore.open(tmp_path / "store", embedder=model(8))
    store.add("a note of bob", user="bob")
    one = store.add(SECRET, user="ann")
    before = set(data_of(store).iterdir())

    def killed(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(switch, "_published", killed)
    with pytest.raises(KeyboardInterrupt):
        store.reembed(model(16, name="new"))
    monkeypatch.undo()
    made = [aged(path) for path in set(data_of(store).iterdir()) - before]
    staged = [path.name for path in tmp_path.glob("store/reembed-*.lance")]
    assert (len(staged), bool(made)) == (1, True)

    assert store.forget(one.id, dry_run=True).staged == tuple(staged)
    assert store.forget(one.id).plan.staged == tuple(staged)
    assert list(tmp_path.glob("store/reembed-*")) == []
    assert [path.name for path in made if path.exists()] == []
    assert store.reembed(model(16, name="new")).rows == 1


def test_nobody_builds_or_reembeds_while_files_of_nobody_are_removed(store, monkeypatch):
    one, seen = store.add(SECRET, user="ann"), []
    monkeypatch.setattr(run, "remove_orphans", lambda _: seen.extend(taken(store)))
    store.forget(one.id)
    assert seen == list(LOCKS)


def test_no_upkeep_runs_while_the_doctor_or_a_reembedding_builds_indices(store, monkeypatch):
    store.add("a note")
    seen = []
    monkeypatch.setattr(treatment, "renew", lambda _: seen.append(taken(store)))
    treatment._rebuild(type("Patient", (), {"table": store._table}))
    monkeypatch.setattr(verbs, "ensure_index", lambda *_, **__: seen.append(taken(store)) or [])
    store.reembed(model(8, name="new"))
    assert seen == [["upkeep.lock"]] * 2


def test_a_path_with_other_characters_gets_no_directory_beside_it(tmp_path):
    store = MemoryStore.open(tmp_path / "ü x" / "store", embedder=model(8))
    one = store.add(SECRET, user="ann")
    store.tag("held")
    held_at = store.tags()
    store.forget(one.id)
    assert store.tags() == held_at
    assert [path.name for path in tmp_path.iterdir()] == ["ü x"]
    assert [path.name for path in (tmp_path / "ü x").iterdir()] == ["store"]
