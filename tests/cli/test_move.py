"""export-store, import-store, archive, backup, backups and restore on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_memories_move_to_another_store(lmem, store, tmp_path):
    made = lmem("export-store", "a.zip", "--user", "ann", "--format", "json").json
    assert (made["memories"], made["states"]) == (4, {"active": 4})
    done = lmem("import-store", "a.zip", "--store", "other")
    assert (done.code, f"made a new store at {tmp_path / 'other'}\n") == (0, done.err)
    assert lmem("list", "--store", "other", "--format", "quiet").out == (
        lmem("list", "--user", "ann", "--format", "quiet").out
    )
    again = lmem("import-store", "a.zip", "--store", "other", "--format", "json").json
    assert (again["stored"], again["already_there"]) == (0, 4)


def test_a_dry_run_leaves_nothing_behind(lmem, store, tmp_path):
    lmem("export-store", "a.zip")
    done = lmem("import-store", "a.zip", "--store", "other", "--dry-run")
    assert (done.code, "stored         6" in done.out) == (0, True)
    assert done.err == "dry run: nothing was written\n"
    outside = lmem("import-store", "a.zip", "--store", "other", "--user", "zz")
    assert (outside.code, outside.err) == (0, "nothing was written\n")
    assert "outside the scope  6" in outside.out
    assert not (tmp_path / "other").exists()
    assert lmem("export-store", "b.zip", "--dry-run").err == "dry run: nothing was written\n"
    assert not (tmp_path / "b.zip").exists()


def test_an_import_that_fails_makes_no_store(lmem, store, tmp_path):
    lmem("export-store", "a")
    file = tmp_path / "a" / "memories-00000.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    done = lmem("import-store", "a", "--store", "other")
    assert (done.code, "memories-00000.parquet is damaged: it has" in done.err) == (1, True)
    assert not (tmp_path / "other").exists()


def test_failures_have_their_exit_codes(lmem, store):
    lmem("export-store", "a.zip")
    lmem("update", "k0", "--importance", "0.9")
    for words, code, message in (
        (["import-store", "a.zip"], 4, "import with --on-conflict skip"),
        (["import-store", "nothing"], 3, "there is no archive at"),
        (["import-store", "memory"], 1, "is no archive"),
        (["import-store", "a.zip", "--on-conflict", "win"], 2, "'refuse', 'skip', 'fresh'"),
        (["export-store", "a.zip"], 2, "something is at"),
        (["archive", "x.jsonl", "--yes"], 2, "without a scope"),
        (["archive", "x.jsonl", "--user", "bob"], 2, "no terminal to ask on"),
        (["backups", "nothing"], 3, "there are no backups at"),
        (["restore", "nothing", "new"], 3, "there are no backups at"),
        (["backup", "memory/inside"], 2, "inside the store"),
        (["archive", "a.csv", "--user", "bob", "--yes"], 2, "ends like a file of another kind"),
        (["checkout", "start", "s3://bucket/x"], 2, "another kind of place"),
    ):
        done = lmem(*words)
        assert (done.code, message in " ".join(done.err.split())) == (code, True), done.err


def test_old_memories_are_archived(lmem, store):
    words = ("archive", "old.jsonl", "--user", "ann", "--until", "2025-01-03")
    planned = lmem(*words, "--dry-run", "--format", "json")
    assert (planned.json["memories"], Path("old.jsonl").exists()) == (2, False)
    done = lmem(*words, stdin="y\n", terminal=True)
    assert "2 memories retired" in " ".join(done.out.split())
    lines = Path("old.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["key"] for line in lines) == ["k0", "k1"]
    assert len(lmem("list", "--user", "ann", "--format", "jsonl").lines) == 2
    assert "nothing matches" in lmem(*words, "--yes").out.replace("old.jsonl", "x.jsonl")


@pytest.fixture
def backed_up(lmem, store):
    return [lmem("backup", "b", "--format", "quiet").out.strip() for _ in range(2)]


def test_a_backup_is_listed_checked_and_restored(lmem, backed_up, tmp_path):
    first, second = backed_up
    assert lmem("backups", "b", "--format", "quiet").out.split() == [second, first]
    checked = lmem("backups", "b", "--verify")
    assert (checked.code, checked.err) == (0, "every file is as it was\n")
    lmem("delete", "k0", "--yes")
    for number, at in enumerate(([], ["--at", first], ["--at", "2999-01-01"])):
        place = tmp_path / f"r{number}"
        done = lmem("restore", "b", place, *at, "--format", "json").json
        assert done["backup"]["name"] == (first if first in at else second)
        assert len(lmem("list", "--store", place, "--format", "jsonl").lines) == 5
        assert lmem("tag", "--store", place, "--format", "json").json == {"start": 3}
    early = lmem("restore", "b", "r9", "--at", "2000-01-01")
    assert (early.code, "no backup from before 2000-01-01T00:00:00+00:00" in early.err) == (3, True)
    assert not (tmp_path / "r9").exists()


def test_removing_backups_asks_first(lmem, backed_up):
    refused = lmem("backup", "b", "--keep-last", "1")
    assert (refused.code, "no terminal to ask on" in refused.err) == (2, True)
    planned = lmem("backup", "b", "--keep-last", "2", "--dry-run", "--format", "json").json
    assert [b["name"] for b in planned["backups_to_remove"]] == [backed_up[0]]
    assert len(lmem("backups", "b", "--format", "quiet").out.split()) == 2
    done = lmem("backup", "b", "--keep-last", "2", "--yes", "--format", "json").json
    assert done["removed"] == [backed_up[0]]


def test_damage_is_exit_code_1(lmem, backed_up, tmp_path):
    file = max((tmp_path / "b" / "files").rglob("*"), key=lambda p: p.stat().st_size * p.is_file())
    file.write_bytes(b"x" * file.stat().st_size)
    done = lmem("backups", "b", "--verify")
    assert (done.code, f"{file.name} is damaged: its SHA-256 is another" in done.err) == (1, True)
    assert lmem("restore", "b", "r").code == 1
    mended = lmem("backup", "b", "--verify")
    assert (mended.code, lmem("backups", "b", "--verify").code) == (0, 0), mended.err


def test_a_damaged_manifest_is_named_and_fails_verification_alone(lmem, backed_up, tmp_path):
    first, second = backed_up
    with (tmp_path / "b" / "backups" / f"{first}.json").open("a") as file:
        file.write("x")
    for words, code in (
        (["backups", "b"], 0),
        (["backups", "b", "--verify"], 1),
        (["backup", "b"], 0),
        (["backup", "b", "--verify"], 1),
        (["restore", "b", "r"], 0),
    ):
        done = lmem(*words, "--format", "quiet")
        assert (done.code, bool(done.out)) == (code, True)
        label = "error" if code else "warning"
        assert f"{label}: {tmp_path / 'b' / 'backups' / first}.json is damaged" in done.err
        assert "until another copy of this file is put there, or it is removed" in done.err
    assert second in lmem("backups", "b", "--format", "quiet").out.split()


ENDING = """
import atexit, os, signal, sys
from lmem.main import main

def press():
    os.kill(os.getpid(), signal.SIGINT)

def waiting(store, timeout=None):
    press()
    return whole(store, timeout)

if sys.argv.pop(1) == "upkeep":
    from lance_memory import MemoryStore
    whole, MemoryStore.wait_for_upkeep = MemoryStore.wait_for_upkeep, waiting
code = main()
press()
atexit.register(press)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("when", "words", "code"),
    [
        ("end", ["list", "--format", "quiet"], 0),
        ("end", ["get", "nothing"], 3),
        ("upkeep", ["retire", "k0", "--yes"], 0),
    ],
)
def test_ctrl_c_after_the_answer_changes_nothing(when, words, code, store, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ENDING, when, *words, "--store", str(tmp_path / "memory")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, "interrupted" in done.stderr) == (code, False), done.stderr


def test_an_export_of_nothing_says_so(lmem, store):
    done = lmem("export-store", "none.zip", "--user", "nobody", "--format", "json")
    assert (done.code, done.json["memories"]) == (0, 0)
    assert done.err == "note: nothing matches; the archive is empty\n"
    tried = lmem("export-store", "more.zip", "--user", "nobody", "--dry-run")
    assert "note: nothing matches; the archive would be empty\n" in tried.err


def test_a_moment_that_is_none_is_told_as_such(lmem, moved, tmp_path):
    done = lmem("restore", moved["BACKUPS"], "new", "--at", "tomorrow")
    assert (done.code, (tmp_path / "new").exists()) == (3, False)
    assert "--at 'tomorrow' is no time, and no backup has such a name; write a time" in done.err


def test_unretire_by_filter_is_shown_and_confirmed(lmem, store, ids):
    """By name it is not: that is what was asked for."""
    looked = lmem("unretire", "--user", "bob", "--dry-run", "--format", "quiet")
    assert (looked.code, looked.out) == (0, f"{ids[5]}\n")
    refused = lmem("unretire", "--user", "bob")
    assert (refused.code, "not confirmed" in refused.err) == (2, True)
    done = lmem("unretire", "--user", "bob", "--yes", "--format", "json")
    assert (done.code, done.json["updated"], done.json["ids"]) == (0, 1, [ids[5]])
    assert "nothing matches" in lmem("unretire", "--user", "bob").err
    assert lmem("unretire", "--tag", "odd").code == 2
