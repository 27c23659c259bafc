"""Merging a branch: what was done on one line, done on another as one version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lance_memory import (
    ConflictError,
    FunctionEmbedder,
    InvalidInputError,
    MergePlan,
    NotFoundError,
    Prefer,
    ScopeError,
    State,
)
from lance_memory.storage import naming
from lance_memory.testing import check


def contents(view):
    return sorted(memory.content for memory in view.list())


def rows(view):
    """Everything that a view holds, embeddings and revisions included."""
    return view.to_arrow().sort_by("id").to_pylist()


@pytest.fixture
def lines(store, clock):
    """A store of three memories, keyed a, b and c, and a branch that left it there."""
    for key in "abc":
        store.add(f"the {key}", key=key, user="ana")
    clock.forward(minutes=1)
    branch = store.branch("trial")
    clock.forward(minutes=1)
    yield store, branch
    check(store)


def disagree(store, branch):
    """Three memories that both lines change, each in its way, and one that only theirs has."""
    branch.update("a", content="their a")
    store.update("a", content="our a")
    branch.delete(["b"])
    store.update("b", content="our b")
    branch.update("c", content="their c")
    store.delete(["c"])
    branch.add("theirs alone", user="ana")


def test_what_a_branch_did_happens_here_as_one_version(lines, clock):
    store, branch = lines
    added = branch.add("new on the branch", user="ana")
    branch.update("a", content="another a", tags=["edited"])
    branch.delete(["b"])
    branch.upsert("the second c", key="c", user="ana")
    clock.forward(minutes=1)
    store.add("new on main", user="ana")
    before = store.version
    done = store.merge("trial", reason="it went well")
    assert done.version == before + 1 == store.version
    assert (done.operation, done.inserted, done.updated, done.deleted) == ("merge", 2, 2, 1)
    assert contents(store) == ["another a", "new on main", "new on the branch", "the second c"]
    assert store.get(added.id).updated_at == branch.get(added.id).updated_at
    old = store.list(user="ana", states=["superseded"])
    assert [(m.content, m.superseded_by) for m in old] == [("the c", store.get("c").id)]
    entry = store.log(limit=1)[0]
    assert (entry.operation, entry.reason) == ("merge", "it went well")
    assert entry.manifest["branch"] == "trial"
    assert entry.manifest["tip"] == branch.version
    assert [h.memory.content for h in store.search("branch", mode="text")] == ["new on the branch"]


def test_what_was_superseded_on_a_branch_comes_over_with_its_vectors(lines):
    store, branch = lines
    branch.supersede(["a", "b"], "both the a and the b")
    store.merge("trial")
    assert contents(store) == ["both the a and the b", "the c"]
    assert rows(store) == rows(branch)


def test_a_plan_tells_what_the_merge_does(lines):
    store, branch = lines
    added = branch.add("new", user="ana").id
    changed = branch.update("a", content="another a").ids
    [removed] = branch.delete(["b"]).ids
    before = store.version
    plan = store.merge("trial", dry_run=True)
    assert plan == MergePlan(
        version=before,
        branch="trial",
        tip=branch.version,
        added=(added,),
        changed=changed,
        removed=(removed,),
    )
    assert str(plan).startswith(f"merge of trial at version {branch.version}; added: {added}")
    assert store.version == before
    assert set(store.merge("trial").ids) == {added, *changed, removed}
    again = store.merge("trial", dry_run=True)
    assert not again
    assert str(again).endswith("; nothing")


def test_what_both_changed_is_refused_until_somebody_is_right(lines):
    store, branch = lines
    a, b, c = (store.get(key).id for key in "abc")
    disagree(store, branch)
    before = rows(store)
    with pytest.raises(ConflictError, match="could not merge 'trial': 3 memories") as caught:
        store.merge("trial")
    assert set(caught.value.ids) == {a, b, c}
    assert rows(store) == before
    plan = store.merge("trial", dry_run=True)
    assert set(plan.clashes) == {a, b, c}
    assert len(plan.added) == 1
    theirs = store.merge("trial", prefer="theirs", dry_run=True)
    assert (theirs.changed, theirs.removed) == ((a,), (b,))
    assert c in theirs.added


@pytest.mark.parametrize(
    ("prefer", "expected"),
    [
        ("ours", ["our a", "our b", "theirs alone"]),
        (Prefer.THEIRS, ["their a", "their c", "theirs alone"]),
    ],
)
def test_who_is_right_decides_what_both_changed(lines, prefer, expected):
    store, branch = lines
    disagree(store, branch)
    store.merge("trial", prefer=prefer)
    assert contents(store) == expected
    assert not store.merge("trial", dry_run=True)


def test_the_same_change_on_both_is_none(lines):
    store, branch = lines
    branch.delete(["a"])
    store.delete(["a"])
    branch.add("new", user="ana")
    assert store.merge("trial").deleted == 0
    assert contents(store) == ["new", "the b", "the c"]


@pytest.mark.parametrize(("prefer", "lives"), [("ours", "our home"), ("theirs", "their home")])
def test_of_two_memories_under_one_key_one_gives_way(lines, prefer, lives):
    store, branch = lines
    theirs = branch.upsert("their home", key="home", user="ana").id
    ours = store.upsert("our home", key="home", user="ana").id
    with pytest.raises(ConflictError, match="1 key was given") as caught:
        store.merge("trial")
    assert caught.value.ids == (ours,)
    plan = store.merge("trial", dry_run=True)
    assert plan.keys == {theirs: ours}
    assert (plan.added, plan.clashes) == ((), ())
    store.merge("trial", prefer=prefer, reason="asked her")
    assert store.get("home").content == lives
    won, lost = (ours, theirs) if prefer == "ours" else (theirs, ours)
    given_up = store.get(lost)
    assert (given_up.state, given_up.state_reason) == (State.RETIRED, "asked her")
    assert store.get(won).state is State.ACTIVE
    assert not store.merge("trial", dry_run=True)


def test_a_key_that_both_gave_anew_clashes_in_the_old_memory_too(lines):
    store, branch = lines
    branch.upsert("their c", key="c", user="ana")
    store.upsert("our c", key="c", user="ana")
    plan = store.merge("trial", dry_run=True)
    assert len(plan.clashes) == 1
    assert list(plan.keys.values()) == [store.get("c").id]
    store.merge("trial", prefer="theirs")
    assert store.get("c").content == "their c"
    assert store.count(key="c") == 1


def test_a_memory_that_both_gave_up_for_another_leads_in_no_circle(lines):
    """Theirs is what ours took the place of, twice."""
    store, branch = lines
    branch.update("c", content="their c")
    store.upsert("our second c", key="c", user="ana")
    store.upsert("our third c", key="c", user="ana")
    store.merge("trial", prefer="theirs")
    assert store.get("c").content == "their c"
    assert contents(store) == ["the a", "the b", "their c"]


def test_only_what_is_new_since_the_last_merge_comes(lines, clock):
    store, branch = lines
    branch.update("a", content="first of theirs")
    store.merge("trial")
    clock.forward(minutes=1)
    store.update("a", content="ours since")
    assert not store.merge("trial", dry_run=True)
    branch.update("b", content="second of theirs")
    assert store.merge("trial").updated == 1
    assert contents(store) == ["ours since", "second of theirs", "the c"]


def test_main_is_merged_into_a_branch_and_the_branch_back(lines):
    store, branch = lines
    store.update("a", content="from main")
    branch.update("b", content="from the branch")
    assert branch.merge("main").updated == 1
    assert contents(branch) == ["from main", "from the branch", "the c"]
    assert contents(store) == ["from main", "the b", "the c"]
    store.update("a", content="from main, later")
    assert store.merge("trial").updated == 1
    assert contents(store) == ["from main, later", "from the branch", "the c"]
    assert branch.merge("main").updated == 1
    assert rows(branch) == rows(store)


def test_a_merge_that_was_reverted_does_not_come_again_until_that_is(lines):
    store, branch = lines
    branch.update("a", content="from the branch")
    before = rows(store)
    merged = store.merge("trial").version
    undone = store.revert(merged).version
    assert rows(store) == before
    assert not store.merge("trial", dry_run=True)
    store.revert(undone)
    assert rows(store) == rows(branch)


def test_nothing_to_merge_makes_no_version(lines):
    store, _ = lines
    before = store.version
    assert store.merge("trial").version == before == store.version


def test_a_branch_of_the_same_name_as_one_that_was_merged_is_another(lines, clock):
    store, branch = lines
    branch.update("a", content="first")
    store.merge("trial")
    store.delete_branch("trial")
    clock.forward(minutes=1)
    second = store.branch("trial", store.version - 1)
    second.update("a", content="second")
    with pytest.raises(ConflictError):
        store.merge("trial")
    assert store.merge("trial", prefer="theirs").updated == 1
    assert "second" in contents(store)


def test_lines_that_did_not_leave_one_another_are_told(lines):
    store, branch = lines
    other = store.branch("other")
    with pytest.raises(InvalidInputError, match="'trial' did not leave 'other', nor"):
        other.merge("trial")
    with pytest.raises(InvalidInputError, match="'main' is this line itself"):
        store.merge("main")
    deeper = branch.branch("deeper")
    deeper.add("deep", user="ana")
    with pytest.raises(InvalidInputError):
        store.merge("deeper")
    branch.merge("deeper")
    store.merge("trial")
    assert "deep" in contents(store)


def test_bad_input_is_told(lines):
    store, _ = lines
    with pytest.raises(NotFoundError, match="no branch 'trail'"):
        store.merge("trail")
    with pytest.raises(InvalidInputError, match="there are: ours, theirs"):
        store.merge("trial", prefer="mine")
    with pytest.raises(ScopeError, match="merging concerns the whole store"):
        store.scoped(user="ana").merge("trial")


def test_what_was_merged_is_kept_from_clean_up_for_the_next_merge(lines, clock):
    """Else what was deleted here since would come back, as new on the branch."""
    store, branch = lines
    gone = branch.add("merged and deleted", user="ana").id
    store.merge("trial")
    store.delete([gone])
    for number in range(4):
        clock.forward(minutes=1)
        branch.add(f"later {number}", user="ana")
    branch.optimize(clean_older_than=timedelta(0))
    store.optimize(clean_older_than=timedelta(0))
    plan = store.merge("trial", dry_run=True)
    assert (len(plan.added), plan.changed, plan.clashes) == (4, (), ())
    store.merge("trial")
    assert "merged and deleted" not in contents(store)
    assert store.tags() == branch.tags() == {}
    store.delete_branch("trial")
    assert naming.all_tags(store._table) == {}


def test_without_what_both_had_all_that_differs_is_a_clash(lines):
    """Forgetting takes the version away that the branch began from."""
    store, _ = lines
    store.add("secret", key="s", user="bob")
    side = store.branch("side")
    side.add("theirs alone", user="ana")
    store.add("ours alone", user="ana")
    store.forget(["s"])
    with pytest.raises(ConflictError, match="1 memory was changed on both lines"):
        store.merge("side")
    plan = store.merge("side", prefer="theirs", dry_run=True)
    assert (len(plan.added), plan.changed, plan.removed) == (1, (), ())
    store.merge("side", prefer="theirs")
    assert contents(store) == ["ours alone", "the a", "the b", "the c", "theirs alone"]
    assert not store.merge("side", dry_run=True)


def test_a_tip_that_was_rewritten_to_forget_is_still_what_was_merged_last(lines):
    store, branch = lines
    secret = branch.add("secret", user="bob").id
    gone = branch.add("merged and deleted", user="ana").id
    store.merge("trial")
    store.delete([gone])
    store.forget([secret])
    branch.add("new", user="ana")
    with suppress(ConflictError):  # where that version is gone, nothing comes back unasked
        store.merge("trial")
    assert not {"merged and deleted", "secret"} & set(contents(store))


def test_lines_that_merge_one_another_at_once_do_it_one_after_the_other(lines):
    store, branch = lines
    for number in range(5):
        here = store.add(f"ours {number}", user="ana").id
        branch.add(f"theirs {number}", user="ana")
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(store.merge, "trial"), pool.submit(branch.merge, "main")]
            for done in both:
                done.result()
        store.delete([here])
        store.merge("trial")
        assert f"ours {number}" not in contents(store)
        branch.merge("main")
        assert rows(branch) == rows(store)


def test_edits_at_one_moment_of_a_clock_that_stands_still_are_two(reopen, tmp_path):
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    store = reopen(tmp_path / "still", clock=lambda: moment)
    one = store.add("a memory", user="ana").id
    branch = store.branch("trial")
    store.update(one, tags=["ours"])
    branch.update(one, tags=["theirs"])
    assert store.merge("trial", dry_run=True).clashes == (one,)


def test_a_revision_only_grows(lines):
    """Who holds a revision that was overwritten is refused."""
    store, branch = lines
    branch.update("a", content="theirs")
    held = branch.get("a").revision
    branch.update("a", content="theirs again")
    store.update("a", content="ours")
    store.merge("trial", prefer="ours")
    branch.merge("main")
    assert branch.get("a").content == "ours"
    with pytest.raises(ConflictError):
        branch.update("a", content="blind", revision=held)
    changed = branch.update("b", content="theirs").version
    store.merge("trial")
    branch.revert(changed)
    store.merge("trial")
    check(branch)


def test_a_deletion_comes_from_a_line_with_vectors_of_another_size(lines, reopen):
    store, branch = lines
    other = FunctionEmbedder(
        lambda texts: np.ones((len(texts), 4), np.float32), name="other", dimension=4
    )
    branch.reembed(other)
    branch = reopen(store.uri, branch="trial", embedder=other)
    branch.delete(["a"])
    assert store.merge("trial").deleted == 1
    branch.update("b", content="their b")
    assert store.merge("trial").updated == 1
    assert store.get("b").embedding.shape == store.get("c").embedding.shape


def test_an_id_in_two_scopes_is_refused(lines):
    store, branch = lines
    store.add("ours", id="one", user="ana")
    branch.add("theirs", id="one", user="bob")
    with pytest.raises(ConflictError, match="memory one is in one scope here"):
        store.merge("trial", prefer="theirs")


def test_what_both_did_alike_is_merged_too(lines):
    """A revert of ours is not undone by the next merge."""
    store, branch = lines
    branch.delete(["a"])
    ours = store.delete(["a"]).version
    store.merge("trial")
    store.revert(ours)
    assert not store.merge("trial", dry_run=True)
    store.merge("trial")
    assert "the a" in contents(store)


def test_writers_beside_a_merge_lose_nothing(lines):
    """The merge is planned again after each race that it loses."""
    store, branch = lines
    branch.add_many([{"content": f"theirs {n}", "user": "ana"} for n in range(20)])

    def write(name):
        for number in range(8):
            store.add(f"{name} {number}", user="ana")

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(write, name) for name in ("one", "two", "three", "four")]
        merged = pool.submit(store.merge, "trial")
        for done in (*writers, merged):
            done.result()
    assert merged.result().inserted == 20
    assert store.count() == 3 + 20 + 4 * 8
