"""`lmem merge`: shown first, asked, refused where both lines changed a memory."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore


def on(store, branch="main"):
    return MemoryStore.open(store, branch=branch)


def test_a_branch_is_shown_and_merged(lmem, store):
    shown = lmem("merge", "side", "--dry-run")
    assert shown.code == 0
    assert shown.out.splitlines()[0].startswith("merge side at version")
    assert "1 changed" in shown.out
    assert "the red kettle is broken" in shown.out
    assert "nothing was written" in shown.err
    done = lmem("merge", "side", "--yes", "--reason", "it went well")
    assert (done.code, done.err) == (0, shown.out)
    assert "merge, ~1" in done.out
    assert on(store).get("k0").tags == ("on the side",)
    assert "merge of side" in lmem("log", "--graph", "-n", "1").out
    again = lmem("merge", "side", "--yes")
    assert (again.code, again.out) == (
        0,
        "nothing to merge: side changed nothing since it was merged, or since it began\n",
    )
    assert lmem("merge", "side", "--yes", "--format", "json").json["changed"] == []


def test_a_plan_is_json_too(lmem, store):
    plan = lmem("merge", "side", "--dry-run", "--format", "json").json
    assert plan["branch"] == "side"
    changed = on(store).get("k0").id
    assert plan["changed"] == [changed]
    assert plan["clashes"] == []
    assert lmem("merge", "side", "--dry-run", "--format", "quiet").out.split() == [changed]


@pytest.mark.parametrize(("prefer", "tags"), [("ours", ("ours",)), ("theirs", ("on the side",))])
def test_what_both_changed_is_shown_and_decided(lmem, store, prefer, tags):
    on(store).update("k0", tags=["ours"])
    before = on(store).version
    refused = lmem("merge", "side", "--yes")
    assert refused.code == 4
    assert "1 memory was changed on both lines" in refused.err
    assert "--prefer" in refused.err
    assert on(store).version == before
    shown = lmem("merge", "side", "--dry-run").out
    assert "1 to be decided with --prefer" in shown
    assert shown.count("! k0") == 2
    assert "(here)" in shown
    assert "(side)" in shown
    done = lmem("merge", "side", "--yes", "--prefer", prefer)
    assert done.code == 0, done.err
    assert on(store).get("k0").tags == tags
    assert lmem("merge", "side", "--yes").code == 0


def test_main_is_merged_into_a_branch(lmem, store):
    done = lmem("merge", "main", "--branch", "side", "--yes")
    assert done.code == 0, done.err
    assert on(store, "side").count() == 5
    assert on(store, "side").get("k0").tags == ("on the side",)


def test_a_branch_that_is_not_there_is_told(lmem, store):
    done = lmem("merge", "sid", "--yes")
    assert done.code == 3
    assert "there is no branch 'sid'; there are: main, side" in done.err


@pytest.mark.parametrize(
    ("prefer", "lost"), [("ours", "bob likes figs"), ("theirs", "bob likes plums")]
)
def test_of_two_under_one_key_both_are_shown_and_one_is_retired(lmem, store, prefer, lost):
    embedding = on(store).get("k0").embedding
    for branch, text in (("main", "bob likes plums"), ("side", "bob likes figs")):
        on(store, branch).upsert(text, key="fruit", user="bob", embedding=embedding)
    undecided = lmem("merge", "side", "--dry-run").out
    assert "bob likes plums  (here)" in undecided
    assert "bob likes figs  (side)" in undecided
    shown = lmem("merge", "side", "--prefer", prefer, "--dry-run").out
    assert "1 retired, as the other has the key" in shown
    assert f"{lost}  (retired)" in shown
    assert lmem("merge", "side", "--prefer", prefer, "--yes").code == 0
    assert lost in lmem("list", "--state", "retired").out


def test_a_branch_is_started_only_where_it_is_no_dry_run(lmem, store):
    shown = lmem("branch", "other", "--dry-run")
    assert (shown.code, "start other at version 4" in shown.out) == (0, True)
    assert "nothing was written" in shown.err
    assert "other" not in lmem("branches").out


def test_who_removes_a_branch_is_told_what_was_not_merged(lmem, store):
    assert "that only it has, 1 not merged" in lmem("branch", "side", "--delete", "--dry-run").out
    assert lmem("merge", "side", "--yes").code == 0
    assert "not merged" not in lmem("branch", "side", "--delete", "--dry-run").out
