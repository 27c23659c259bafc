"""Durability: what is put on the disk, when, and what becomes of a store that is torn."""

from __future__ import annotations

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lance_memory import (
    Damage,
    DamagedStoreWarning,
    Durability,
    InvalidInputError,
    MemoryStore,
    StorageError,
)
from lance_memory.files import to_disk
from lance_memory.storage import Table
from lance_memory.storage.disk import aside, whole
from lance_memory.storage.disk.referred import referred
from lance_memory.storage.files.readable import manifest_name
from lance_memory.storage.journal import Journal
from lance_memory.storage.upkeep import steps


class Syncs:
    """The syncs that were asked for, with what was there at each; one that is told to fails."""

    def __init__(self):
        self.done = []
        self.manifests = {}
        self.failing = ""
        self.gate = lambda path: None

    def __call__(self, path):
        if self.failing and self.failing in str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        self.gate(path)
        to_disk(path)
        self.done.append(path)
        table = next(
            (p for p in [path, *path.parents] if p.suffix == ".lance" and p.is_dir()), path
        )
        self.manifests.setdefault(path, set(table.glob("_versions/*.manifest")))

    def names(self, root):
        return [str(path.relative_to(root)) for path in self.done if root in path.parents]


@pytest.fixture
def syncs():
    return Syncs()


@pytest.fixture
def power(tmp_path, reopen, syncs, embedder, clock):
    """A store with memories, opened again so that its writes survive a power cut."""
    old = reopen(tmp_path / "store", upkeep=None)
    old.add("one", user="u")
    return durable(tmp_path / "store", syncs, embedder, clock)


def durable(path, syncs, embedder, clock):
    table = Table.open(str(path), durability=Durability.POWER, sync=syncs)
    return MemoryStore(table, embedder=embedder, clock=clock, upkeep=None)


def home(store):
    return Path(store.uri, "memories.lance")


def newest(store):
    return home(store) / manifest_name(store.version)


def test_a_write_is_on_the_disk_before_it_is_acknowledged_data_first(power, syncs):
    power.add("two", user="u")
    syncs.done.clear()
    syncs.manifests.clear()
    power.add("three", user="u")
    data, *rest = syncs.names(home(power))
    transaction = rest[1]
    assert (data[:5], transaction[:14]) == ("data/", "_transactions/")
    assert rest == [
        "data",
        transaction,
        manifest_name(power.version),
        "_transactions",
        "_versions",
    ]
    # While the rows were put on the disk, no version referred to them.
    assert newest(power) not in syncs.manifests[home(power) / data]


def test_the_files_of_other_writers_and_of_upkeep_are_put_on_the_disk_too(power, syncs, reopen):
    power.add("two", user="u")
    other = reopen(power.uri, upkeep=None)
    other.add_many([f"more {n}" for n in range(20)])
    other.update(other.list()[0].id, importance=0.1)
    other.optimize()
    syncs.done.clear()
    power.add("three", user="u")
    snapshot = power._table.latest()
    files = {*referred(snapshot.dataset, home(power))}
    assert files <= {*syncs.done}
    assert len(files) > 10


def test_what_a_compaction_has_written_is_on_the_disk_before_its_version_is(power, syncs):
    """Rows that were acknowledged are in these files from then on."""
    for number in range(4):
        power.add(f"more {number}")
    known = {*home(power).glob("data/*.lance")}
    syncs.done.clear()
    steps.compact(power._table)
    (written,) = {*home(power).glob("data/*.lance")} - known
    assert written in syncs.done
    assert newest(power) not in syncs.manifests[written]


def test_what_is_known_to_be_on_the_disk_is_not_synced_again(power, syncs):
    for number in range(5):
        power.add(f"more {number}")
    files = [path for path in syncs.done if path.is_file()]
    assert len(files) == len({*files})


def test_by_default_a_write_syncs_nothing(tmp_path, reopen, syncs, embedder, clock):
    reopen(tmp_path / "store")
    table = Table.open(str(tmp_path / "store"), sync=syncs)
    store = MemoryStore(table, embedder=embedder, clock=clock)
    store.add("one")
    store.tag("here")
    store.branch("side").add("two")
    assert (table.durability, syncs.done) == (Durability.PROCESS, [])


def test_before_versions_are_removed_the_newest_is_put_on_the_disk_whatever_the_durability(
    tmp_path, reopen, syncs, embedder, clock
):
    reopen(tmp_path / "store", upkeep=None).add_many(["one", "two"])
    table = Table.open(str(tmp_path / "store"), sync=syncs)
    store = MemoryStore(table, embedder=embedder, clock=clock)
    store.optimize(clean_older_than=timedelta(0))
    assert newest(store) in syncs.done
    assert {*referred(table.latest().dataset, home(store))} <= {*syncs.done}


def test_a_new_store_is_on_the_disk_with_every_directory_that_leads_to_it(
    tmp_path, syncs, embedder, clock, reopen
):
    fmt = reopen(tmp_path / "other")._table.format
    path = tmp_path / "deep" / "down" / "store"
    table = Table.create(str(path), fmt, durability=Durability.POWER, sync=syncs)
    table.ensure_text_index()
    MemoryStore(table, embedder=embedder, clock=clock).add("one")
    folders = {path / "memories.lance", path, path.parent, path.parent.parent, tmp_path}
    assert folders <= {*syncs.done}


def test_tags_and_branches_are_on_the_disk_when_they_are_made(power, syncs):
    power.tag("here")
    power.branch("side")
    assert {
        "_refs/tags/here.json",
        "_refs/tags",
        "_refs/branches/side.json",
        "_refs/branches",
        f"tree/side/{manifest_name(power.branch('other').version)}",
        "tree/side/_versions",
        "tree",
    } <= {*syncs.names(home(power))}


def test_an_unknown_durability_is_refused(tmp_path, reopen):
    with pytest.raises(InvalidInputError, match="durability='ram'"):
        reopen(tmp_path / "store", durability="ram")


def test_open_takes_a_durability(tmp_path, reopen):
    store = reopen(tmp_path / "store", durability="power")
    assert store.add("one").outcome == "stored"
    assert store._table.durability is Durability.POWER


def test_in_an_object_store_power_asks_for_nothing(tmp_path, embedder, clock, syncs):
    (tmp_path / "bucket").mkdir()
    uri = f"file-object-store://{tmp_path}/bucket/store"
    MemoryStore.open(uri, embedder=embedder, clock=clock, durability="power").add("one")
    table = Table.open(uri, durability=Durability.POWER, sync=syncs)
    MemoryStore(table, embedder=embedder, clock=clock).add("two")
    assert syncs.done == []


# -- several at once ----------------------------------------------------------------------


def test_threads_that_write_at_once_share_syncs_and_none_is_told_too_early(power, syncs):
    power.add("two")
    syncs.done.clear()
    start, early = power.version, []

    def gate(path):  # the first sync ends when others have committed and wait for the next
        while path.name == "_versions" and power.version < start + 6:
            time.sleep(0.005)

    syncs.gate = gate

    def add(number):
        made = power.add(f"thread {number}").version
        if home(power) / manifest_name(made) not in syncs.done:
            early.append(made)
        return made

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(add, range(24)))
    shared = syncs.done.count(home(power) / "_versions")
    assert (early, len({*versions}), power.count()) == ([], 24, 26)
    assert shared <= 24 - 4


def test_a_failed_sync_is_told_to_all_who_wait_and_never_taken_for_clean_later(power, syncs):
    power.add("two")
    syncs.failing = "_versions"
    told = []

    def add(number):
        with pytest.raises(StorageError, match="is unknown") as raised:
            power.add(f"thread {number}")
        told.append(type(raised.value))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    syncs.failing = ""
    syncs.done.clear()
    with pytest.raises(StorageError, match="open the store again"):
        power.add("later")
    assert (told, syncs.done) == ([StorageError] * 6, [])


def test_a_disk_that_fails_before_the_commit_leaves_the_store_as_it_was(power, syncs):
    power.add("two")
    before = power.version
    syncs.failing = "/data/"
    with pytest.raises(StorageError, match="the disk failed"):
        power.add("three")
    assert (power.version, power.count()) == (before, 2)


def test_a_memory_that_is_there_already_is_on_the_disk_when_that_is_said(power, syncs, reopen):
    power.add("two")
    reopen(power.uri, upkeep=None).add("from a process that syncs nothing", user="u")
    syncs.done.clear()
    assert power.add("from a process that syncs nothing", user="u").outcome == "already_there"
    assert newest(power) in syncs.done


# -- torn stores --------------------------------------------------------------------------


def missing(path):
    path.unlink()


def empty(path):
    path.write_bytes(b"")


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


TEARS = [missing, empty, half, zeros]


@pytest.fixture
def worn(tmp_path, reopen):
    """A store with data, deletions and indices, and what its newest version refers to."""
    store = reopen(tmp_path / "worn", upkeep=None)
    store.add_many([f"memory {number}" for number in range(12)], progress=None)
    store.optimize()
    store.update(store.list()[0].id, importance=0.4)
    return store


@pytest.mark.parametrize("tear", TEARS)
@pytest.mark.parametrize("kind", ["data", "_deletions", "_indices"])
def test_a_torn_file_of_whatever_kind_is_found(worn, kind, tear):
    snapshot = worn._table.latest()
    assert whole.check(snapshot) == []
    files = [p for p in referred(snapshot.dataset, home(worn)) if kind in str(p)]
    tear(files[0])
    found = whole.check(snapshot)
    named = [str(files[0]), str(files[0].parent)]  # an index that lacks a part is named as a whole
    assert len(found) == 1
    assert found[0] in named


@pytest.mark.parametrize("tear", [empty, half, zeros])
def test_a_store_whose_newest_manifest_is_torn_opens_at_the_last_whole_version(worn, reopen, tear):
    last, before = worn.version, worn.to_arrow()
    worn.add("never acknowledged")
    worn.add("nor this")
    for version in (last + 1, last + 2):
        tear(home(worn) / manifest_name(version))
    with pytest.warns(DamagedStoreWarning, match=f"opened at version {last}, because version"):
        store = reopen(worn.uri)
    expected = Damage(
        version=last + 2,
        opened=last,
        files=tuple(f"memories.lance/{manifest_name(v)}" for v in (last + 2, last + 1)),
    )
    assert (store.damage, store.version) == (expected, last)
    assert store._table.by_name().look().dataset.version == last
    assert store.to_arrow() == before
    assert store.search("memory 3", k=1).hits[0].memory.content == "memory 3"


def test_a_torn_store_is_read_and_not_written_to_until_what_is_torn_is_set_aside(worn, reopen):
    last = worn.version
    worn.add("never acknowledged")
    path = home(worn) / manifest_name(worn.version)
    torn = path.read_bytes()[:100]
    path.write_bytes(torn)
    with pytest.warns(DamagedStoreWarning):
        store = reopen(worn.uri)
    refused = [
        lambda: store.add("refused"),
        lambda: store.update(store.list()[0].id, importance=0.1),
        lambda: store.tag("refused"),
        lambda: store.branch("refused"),
        lambda: store.optimize(),
        lambda: store.build_index(),
    ]
    for write in refused:
        with pytest.raises(StorageError, match="lmem doctor --fix"):
            write()
    moved = aside.set_aside(store._table)
    name = f"memories.lance/{manifest_name(last + 1)}"
    assert moved == [name]
    assert Path(store.uri, "torn", name).read_bytes() == torn
    assert (store.damage, store.version, aside.set_aside(store._table)) == (None, last, [])
    assert store.add("goes on").version == last + 1
    assert reopen(store.uri).count() == 13


def test_other_handles_go_on_by_themselves_once_what_is_torn_is_set_aside(worn, reopen):
    worn.add("never acknowledged")
    empty(home(worn) / manifest_name(worn.version))
    with pytest.warns(DamagedStoreWarning):
        one, other = reopen(worn.uri), reopen(worn.uri)
    aside.set_aside(one._table)
    assert other.add("goes on").version == one.version


@pytest.mark.parametrize("tear", TEARS)
def test_torn_rows_of_the_newest_version_take_the_store_back_one(worn, reopen, tear):
    last, known = worn.version, {*worn._table.latest().dataset.get_fragments()}
    worn.add("never acknowledged")
    rows = {p.name for f in known for p in map(Path, (d.path for d in f.metadata.files))}
    fresh = next(
        p for p in home(worn).glob("data/*.lance") if p.name not in rows and newer(p, worn)
    )
    tear(fresh)
    with pytest.warns(DamagedStoreWarning):
        store = reopen(worn.uri)
    assert (store.version, store.damage.files) == (last, (f"memories.lance/data/{fresh.name}",))


def newer(path, store):
    """Whether it is a file of the newest version."""
    fragments = store._table.latest().dataset.get_fragments()
    return path.name in {d.path for f in fragments for d in f.metadata.files}


def test_a_torn_tag_is_damage_and_can_be_set_aside(worn, reopen):
    worn.tag("good")
    worn.tag("bad")
    (home(worn) / "_refs/tags/bad.json").write_bytes(b"")
    with pytest.warns(DamagedStoreWarning, match="a tag or branch is torn"):
        store = reopen(worn.uri)
    assert aside.set_aside(store._table) == ["memories.lance/_refs/tags/bad.json"]
    assert store.tags() == {"good": worn.version}


def test_a_torn_branch_opens_at_its_last_whole_version(worn, reopen):
    side = worn.branch("side")
    last = side.add("on the side").version
    side.add("never acknowledged")
    empty(Path(side._table.home) / manifest_name(side.version))
    with pytest.warns(DamagedStoreWarning):
        again = reopen(worn.uri, branch="side")
    assert (again.version, again.damage.opened, worn.damage) == (last, last, None)
    aside.set_aside(again._table)
    assert again.add("goes on").version == last + 1


def test_a_store_without_a_whole_version_says_so(worn, reopen):
    for path in home(worn).glob("_versions/*.manifest"):
        empty(path)
    with pytest.raises(StorageError, match="restore the store from a backup"):
        reopen(worn.uri)


@pytest.mark.parametrize("content", [b"", b"\0\0\0", b'{"version": 99}', b'{"version": 1}', b'{"v'])
def test_the_engines_hint_of_the_newest_version_may_be_anything(worn, reopen, content):
    before = worn.version
    (home(worn) / "_versions/latest_version_hint.json").write_bytes(content)
    store = reopen(worn.uri)
    assert (store.damage, store.version, store.add("more").version) == (None, before, before + 1)


def test_a_version_that_is_cleaned_up_while_it_is_opened_is_no_damage(worn, reopen):
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            worn.add_many(["a", "b"])
            worn.optimize(clean_older_than=timedelta(0))

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        assert [reopen(worn.uri, upkeep=None).damage for _ in range(30)] == [None] * 30
    finally:
        stop.set()
        thread.join()


def test_a_torn_journal_goes_on_from_its_last_whole_version_by_itself(tmp_path):
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])

    def journal():
        return Journal(str(tmp_path), "notes", schema=schema)

    for name in ("a", "b", "c"):
        journal().append(pa.table({"id": [name]}))
    last = journal().version
    empty(tmp_path / "notes.lance" / manifest_name(last))
    assert sorted(journal().scan()["id"].to_pylist()) == ["a", "b"]
    journal().append(pa.table({"id": ["d"]}))
    assert sorted(journal().scan()["id"].to_pylist()) == ["a", "b", "d"]
    assert (tmp_path / "torn/notes.lance" / manifest_name(last)).is_file()


def test_a_journal_that_is_torn_as_a_whole_begins_anew(tmp_path):
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])
    Journal(str(tmp_path), "notes", schema=schema).append(pa.table({"id": ["a"]}))
    for path in tmp_path.glob("notes.lance/_versions/*.manifest"):
        zeros(path)
    again = Journal(str(tmp_path), "notes", schema=schema)
    assert again.count() == 0
    again.append(pa.table({"id": ["b"]}))
    assert again.scan()["id"].to_pylist() == ["b"]
