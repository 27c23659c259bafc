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
        "side has nothing that is not here; nothing was written\n",
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
    assert "1 changed on both lines" in shown
    assert "! " in shown
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
