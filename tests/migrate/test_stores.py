"""A store of each earlier schema: it is read as it is, written to by nobody, and migrated."""

from __future__ import annotations

import shutil
import signal

import lance
import pytest
from migrate_kit import EARLIER, STORES, recorded, rows, words_8, words_16

from lance_memory import MemoryStore, StoreFormatError, migrate_store
from lance_memory.migrate import applied
from lance_memory.record.schema import SCHEMA_VERSION
from lance_memory.storage import Table

WRITES = {
    "add": lambda s, p: s.add("a new thing"),
    "add_many": lambda s, p: s.add_many(["one", "two"]),
    "upsert": lambda s, p: s.upsert("a new thing", key="k0"),
    "update": lambda s, p: s.update("00000001", importance=0.9),
    "supersede": lambda s, p: s.supersede("00000001", "better"),
    "retire": lambda s, p: s.retire("00000001"),
    "unretire": lambda s, p: s.unretire("00000003"),
    "delete": lambda s, p: s.delete("00000001"),
    "consolidate": lambda s, p: s.consolidate(user="ann", guard=None),
    "rollback": lambda s, p: s.rollback("start"),
    "revert": lambda s, p: s.revert(10),
    "tag": lambda s, p: s.tag("now"),
    "untag": lambda s, p: s.untag("start"),
    "branch": lambda s, p: s.branch("side"),
    "checkout": lambda s, p: s.checkout(3, p / "copy"),
    "optimize": lambda s, p: s.optimize(),
    "build_index": lambda s, p: s.build_index(),
    "reembed": lambda s, p: s.reembed(words_16()),
}


def opened(path, **options):
    return MemoryStore.open(path, embedder=words_8(), **options)


def files(path):
    return {p: p.stat().st_mtime_ns for p in path.rglob("*") if p.is_file()}


def metadata(path, branch="main"):
    table = Table.open(str(path))
    line = table if branch == "main" else table.on_branch(branch)
    return line.latest()


def other_branch(path):
    """A branch of an earlier schema, which this release makes none of; its id in the engine."""
    lance.dataset(f"{path}/memories.lance").create_branch("trial", 3)


def test_there_is_a_store_of_each_earlier_schema():
    assert [f"schema-{number}" for number in range(1, SCHEMA_VERSION)] == EARLIER


@pytest.mark.parametrize("name", EARLIER)
@pytest.mark.parametrize("create", [True, False])
def test_an_earlier_store_is_read_as_it_was_written(name, create, tmp_path):
    path = shutil.copytree(STORES / name, tmp_path / "store")
    before = files(path)
    store = opened(path, create=create)
    assert rows(store) == recorded(name)
    assert {m.state for m in store.list(states="any")} == {
        *("active", "pending", "superseded", "retired", "contradicted")
    }
    assert store.get("k5").content == "note 5 corrected: the blue kettle is repaired"
    assert store.search("列車", mode="text").hits[0].memory.content == "列車は九時に出ます"
    told = "the red kettle was broken, and then lost"
    (hit,) = store.search(told, mode="vector", k=1)
    assert (hit.memory.content, round(hit.similarity, 5)) == (told, 1.0)
    assert [len(store.at("start").list(states="any")), store.tags()] == [24, {"start": 3}]
    assert len(store.lineage("00000012").successors) == 1
    assert [e.operation for e in store.log(limit=2)] == ["add", "consolidate"]
    asked = ["meeting on friday", "where is the red kettle"]
    assert [recorded_query.query for recorded_query in store.queries()] == asked
    assert files(path) == before


def test_an_earlier_store_is_not_written_to(earlier, tmp_path):
    store = opened(earlier)
    before = files(earlier)
    for verb in WRITES:
        with pytest.raises(StoreFormatError, match=r"has schema version 1.*until `lmem migrate`"):
            WRITES[verb](store, tmp_path)
        assert files(earlier) == before, verb
    assert not (tmp_path / "copy").exists()


def test_a_migration_is_one_version_that_changes_no_memory(earlier):
    before = opened(earlier)
    found, version = rows(before), before.version
    planned = migrate_store(earlier, dry_run=True)
    assert [(s.branch, s.number, s.version) for s in planned.steps] == [("main", 2, None)]
    assert before.version == version
    done = migrate_store(earlier, author="olga")
    assert [(s.branch, s.number, s.version) for s in done.steps] == [("main", 2, version + 1)]
    store = opened(earlier)
    assert (rows(store), store.version) == (found, version + 1)
    (entry,) = store.log(limit=1)
    assert (entry.operation, entry.actor, entry.manifest["migration"]) == ("migrate", "olga", 2)
    assert [one.number for one in applied(metadata(earlier))] == [2]
    for verb in ("add", "retire", "rollback", "tag", "optimize"):
        WRITES[verb](opened(earlier), earlier)


def test_a_migration_that_was_made_is_not_made_again(place):
    before = files(place)
    assert (bool(migrate_store(place, dry_run=True)), migrate_store(place).steps) == (False, ())
    assert files(place) == before


def test_branches_are_migrated_with_main_and_have_its_id(earlier):
    other_branch(earlier)
    with pytest.raises(StoreFormatError, match=r"'trial'.*lmem migrate"):
        opened(earlier, branch="trial").add("a")
    done = migrate_store(earlier)
    assert [(s.branch, s.number) for s in done.steps] == [("main", 2), ("trial", 2)]
    ids = {metadata(earlier, branch).format.store_id for branch in ("main", "trial")}
    assert len(ids) == 1
    opened(earlier, branch="trial").add("on the branch")
    assert opened(earlier, branch="trial").count(states="any") == 25


def test_a_branch_of_a_version_before_a_migration_can_be_migrated_too(store, place):
    early = store.branch("early", "start")
    with pytest.raises(StoreFormatError, match="lmem migrate"):
        early.add("a")
    assert [(s.branch, s.number) for s in migrate_store(place).steps] == [("early", 2)]
    assert opened(place, branch="early").add("a").outcome == "stored"


def test_c31_rolling_back_past_a_migration_works(store, place):
    """C31."""
    before = rows(store.at("start"))
    assert store.rollback("start").operation == "rollback"
    again = opened(place)
    assert rows(again) == before
    assert again._table.latest().format.schema_version == SCHEMA_VERSION
    assert again.add("it writes").outcome == "stored"
    told = "note 20: the red kettle is on the shelf"
    assert again.search(told, k=1).hits[0].memory.content == told


def test_a_handle_from_before_a_migration_says_that_it_is_to_be_opened_again(earlier):
    store = opened(earlier)
    migrate_store(earlier)
    with pytest.raises(StoreFormatError, match="lmem migrate"):
        store.add("a")
    assert store.count(states="any") == 36


def test_a_new_store_has_an_id_and_needs_no_migration(tmp_path):
    for name in ("one", "two"):
        opened(tmp_path / name)
    ids = {metadata(tmp_path / name).format.store_id for name in ("one", "two")}
    assert (len(ids), {len(one) for one in ids}) == (2, {36})
    assert [len(migrate_store(tmp_path / "one").steps), applied(metadata(tmp_path / "one"))] == [
        0,
        (),
    ]


def test_a_checkout_is_a_store_with_an_id_of_its_own(store, place, tmp_path):
    copy = store.checkout(store.version, tmp_path / "copy")
    mine, its = metadata(place).format, metadata(tmp_path / "copy").format
    assert its.store_id not in ("", mine.store_id)
    (entry,) = copy.log(limit=1)
    assert (entry.operation, entry.manifest["of"]) == ("checkout", mine.store_id)


@pytest.mark.slow
def test_two_processes_at_once_migrate_once(earlier, child):
    other_branch(earlier)
    with child("migrate", earlier, 0) as one, child("migrate", earlier, 0) as two:
        for process in (one, two):
            assert process.stdout.readline() == "ready\n"
        for process in (one, two):
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate(timeout=60) for process in (one, two)]
    assert (sum(int(out) for out, _ in told), [err for _, err in told]) == (2, ["", ""])
    for branch in ("main", "trial"):
        assert [one.number for one in applied(metadata(earlier, branch))] == [2]
    assert len({metadata(earlier, b).format.store_id for b in ("main", "trial")}) == 1


@pytest.mark.slow
def test_a_killed_migration_goes_on_where_it_was(earlier, child):
    other_branch(earlier)
    with child("migrate", earlier, 2) as process:
        process.communicate("\n", timeout=60)
    assert process.returncode == -signal.SIGKILL
    found = {b: metadata(earlier, b).format.schema_version for b in ("main", "trial")}
    assert found == {"main": 2, "trial": 1}
    done = migrate_store(earlier)
    assert [(s.branch, s.number) for s in done.steps] == [("trial", 2)]
    assert len({metadata(earlier, b).format.store_id for b in ("main", "trial")}) == 1
