"""Destructive verbs: plan, show, stop on --dry-run, ask, do."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore

DESTRUCTIVE = {
    "retire": ["retire", "k0"],
    "retire by filter": ["retire", "--user", "ann", "--tag", "odd"],
    "delete": ["delete", "k0"],
    "consolidate": ["consolidate", "--min-similarity", "0.5"],
    "apply": ["apply", "PLAN"],
    "rollback": ["rollback", "start"],
    "revert": ["revert", "4"],
    "merge": ["merge", "side"],
    "share": ["share", "--user", "ann", "--tag", "odd", "--with-user", "bob"],
    "untag": ["untag", "start"],
    "branch": ["branch", "side", "--delete"],
    "optimize": ["optimize", "--clean-older-than", "0s"],
    "retention": ["retention", "--stay", "episodic=0.001s", "--no-archive"],
}


@pytest.fixture(params=DESTRUCTIVE)
def words(request, plan_file):
    return [str(plan_file) if word == "PLAN" else word for word in DESTRUCTIVE[request.param]]


@pytest.fixture
def state(store):
    """All that a destructive verb could change."""

    def read():
        handle = MemoryStore.open(store, create=False)
        history = [entry.version for entry in handle.log(upkeep=True)]
        return history, handle.tags(), [branch.name for branch in handle.branches()]

    return read


def test_off_a_terminal_nothing_is_done_unasked(words, lmem, state):
    before = state()
    done = lmem(*words)
    assert (done.code, done.out) == (2, "")
    assert "--yes" in done.err
    assert state() == before


def test_a_dry_run_shows_the_plan_and_stops(words, lmem, state):
    before = state()
    done = lmem(*words, "--dry-run")
    assert done.code == 0
    assert done.out.strip()
    assert "nothing was written" in done.err
    assert state() == before


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "no\n"])
def test_a_no_is_a_no(answer, lmem, state):
    before = state()
    done = lmem("delete", "k0", stdin=answer, terminal=True)
    assert (done.code, done.out) == (2, "")
    assert "delete 1 memory? [y/N]" in done.err
    assert state() == before


def test_a_yes_does_it(words, lmem, state):
    before = state()
    assert lmem(*words, stdin="y\n", terminal=True).code == 0
    assert state() != before


def test_a_filter_that_matches_nothing_writes_nothing(lmem, state):
    before = state()
    done = lmem("retire", "--user", "nobody", "--yes")
    assert (done.code, state()) == (0, before)
    assert "nothing matches" in done.err


def test_a_pass_that_finds_nothing_writes_nothing(lmem, state):
    before = state()
    done = lmem("consolidate", "--min-similarity", "1", "--yes")
    assert (done.code, state()) == (0, before)


def test_optimize_asks_nothing_when_it_removes_nothing(lmem, store):
    assert lmem("optimize").code == 0


def test_a_dry_run_promises_what_is_done(lmem, store):
    plan = lmem("rollback", "2", "--dry-run", "--format", "json").json
    done = lmem("rollback", "2", "--yes", "--format", "json").json
    assert len(plan["disappear"]) == done["deleted"] == 6


def test_a_saved_plan_is_applied_as_saved(lmem, store, tmp_path):
    file = tmp_path / "plan.json"
    shown = lmem(
        "consolidate", "--min-similarity", "0.5", "--dry-run", "--plan", file, "--format", "json"
    )
    assert lmem("apply", file, "--yes", "--reason", "nightly").code == 0
    entry = lmem("log", "-n", "1", "--format", "json").json[0]
    assert (entry["operation"], entry["reason"]) == ("consolidate", "nightly")
    derived = [c["derived"]["id"] for c in shown.json["clusters"] if c["derived"]]
    assert entry["inserted"] == len(derived) > 0
    assert all(lmem("get", one).code == 0 for one in derived)
    visible = lmem("list", "--format", "quiet").out.split()
    assert len(visible) == 5 - shown.json["rows_saved"]


def test_a_plan_is_read_from_stdin(lmem, store, plan_file):
    assert lmem("apply", "-", "--yes", stdin=plan_file.read_bytes()).code == 0


def test_a_stale_plan_is_refused(lmem, store, plan_file, version):
    lmem("update", "k0", "--importance", "0.1")
    lmem("update", "k2", "--importance", "0.1")
    before = version()
    done = lmem("apply", plan_file, "--yes")
    assert (done.code, done.out, version()) == (4, "", before)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "7", '{"format": "x"}', "\xff\x00"])
def test_a_plan_that_is_none_is_refused(text, lmem, store, tmp_path):
    file = tmp_path / "plan.json"
    file.write_bytes(text.encode("latin-1"))
    done = lmem("apply", file, "--yes")
    assert done.code == 2
    assert "unexpected" not in done.err
