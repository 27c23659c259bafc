"""backup and restore: the whole store comes back, and only new files are copied."""

from __future__ import annotations

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta

import pytest
from move_kit import flip, modes, rows_of, sign

from lance_memory import (
    BackupSet,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    Retain,
    ScopeError,
    StorageError,
    StoreFormatError,
)
from lance_memory.move.backup.target import Target

ONE = Retain(last=1, hours=0, days=0, weeks=0, months=0)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "backups of it"


def files_of(target):
    return sorted(p for p in (target / "files").rglob("*") if p.is_file())


def object_of(target, name):
    """The file that holds what the newest backup has under a name that contains this."""
    newest = max((target / "backups").iterdir())
    files = json.loads(newest.read_text())["files"]
    (sha256, _), *_ = [found for path, found in sorted(files.items()) if name in path]
    return target / "files" / sha256[:2] / sha256


def test_everything_comes_back_elsewhere_and_goes_on(tmp_path, reopen, target):
    """Versions, tags, branches, and branches of branches, when the store itself is gone."""
    store = reopen(tmp_path / "store", record_queries=True)
    store.add_many([{"content": "a b", "key": "k"}, "c d", "e f"])
    store.search("a b")
    start = store.tag("start")
    side = store.branch("side/one")
    side.add("on the branch")
    there = side.tag("there")
    deep = side.branch("deep")
    deep.add("deeper")
    store.optimize(vector_index_from=3)
    side.optimize()
    store.retire("k", reason="old")
    store.backup(target)
    versions = {e.version: rows_of(store.at(e.version)) for e in store.log(upkeep=True)}
    branches = {"side/one": rows_of(side), "deep": rows_of(deep)}
    shutil.move(tmp_path / "store", tmp_path / "gone")

    place = tmp_path / "another place" / "with a name of another length"
    done = BackupSet(target).restore(place)
    made = reopen(place, create=False)
    assert (done.uri, made.version, made.tags()) == (str(place), max(versions), {"start": start})
    assert {v: rows_of(made.at(v)) for v in versions} == versions
    for name, rows in branches.items():
        branch = reopen(place, create=False, branch=name)
        assert rows_of(branch).equals(rows)
        branch.add(f"goes on at {name}")
        branch.optimize()
        assert branch.search("goes", mode="text").hits
    assert reopen(place, branch="side/one").tags() == {"there": there}
    assert [q.query for q in made.queries()] == ["a b"]
    assert [e.operation for e in made.log()] == ["retire", "add"]
    made.add("on main")
    made.optimize(clean_older_than=timedelta(0))
    assert made.count() == 3


def test_only_new_files_are_copied(full, target):
    first = full.backup(target)
    assert (first.copied, first.copied_bytes) == (len(files_of(target)), first.backup.bytes)
    again = full.backup(target)
    assert (again.copied, again.backup.files) == (0, first.backup.files)
    full.add("one more", user="ann")
    more = full.backup(target)
    assert 0 < more.copied <= 3
    assert more.copied_bytes < more.backup.bytes / 4
    assert [b.version for b in BackupSet(target).backups()] == [6, 5, 5]


def test_each_backup_is_the_store_as_it_was(full, target, tmp_path, reopen, clock):
    one = full.backup(target).backup
    moment = clock.forward(minutes=5)
    before = rows_of(full)
    full.add("later")
    two = full.backup(target).backup
    kept = BackupSet(target)
    for number, at in enumerate((one.name, one.name[:21], moment)):
        done = kept.restore(tmp_path / f"r{number}", at=at)
        assert done.backup == one
        assert rows_of(reopen(done.uri)).equals(before)
    assert kept.restore(tmp_path / "newest").backup == two
    for at in ("2025", "nothing", datetime(2020, 1, 1, tzinfo=UTC)):
        with pytest.raises(NotFoundError, match=one.name):
            kept.restore(tmp_path / "never", at=at)
    with pytest.raises(InvalidInputError, match="something is at"):
        kept.restore(tmp_path / "newest")


def test_a_backup_is_whole_while_others_write_and_clean(tmp_path, reopen, target):
    store = reopen(tmp_path / "store", record_queries=True)
    stop = threading.Event()

    def write():
        writer = reopen(tmp_path / "store", record_queries=True)
        for number in range(200):
            writer.add(f"number {number}", id=f"{number:03d}")
            writer.search(f"number {number}", mode="text")
            if number % 4 == 3:
                writer.optimize(index=None, clean_older_than=timedelta(0))
            if stop.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        made = [store.backup(target).backup for _ in range(4)]
    finally:
        stop.set()
        thread.join()
    for number, one in enumerate(made):
        done = BackupSet(target).restore(tmp_path / f"r{number}", at=one.name)
        found = reopen(done.uri)
        ids = sorted(found.to_arrow(columns=["id"])["id"].to_pylist())
        assert ids == [f"{n:03d}" for n in range(len(ids))]
        assert (found.version, len(ids)) == (one.version, one.memories)
        found.queries()


def test_damage_is_found_named_and_mended(full, target, tmp_path):
    full.backup(target)
    file = object_of(target, "/data/")
    flip(file)
    (found,) = BackupSet(target).verify()
    name = file.relative_to(target).as_posix()
    assert (found.file, found.reason) == (name, "its SHA-256 is another")
    assert found.paths[0].startswith("memories.lance/data/")
    with pytest.raises(StorageError, match=file.name):
        BackupSet(target).restore(tmp_path / "r")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backups of it", "store"]
    mended = full.backup(target, verify=True)
    assert (mended.copied, mended.damaged, BackupSet(target).verify()) == (1, (), [])


def test_what_cannot_be_mended_is_told(full, target):
    first = full.backup(target).backup
    file = object_of(target, "/data/")
    full.optimize(clean_older_than=timedelta(0), index=None)
    file.unlink()
    done = full.backup(target, verify=True)
    assert [(d.file, d.backups) for d in done.damaged] == [
        (file.relative_to(target).as_posix(), (first.name,))
    ]


def test_a_damaged_manifest_is_named_and_all_else_goes_on(full, target, tmp_path, clock):
    old = full.backup(target).backup
    manifest = target / "backups" / f"{old.name}.json"
    whole = manifest.read_text()
    manifest.write_text(whole + "x")
    before = files_of(target)
    full.add("later", user="ann")
    full.optimize(index=None, clean_older_than=timedelta(0))
    clock.forward(minutes=1)
    done = full.backup(target, keep=ONE)
    kept = BackupSet(target)
    assert (done.removed, done.removed_bytes, kept.surplus(ONE, now=clock())) == ((), 0, [])
    assert {*before} <= {*files_of(target)}
    assert kept.backups() == [done.backup]
    for found in (done.damaged, kept.damaged(), kept.verify()):
        assert [(d.file, d.backups) for d in found] == [(f"backups/{manifest.name}", (old.name,))]
        assert str(manifest) in found[0].reason
    assert kept.restore(tmp_path / "newest").backup == done.backup
    with pytest.raises(StorageError, match=manifest.name):
        kept.restore(tmp_path / "never", at=old.name)
    manifest.write_text(whole)
    assert ([*kept.verify()], kept.backups()) == ([], [done.backup, old])
    assert done.backup.sequence > old.sequence


def test_rotation_keeps_what_is_asked_for(full, target, clock):
    for day in range(3):
        full.add(f"of day {day}")
        full.optimize(index=None, clean_older_than=timedelta(0))
        full.backup(target)
        clock.forward(days=1)
    kept = BackupSet(target)
    names = [b.name for b in kept.backups()]
    two_days = Retain(last=1, hours=0, days=2, weeks=0, months=0)
    planned = kept.surplus(two_days, now=clock())
    done = full.backup(target, keep=two_days)
    assert [b.name for b in planned] == list(done.removed) == names[:0:-1]
    assert [b.name for b in kept.backups()] == [done.backup.name, names[0]]
    assert (done.removed_bytes > 0, kept.verify()) == (True, [])
    used = {
        sha
        for m in (target / "backups").iterdir()
        for sha, _ in json.loads(m.read_text())["files"].values()
    }
    assert {p.name for p in files_of(target)} == used


def test_an_interrupted_backup_is_none_and_the_next_goes_on(full, target):
    """Killed before its manifest was written: the files are there, and nothing names them."""
    full.backup(target)
    next((target / "backups").iterdir()).unlink()
    (target / "files" / ".abc.new").write_bytes(b"half a file")
    assert BackupSet(target).backups() == []
    done = full.backup(target)
    assert (done.copied, done.removed_bytes) == (0, 11)
    assert BackupSet(target).verify() == []


def test_one_backup_at_a_time(full, target):
    full.backup(target)
    with Target(target).alone(), pytest.raises(ConflictError, match="another process holds"):
        full.backup(target)


def test_a_target_has_one_stores_backups(full, other, target, tmp_path):
    full.backup(target)
    with pytest.raises(ConflictError, match="of another store"):
        other.backup(target)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    with pytest.raises(StoreFormatError, match="other things"):
        other.backup(tmp_path / "mine")
    with pytest.raises(InvalidInputError, match="inside the store"):
        other.backup(tmp_path / "other" / "backups")
    with pytest.raises(InvalidInputError, match="is a URI"):
        other.backup("s3://bucket/backups")
    with pytest.raises(ScopeError):
        other.scoped(user="ann").backup(target)
    with pytest.raises(NotFoundError, match="no backups"):
        BackupSet(tmp_path / "other").backups()


def test_a_checkout_is_not_backed_up_by_halves(full, target, tmp_path):
    made = full.checkout(full.version, tmp_path / "checkout")
    with pytest.raises(InvalidInputError, match="checked out of another store"):
        made.backup(target)
    assert BackupSet(target).backups() == []


def test_a_copied_store_is_backed_up_whole_and_restored_sound(full, target, tmp_path, reopen):
    """Its branches look for their parent's files where the first store is."""
    side = full.branch("side")
    side.add("on it")
    before = rows_of(side)
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    reopen(tmp_path / "copy").backup(target)
    shutil.rmtree(tmp_path / "store")
    BackupSet(target).restore(tmp_path / "restored")
    assert rows_of(reopen(tmp_path / "restored", branch="side")).equals(before)


def test_backups_are_for_their_owner_alone(full, target, tmp_path):
    full.backup(target)
    BackupSet(target).restore(tmp_path / "restored")
    assert modes(target) == modes(tmp_path / "restored") == ({"0o600"}, {"0o700"})


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "a\\..\\out"])
def test_a_manifest_cannot_write_outside(name, full, target, tmp_path):
    full.backup(target)
    manifest = next((target / "backups").iterdir())
    told = json.loads(manifest.read_text())
    told["files"][name] = next(iter(told["files"].values()))
    sign(manifest, told)
    with pytest.raises(StorageError, match="in it is wrong"):
        BackupSet(target).restore(tmp_path / "deep" / "restored")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backups of it", "store"]


def test_a_link_in_a_target_is_not_followed(full, target, tmp_path):
    full.backup(target)
    file = object_of(target, "/data/")
    shutil.move(file, tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="missing, or a link"):
        BackupSet(target).restore(tmp_path / "restored")


def test_a_restored_branch_never_reads_the_store_it_came_from(full, target, tmp_path, reopen):
    full.branch("side").add("on it")
    full.backup(target)
    manifest = next((target / "backups").iterdir())
    told = json.loads(manifest.read_text())
    assert list(told["bases"].values()) == ["memories.lance"]
    told["bases"] = {}
    told["bases"]["/another/place"] = "memories.lance"
    sign(manifest, told)
    with pytest.raises(StorageError, match="not a directory that the backup's manifest names"):
        BackupSet(target).restore(tmp_path / "restored")


def test_the_last_backup_is_the_last_one_made_whatever_the_clock_said(
    full, target, tmp_path, clock
):
    ahead = full.backup(target).backup
    clock.forward(days=-30)
    last = full.backup(target).backup
    now = clock()
    kept = BackupSet(target)
    assert kept.backups() == [last, ahead]
    assert kept.restore(tmp_path / "r").backup == last
    assert kept.restore(tmp_path / "by then", at=now).backup == last


def test_lost_transaction_files_are_not_needed(full, target, tmp_path, reopen):
    before = rows_of(full)
    shutil.rmtree(tmp_path / "store" / "memories.lance" / "_transactions")
    store = reopen(tmp_path / "store")
    done = store.backup(target)
    assert done.left_out
    assert all("/_transactions/" in name for name in done.left_out)
    BackupSet(target).restore(tmp_path / "restored")
    restored = reopen(tmp_path / "restored")
    assert rows_of(restored).equals(before)
    assert restored.log() == store.log()
    (found,) = [f for f in store.doctor().findings if f.code.startswith("missing")]
    assert (found.code, found.severity) == ("missing_transaction", "note")


def test_a_place_inside_a_store_or_the_backups_is_refused_through_links_too(full, target, tmp_path):
    full.backup(target)
    for real in ("store", target.name):
        (tmp_path / "link").symlink_to(tmp_path / real)
        for place in (tmp_path / real / "x", tmp_path / "link" / "x"):
            with pytest.raises(InvalidInputError, match="is inside the"):
                BackupSet(target).restore(place)
        (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    with pytest.raises(InvalidInputError, match="is inside the store"):
        full.backup(tmp_path / "link" / "backups")


def test_what_is_no_place_moment_or_rule_is_refused(full, target, tmp_path):
    full.backup(target)
    kept = BackupSet(target)
    for call in (
        lambda: full.backup(target, keep=5),
        lambda: full.backup(None),
        lambda: full.export_store(None),
        lambda: kept.restore(tmp_path / "r", at=5),
        lambda: kept.restore(None),
        lambda: kept.restore(tmp_path / "r", at=datetime(2020, 1, 1)),
        lambda: kept.surplus(5, now=datetime.now(UTC)),
        lambda: BackupSet(3),
    ):
        with pytest.raises(InvalidInputError):
            call()


def test_a_damaged_content_of_an_interrupted_backup_is_copied_anew(full, target):
    full.backup(target)
    flip(object_of(target, "/data/"))
    next((target / "backups").iterdir()).unlink()
    assert full.backup(target).copied == 1
    assert BackupSet(target).verify() == []


def test_reading_where_no_backups_are_makes_nothing(tmp_path):
    nowhere = tmp_path / "nowhere"
    kept = BackupSet(nowhere)
    for read in (kept.backups, kept.damaged, kept.verify, lambda: kept.restore(tmp_path / "new")):
        with pytest.raises(NotFoundError, match="there are no backups"):
            read()
    assert list(tmp_path.iterdir()) == []


def test_one_damaged_manifest_leaves_out_its_version_and_no_other(full, target, tmp_path, reopen):
    versions = [entry.version for entry in full.log(upkeep=True)]
    name = f"memories.lance/_versions/{2**64 - 1 - versions[1]}.manifest"
    (tmp_path / "store" / name).write_bytes(b"torn")
    made = reopen(tmp_path / "store", create=False).backup(target)
    assert made.left_out == (name,)
    uri = BackupSet(target).restore(tmp_path / "again").uri
    again = reopen(uri, create=False)
    assert [e.version for e in again.log(upkeep=True) if e.readable] == [
        n for n in versions if n != versions[1]
    ]
