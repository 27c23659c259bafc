"""Upkeep on the command line: after writes, and by `lmem optimize`."""

from __future__ import annotations

import json
import random

import pytest

from lance_memory import MemoryStore


@pytest.fixture
def many(tmp_path):
    """A file of as many memories as make upkeep due."""
    file = tmp_path / "many.jsonl"
    noise = random.Random(0)
    rows = (
        {"content": f"memory {i}", "embedding": [noise.gauss(0, 1) for _ in range(384)]}
        for i in range(260)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_a_write_that_makes_upkeep_due_ends_with_it(lmem, store, many):
    done = lmem("import", many)
    assert (done.code, "upkeep" in done.err) == (0, False)
    opened = MemoryStore.open(store, create=False)
    assert opened.upkeep_status().version > 4
    assert set(opened.stats().unindexed_rows.values()) == {0}


def test_upkeep_that_fails_is_told_after_a_write_and_fails_optimize(lmem, store, many):
    """C34."""
    (store / "upkeep.lock").unlink(missing_ok=True)
    (store / "upkeep.lock").mkdir()
    done = lmem("import", many, "--format", "json")
    assert done.code == 0
    assert done.json["stored"] == 260
    assert "upkeep: lock failed once, and is tried again with a later write: " in done.err
    done = lmem("optimize")
    assert (done.code, done.out) == (1, "")
    assert "upkeep.lock" in done.err
    (store / "upkeep.lock").rmdir()
    assert lmem("optimize").code == 0
    assert MemoryStore.open(store, create=False).upkeep_status().failures == ()


def test_a_dry_run_shows_every_step(lmem, store):
    done = lmem("optimize", "--dry-run", "--clean-older-than", "0s", "--format", "json")
    plan = done.json
    assert (done.code, plan["version"], plan["fragments_to_compact"]) == (0, 4, 2)
    assert {"id_idx", "state_idx"} <= set(plan["indices_to_build"])
    assert plan["versions_to_remove"] == [1, 2]
    assert plan["bytes_to_remove"] > 0
    shown = lmem("optimize", "--dry-run").out
    assert "2 of 2 fragments would be written again" in shown
    assert "no untagged version" in shown or "0 untagged versions would go: none" in shown


def test_the_log_marks_what_was_cleaned_up(lmem, store):
    assert lmem("optimize", "--clean-older-than", "0s", "--yes").code == 0
    assert "2 [cleaned up]" in lmem("log", "--upkeep").out
    entries = lmem("log", "--upkeep", "--format", "json").json
    assert {e["version"]: e["readable"] for e in entries}[2] is False
    done = lmem("list", "--at", "2")
    assert done.code == 3
    assert "it was cleaned up" in done.err


def test_with_no_version_to_remove_optimize_asks_nothing(lmem, store):
    done = lmem("optimize", "--clean-older-than", "300d", "--format", "json")
    assert (done.code, done.json["versions_removed"]) == (0, 0)
    refused = lmem("optimize", "--clean-older-than", "0s")
    assert (refused.code, "not confirmed" in refused.err) == (2, True)
    assert "would go (" in refused.err


def test_stats_tell_of_indices_in_one_line(lmem, store):
    shown = lmem("stats").out
    assert "_idx=0" not in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("indices")]
    assert line.split() == ["indices", "1"]
