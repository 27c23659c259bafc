"""Damage that no power cut has done costs no version; what is set aside takes its names with it."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lance_memory import DamagedStoreWarning, StorageError
from lance_memory.storage import indices
from lance_memory.storage.disk import aside, whole
from lance_memory.storage.engine import lance
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.journal import Journal
from lance_memory.storage.lock import held
from lance_memory.storage.upkeep import steps


@pytest.fixture
def long_ago(monkeypatch):
    """Every version but the newest was made long before it."""
    monkeypatch.setattr(whole, "UNWRITTEN", timedelta(microseconds=-1))


@pytest.fixture
def grown(tmp_path, reopen):
    """Six memories, each in a file and a version of its own."""
    store = reopen(tmp_path / "store", upkeep=None)
    for number in range(6):
        store.add(f"memory {number}", key=f"k{number}")
    return store


def home(store):
    return Path(store.uri, "memories.lance")


def cut(path):
    path.write_bytes(path.read_bytes()[:-40])


def data(store):
    """Its data files, oldest first."""
    return sorted(home(store).glob("data/*.lance"), key=lambda path: path.stat().st_mtime_ns)


def torn(store, reopen):
    with pytest.warns(DamagedStoreWarning):
        return reopen(store.uri, upkeep=None)


@pytest.mark.parametrize(
    ("harm", "code"), [(cut, "damaged_file"), (Path.unlink, "missing_file")], ids=["cut", "missing"]
)
def test_an_old_file_that_is_damaged_takes_no_version_back(grown, reopen, long_ago, harm, code):
    indices.create_missing(grown._table.own())  # else every look for a memory reads all files
    steps.fold(grown._table)
    newest, file, sound = grown.version, data(grown)[1], grown.get("k4").id
    harm(file)
    store = reopen(grown.uri, upkeep=None)
    assert (store.version, store.damage, aside.set_aside(store._table)) == (newest, None, [])
    found = [one for one in store.doctor().findings if one.code == code]
    assert [(one.severity, one.fixable, one.count) for one in found] == [("error", False, 1)]
    assert found[0].sample[0].startswith(f"memories.lance/data/{file.name} (of ")
    assert store.get(sound).content == "memory 4"
    made = store.add("goes on")
    assert (made.version, store.get(made.id).content) == (newest + 1, "goes on")
    with pytest.raises(StorageError, match=file.name):
        store.list()


def test_a_store_of_which_no_version_is_whole_opens_at_the_newest(grown, reopen):
    grown.optimize(clean_older_than=timedelta(0))
    cut(max(data(grown), key=lambda path: path.stat().st_size))
    store = reopen(grown.uri, upkeep=None)
    assert (store.version, store.damage) == (grown.version, None)
    assert store.doctor().findings[0].code == "damaged_file"


def test_the_last_write_that_is_torn_costs_one_version_however_old_the_one_before(
    grown, reopen, long_ago, monkeypatch
):
    monkeypatch.setattr(whole, "UNWRITTEN", timedelta(0))
    newest = grown.version
    cut(data(grown)[-1])
    assert torn(grown, reopen).version == newest - 1


def test_what_versions_were_between_two_that_are_there_is_not_given_up_unseen(
    grown, reopen, monkeypatch
):
    monkeypatch.setattr(whole, "UNWRITTEN", timedelta(0))
    newest = grown.version
    grown.tag("early", newest - 3)
    grown._table.own().dataset.cleanup_old_versions(
        versions=[newest - 1, newest - 2], error_if_tagged_old_versions=False
    )
    cut(data(grown)[-2])
    store = reopen(grown.uri, upkeep=None)
    assert (store.version, store.damage) == (newest, None)


def test_the_finding_says_what_is_moved_and_that_it_may_have_been_acknowledged(grown, reopen):
    newest = grown.version
    for number in (newest, newest - 1):
        (home(grown) / manifest_name(number)).write_bytes(b"")
    (found,) = [one for one in torn(grown, reopen).doctor().findings if one.code == "torn"]
    assert f"versions {newest - 1} to {newest}, and the tags and branches on them" in found.advice
    assert "acknowledged writes may be among them" in found.advice


def test_tags_and_branches_on_versions_that_are_set_aside_go_with_them(grown, reopen):
    newest = grown.version
    grown.tag("kept", newest - 2)
    grown.tag("gone")
    side = grown.branch("side")
    side.add("on the side")
    side.tag("on-side")
    for number in (newest, newest - 1):
        (home(grown) / manifest_name(number)).write_bytes(b"")
    store = torn(grown, reopen)
    moved = aside.set_aside(store._table)
    assert moved == [
        *(f"memories.lance/{manifest_name(number)}" for number in (newest, newest - 1)),
        "memories.lance/_refs/branches/side.json",
        "memories.lance/_refs/tags/gone.json",
        "memories.lance/tree/side/_versions",
        "memories.lance/_refs/tags/on-side.json",
    ]
    assert all(Path(store.uri, "torn", name).exists() for name in moved)
    store.add_many(["other", "contents"])
    store.add("again")
    assert (store.version, store.tags(), store.branches()) == (newest, {"kept": newest - 2}, [])
    assert store.branch("side").count() == store.count()


def test_a_journal_that_another_opener_mended_meanwhile_is_left_as_it_is(tmp_path):
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])

    def journal():
        return Journal(str(tmp_path), "notes", schema=schema)

    for name in ("a", "b"):
        journal().append(pa.table({"id": [name]}, schema))
    manifest = tmp_path / "notes.lance" / manifest_name(journal().version)
    manifest.write_bytes(b"")
    found = []
    opener = threading.Thread(target=lambda: found.append(journal().scan()["id"].to_pylist()))
    with held(tmp_path / "notes.mending.lock", wait=0):
        opener.start()
        opener.join(0.5)  # it has seen what is torn, and waits
        assert opener.is_alive()
        manifest.unlink()
        lance.write_dataset(
            pa.table({"id": ["c"]}, schema), str(tmp_path / "notes.lance"), mode="append"
        )
    opener.join()
    assert (sorted(found[0]), manifest.exists()) == (["a", "c"], True)


def test_a_store_whose_manifests_are_all_damaged_is_named(grown, reopen):
    for path in home(grown).glob("_versions/*.manifest"):
        path.write_bytes(b"")
    with pytest.raises(StorageError, match="the manifests are damaged"):
        reopen(grown.uri)
