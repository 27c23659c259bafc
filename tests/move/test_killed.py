"""A kill or Ctrl-C leaves a whole import or none, and no backup that is not one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Forked
from move_child import open_store
from move_kit import rows_of

from lance_memory import BackupSet, MemoryStore

pytestmark = pytest.mark.slow
CHILD = str(Path(__file__).with_name("move_child.py"))


def run(verb, store, other, place, count=1):
    """How it ended, and what it said of errors."""
    process = Forked(CHILD, verb, store, other, place, int(signal.SIGKILL), count)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


@pytest.fixture
def large(tmp_path):
    store = open_store(tmp_path / "large")
    store.add_many([{"content": f"number {n}", "id": f"{n:04d}"} for n in range(500)])
    return store


@pytest.mark.parametrize(("place", "stored"), [("rows", 0), ("commit", 500)])
def test_a_killed_import_is_whole_or_not_there(place, stored, large, tmp_path):
    large.export_store(tmp_path / "archive.zip")
    target = open_store(tmp_path / "target")
    target.add("was here")
    before = target.version
    done = run("import", tmp_path / "target", tmp_path / "archive.zip", place)
    assert done == (-signal.SIGKILL, "")
    assert (target.version, target.count()) == (before + bool(stored), 1 + stored)
    again = target.import_store(tmp_path / "archive.zip")
    assert (again.stored, target.count()) == (500 - stored, 501)


@pytest.mark.parametrize(("place", "count"), [("file", 1), ("file", 9), ("manifest", 1)])
def test_a_killed_backup_is_none_and_the_next_goes_on(place, count, large, tmp_path):
    done = run("backup", tmp_path / "large", tmp_path / "backups", place, count=count)
    assert done == (-signal.SIGKILL, "")
    kept = BackupSet(tmp_path / "backups")
    assert kept.backups() == []
    there = [p for p in (tmp_path / "backups" / "files").rglob("*") if p.is_file()]
    made = large.backup(tmp_path / "backups")
    assert made.copied <= made.backup.files - len(there) + (place == "file")
    assert kept.verify() == []
    kept.restore(tmp_path / "restored")
    assert rows_of(open_store(tmp_path / "restored")).equals(rows_of(large))


def test_ctrl_c_during_an_import_says_that_nothing_was_written(tmp_path):
    source = MemoryStore.open(tmp_path / "source")
    source.add_many([f"number {n}" for n in range(3)])
    source.export_store(tmp_path / "archive")
    target = MemoryStore.open(tmp_path / "target")
    before = target.version
    words = ["lmem", tmp_path / "target", tmp_path / "archive", "rows", int(signal.SIGINT), 1]
    done = subprocess.run(
        [sys.executable, CHILD, *map(str, words)], capture_output=True, text=True, timeout=120
    )
    said = f"interrupted: the store is unchanged, at version {before}\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)
    assert (target.version, target.count()) == (before, 0)
