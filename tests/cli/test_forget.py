"""`lmem forget`: plan, show, confirm, apply; and going on with one that was interrupted."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from lance_memory import MemoryStore


@pytest.fixture
def ids(lmem):
    """The memories of ann and of bob."""
    texts = ("the zanzibarine recipe of ann", "a note of ann")
    mine = [lmem("add", text, "--user", "ann", "--format", "quiet").out.strip() for text in texts]
    other = lmem("add", "a note of bob", "--user", "bob", "--format", "quiet").out.strip()
    return *mine, other


def test_a_dry_run_shows_the_plan_and_writes_nothing(lmem, ids):
    done = lmem("forget", "--user", "ann", "--dry-run", "--format", "json")
    assert (done.code, done.json["ids"]) == (0, sorted(ids[:2]))
    human = lmem("forget", "--user", "ann", "--dry-run")
    assert "versions of main not readable any more" in human.out
    assert len(lmem("list", "--format", "quiet").out.split()) == 3


def test_c12_without_a_name_and_a_scope_it_is_an_error(lmem, ids):
    assert lmem("forget", "--yes").code == 2
    assert lmem("forget", "--tag", "x", "--yes").code == 2
    assert lmem("forget", ids[0], "--kind", "episodic", "--yes").code == 2
    assert lmem("forget", "--finish", "--user", "ann").code == 2
    assert lmem("forget", "nothing", "--yes").code == 3


def test_it_is_not_done_without_a_yes(lmem, ids):
    done = lmem("forget", ids[0])
    assert (done.code, "--yes" in done.err) == (2, True)
    assert lmem("get", ids[0]).code == 0


def test_c39_the_forgotten_are_gone_and_the_log_has_a_tombstone(lmem, ids):
    done = lmem("forget", ids[0], "--yes", "--reason", "she asked", "--format", "json")
    assert (done.code, done.json["plan"]["ids"], done.json["proof"]["found"]) == (0, [ids[0]], [])
    assert lmem("get", ids[0]).code == 3
    stone = lmem("log", "--limit", "1", "--format", "json").json[0]
    assert (stone["operation"], stone["reason"]) == ("forget", "she asked")
    assert stone["manifest"]["sha256"] == [sha256(ids[0].encode()).hexdigest()]


def test_an_interrupted_one_is_finished(lmem, ids, tmp_path):
    assert lmem("forget", "--finish", "--yes").code == 0
    mark = {
        "op_id": "an-op",
        "at": "2025-01-01T00:00:00+00:00",
        "actor": "",
        "reason": "",
        "ids": [ids[0]],
        "scopes": [],
        "rebuilt": {},
        "versions": {},
        "queries": 0,
        "plans": [],
    }
    (tmp_path / "memory" / "forget.json").write_text(json.dumps(mark))
    assert lmem("forget", "--finish", "--dry-run", "--format", "json").json["op_id"] == "an-op"
    assert lmem("forget", "--finish", "--yes", "--format", "quiet").out.split() == [ids[0]]
    store = MemoryStore.open(tmp_path / "memory", create=False)
    assert {m.id for m in store.list()} == set(ids[1:])
    assert store.unfinished_forgetting() is None


def test_a_plan_is_not_saved_inside_the_store(lmem, ids, tmp_path):
    inside = tmp_path / "memory" / "pass.plan"
    asked = ("consolidate", "--min-similarity", "0.5", "--dry-run", "--plan", str(inside))
    done = lmem(*asked)
    assert (done.code, "inside the store" in done.err, inside.exists()) == (2, True, False)


def test_a_reason_that_quotes_is_refused(lmem, ids):
    done = lmem("forget", ids[0], "--yes", "--reason", "was: the zanzibarine recipe of ann")
    assert (done.code, "quotes" in done.err) == (2, True)
    assert lmem("get", ids[0]).code == 0
