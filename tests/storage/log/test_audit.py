from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import NotFoundError, Scope
from lance_memory.storage import LogEntry, history
from lance_memory.storage.log.audit import AuditLog

START = datetime(2025, 1, 1, tzinfo=UTC)


def made(version, **told):
    return LogEntry(
        version=version,
        at=START + timedelta(seconds=version),
        operation="add",
        op_id=f"op-{version}",
        inserted=1,
        readable=False,
        **told,
    )


@pytest.fixture
def audit(store):
    return AuditLog.of(store._table)


def clean(store, *numbers):
    """What clean-up does: keep the entries, then remove the versions."""
    table = store._table
    AuditLog.of(table).keep(table.branch, [history.entry(table, n) for n in numbers])
    table.own().dataset.cleanup_old_versions(
        versions=list(numbers), error_if_tagged_old_versions=False
    )


def test_an_audit_that_was_never_written_is_empty(audit):
    assert audit.entries("main") == []
    assert audit.rewrite(lambda _: None) == 0


def test_entries_come_back_whole_newest_first_and_once(audit):
    wide = made(
        3,
        actor="Ana ☃",
        reason="why\n'not'",
        scopes=(Scope(tenant="t", user="u' OR 1=1"),),
        manifest={"clusters": [{"ids": ["a"], "falsy": 0}]},
    )
    many = made(5, scopes=None, upkeep=True, updated=2, deleted=3)
    audit.keep("main", [wide, many])
    audit.keep("main", [many, made(4), wide])
    assert audit.entries("main") == [many, made(4), wide]


def test_branches_do_not_share_entries(audit):
    audit.keep("main", [made(1)])
    audit.keep("x' OR '1'='1", [made(1), made(2)])
    assert audit.entries("main") == [made(1)]
    assert audit.entries("x' OR '1'='1") == [made(2), made(1)]
    assert audit.drop("x' OR '1'='1") == 2
    assert audit.entries("x' OR '1'='1") == []
    assert audit.entries("main") == [made(1)]


def test_a_rewrite_replaces_and_drops_entries_and_leaves_no_byte_of_them(audit, store, tmp_path):
    audit.keep("main", [made(1, reason="SECRET-ONE"), made(2), made(3, reason="SECRET-THREE")])

    def change(entry):
        if entry.version == 1:
            return None
        return replace(entry, reason="") if entry.version == 3 else entry

    assert audit.rewrite(change) == 2
    assert audit.entries("main") == [made(3), made(2)]
    assert audit.rewrite(change) == 0
    files = [f for f in (tmp_path / "store" / "audit.lance").rglob("*") if f.is_file()]
    assert not [f for f in files if b"SECRET" in f.read_bytes()]


def test_the_log_goes_on_where_versions_end(store):
    for i in range(4):
        store.add(f"memory {i}")
    before = store.log(upkeep=True)
    clean(store, 3, 4)
    after = store.log(upkeep=True)
    gone = {3, 4}
    assert after == [replace(e, readable=e.version not in gone) for e in before]
    assert store.log(limit=3) == [e for e in after if not e.upkeep][:3]
    assert [e.version for e in store.at(5).log() if not e.readable] == [4, 3]


def test_entries_that_were_kept_before_a_kill_are_not_shown_twice(store):
    for i in range(3):
        store.add(f"memory {i}")
    before = store.log(upkeep=True)
    table = store._table
    AuditLog.of(table).keep("main", [history.entry(table, 3)])  # and killed here
    assert store.log(upkeep=True) == before
    clean(store, 3)
    assert [e.version for e in store.log(upkeep=True)] == [e.version for e in before]


def test_a_version_that_was_cleaned_up_says_so(store, clock):
    """C30."""
    for i in range(4):
        store.add(f"memory {i}")
    second = next(e for e in store.log() if e.version == 4)
    clean(store, 4)
    with pytest.raises(NotFoundError, match=r"no version 4 of .* any more: it was cleaned up"):
        store.at(4)
    with pytest.raises(NotFoundError, match=r"version 4 of .* was cleaned up and cannot be read"):
        store.at(second.at)
    with pytest.raises(NotFoundError, match=r"there is no version 99 of [^:]*the newest is"):
        store.at(99)
    assert store.at(3).count() == 1
    assert store.at(5).count() == 3


def test_a_moment_is_read_from_whatever_version_has_its_contents(store):
    store.add("a memory")
    then = store.log()[0]
    store.optimize()
    store.add("another")
    clean(store, then.version)
    assert store.at(then.at).count() == 1


def test_a_deleted_branch_leaves_no_entries_to_the_next_of_its_name(store):
    store.add("a memory")
    branch = store.branch("trial")
    for i in range(3):
        branch.add(f"on the branch {i}")
    clean(branch, branch.version - 1)
    assert [e.readable for e in branch.log()] == [True, False, True]
    del branch
    store.delete_branch("trial")
    assert all(e.readable for e in store.branch("trial").log())


def test_the_audit_stays_in_few_files(audit, tmp_path):
    for version in range(150):
        audit.keep("main", [made(version)])
    files = [f for f in (tmp_path / "store" / "audit.lance").rglob("*") if f.is_file()]
    assert len(files) < 400
    assert len(audit.entries("main")) == 150
