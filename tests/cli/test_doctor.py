"""`lmem doctor`: every format, both exit codes, and what --fix does and does not do."""

from __future__ import annotations

import os

import pytest


@pytest.fixture
def ill(store):
    """The small store with a file that was nobody's for years."""
    file = store / "memories.lance" / "data" / "old.lance"
    file.write_bytes(b"of a killed writer")
    os.utime(file, (1, 1))
    return file


@pytest.mark.parametrize("deep", [[], ["--deep"]])
def test_a_sound_store_is_exit_code_0(lmem, store, deep):
    done = lmem("doctor", *deep, "--format", "json")
    assert (done.code, done.json["sound"], done.json["fixed"]) == (0, True, [])
    assert lmem("doctor", "--format", "quiet").out == "sound\n"


def test_trouble_is_exit_code_1_in_every_format(lmem, ill):
    done = lmem("doctor", "--format", "json")
    assert (done.code, done.json["sound"]) == (1, False)
    first = done.json["findings"][0]
    assert (first["code"], first["severity"], first["count"]) == ("orphans", "warning", 1)
    assert first["sample"] == ["memories.lance/data/old.lance"]
    lines = lmem("doctor", "--format", "jsonl")
    assert (lines.code, lines.lines[0]) == (1, first)
    quiet = lmem("doctor", "--format", "quiet")
    assert (quiet.code, quiet.out) == (1, "orphans\n")
    human = lmem("doctor")
    assert (human.code, human.err) == (1, "")
    assert "1 thing is wrong" in human.out
    assert "memories.lance/data/old.lance" in human.out
    assert "lmem doctor --fix" in human.out


def test_a_fix_is_shown_confirmed_and_done(lmem, ill):
    looked = lmem("doctor", "--fix", "--dry-run", "--format", "json")
    assert (looked.code, [one["code"] for one in looked.json]) == (0, ["orphans"])
    refused = lmem("doctor", "--fix")
    assert (refused.code, ill.exists()) == (2, True)
    assert "not confirmed" in refused.err
    done = lmem("doctor", "--fix", "--yes", "--format", "json")
    assert (done.code, done.json["sound"], ill.exists()) == (0, True, False)
    assert [one["code"] for one in done.json["fixed"]] == ["orphans"]


def test_what_is_not_safe_to_fix_is_left_and_said(lmem, store):
    """With nothing to fix, --fix only looks, and asks nothing."""
    lmem("delete", "k1", "--yes")
    lmem("supersede", "k2", "k3", "--with", "both", "--format", "quiet")
    listed = lmem("list", "--format", "jsonl").lines
    (successor,) = [m["id"] for m in listed if m["content"] == "both"]
    lmem("delete", successor, "--yes")
    done = lmem("doctor", "--fix", "--format", "json")
    assert done.code == 1
    assert [one["code"] for one in done.json["findings"] if one["severity"] != "note"] == [
        "dangling_successor"
    ]
    assert done.json["fixed"] == []


def test_an_old_file_that_is_damaged_is_told_without_a_deep_look(lmem, store):
    """And is not fixed: no version is given up for it."""
    lmem("add", "after it", "--format", "quiet")
    file = min((store / "memories.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime)
    manifests = sorted((store / "memories.lance" / "_versions").glob("*.manifest"))
    for path in manifests[1:]:
        path.unlink()
    file.write_bytes(file.read_bytes()[:-40])
    done = lmem("doctor", "--format", "json")
    found = [one for one in done.json["findings"] if one["code"] == "damaged_file"]
    assert (done.code, [one["fixable"] for one in found]) == (1, [False])
    assert file.name in found[0]["sample"][0]


def test_with_nothing_but_notes_a_fix_says_that_there_is_nothing_to_fix(lmem, store):
    done = lmem("doctor", "--fix")
    assert done.code == 0
    assert done.err == ("nothing to fix; `lmem optimize` folds, merges and cleans up at any time\n")


def test_a_directory_of_backups_is_no_store_and_is_told_what_to_do(lmem, moved):
    place = moved["BACKUPS"]
    done = lmem("doctor", "--store", place)
    assert (done.code, done.out) == (1, "")
    assert f"{place} holds backups, and is no store: `lmem backups {place} --verify`" in done.err
    assert f"`lmem restore {place} PATH` makes a store" in done.err
