from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory import (
    ConflictError,
    FunctionEmbedder,
    InvalidInputError,
    MemoryView,
    NotFoundError,
    RollbackPlan,
    State,
    StoreFormatError,
    WriteResult,
    versioning,
)
from lance_memory.storage import FORGET, naming


def contents(view):
    return [memory.content for memory in view.list()]


def rows(view):
    """Everything that a view holds, embeddings and revisions included."""
    return view.to_arrow().sort_by("id").to_pylist()


# -- at -------------------------------------------------------------------------------------


def test_a_version_a_tag_and_a_moment_name_the_same_memories(store, clock):
    first = store.add("first")
    store.tag("t")
    between = clock.forward(minutes=1)
    clock.forward(minutes=1)
    store.add("second")
    views = [
        store.at(first.version),
        store.at(str(first.version)),
        store.at("t"),
        store.at(between),
    ]
    assert [contents(view) for view in views] == [["first"]] * 4
    assert [view.version for view in views] == [first.version] * 4
    assert contents(store) == ["first", "second"]


def test_a_view_cannot_write(store):
    store.add("a")
    view = store.at(store.version)
    assert type(view) is MemoryView
    writing = {
        "add",
        "add_many",
        "upsert",
        "update",
        "supersede",
        "retire",
        "unretire",
        "delete",
        "consolidate",
        "apply",
        "rollback",
        "revert",
        "tag",
        "untag",
        "branch",
        "checkout",
        "delete_branch",
        "optimize",
    }
    assert writing & set(dir(view)) == set()


def test_a_view_answers_every_read_as_of_then(store):
    stored = store.add("a thing", user="ana")
    then = store.version
    store.update(stored.id, content="another story")
    store.add("one more thing")
    view = store.at(then)
    assert view.get(stored.id).content == "a thing"
    assert [h.memory.content for h in view.search("thing")] == ["a thing"]
    assert (view.count(), view.stats().rows, view.stats().version) == (1, 1, then)
    assert [m.content for m in view.iter()] == ["a thing"]
    assert view.to_arrow()["content"].to_pylist() == ["a thing"]
    assert view.to_polars().collect()["content"].to_list() == ["a thing"]
    assert view.sql("SELECT content FROM memories")["content"].to_list() == ["a thing"]
    assert [e.version for e in view.log()] == [then]
    assert contents(view.scoped(user="ana")) == ["a thing"]
    assert view.scoped(user="bob").list() == []
    assert contents(view.at(store.version)) == ["another story", "one more thing"]
    assert store.add("the handle can still write").version == store.version


def test_what_has_expired_since_is_visible_at_the_earlier_version(store, clock):
    stored = store.add("short lived", expires_at=clock.now + timedelta(minutes=1))
    clock.forward(minutes=2)
    assert contents(store) == []
    assert contents(store.at(stored.version)) == ["short lived"]
    assert contents(store.at(clock.now)) == []


def test_a_moment_never_shows_what_came_later(store, reopen, clock, embedder):
    def slow(texts):
        if "slow" in texts:
            store.add("fast")
            clock.forward(minutes=5)
        return embedder.embed(texts)

    reopen(store.uri, embedder=FunctionEmbedder(slow, name="words-16", dimension=16)).add("slow")
    fast = store.list()[-1] if store.list()[-1].content == "fast" else store.list()[0]
    before = fast.created_at - timedelta(microseconds=1)
    try:
        shown = [m.content for m in store.at(before).iter(states="any")]
    except NotFoundError:
        shown = []
    assert "fast" not in shown


@pytest.mark.parametrize("when", [0, 99, -1, 10**30, "99", "nope", ""])
def test_an_unknown_version_or_tag_is_not_found(store, when):
    store.add("a")
    with pytest.raises(NotFoundError, match=r"there is no (version|tag)"):
        store.at(when)


def test_an_unknown_tag_says_which_there_are(store):
    store.tag("v1")
    with pytest.raises(NotFoundError, match="no tag 'v2'; there are: v1"):
        store.at("v2")


@pytest.mark.parametrize("when", [None, 1.5, [1]])
def test_what_names_no_version_is_refused(store, when):
    with pytest.raises(InvalidInputError):
        store.at(when)


def test_a_naive_moment_is_refused(store):
    with pytest.raises(InvalidInputError, match=r"at=.* has no time zone"):
        store.at(datetime(2025, 1, 1))


def test_before_the_first_version_there_is_nothing(store):
    with pytest.raises(NotFoundError, match=r"no version .* is as old as 1999-"):
        store.at(datetime(1999, 1, 1, tzinfo=UTC))


# -- log ------------------------------------------------------------------------------------


def test_the_log_tells_what_who_when_and_why(store, reopen):
    signed = reopen(store.uri, author="ada")
    stored = signed.add("a")
    signed.update(stored.id, content="b", reason="better")
    signed.delete(stored.id, reason="gone")
    log = store.log()
    assert [
        (e.version, e.operation, e.actor, e.reason, e.inserted, e.updated, e.deleted) for e in log
    ] == [
        (stored.version + 2, "delete", "ada", "gone", 0, 0, 1),
        (stored.version + 1, "update", "ada", "better", 0, 1, 0),
        (stored.version, "add", "ada", "", 1, 0, 0),
    ]
    assert all(e.at.tzinfo is not None and e.op_id for e in log)
    assert [e.at for e in log] == sorted((e.at for e in log), reverse=True)
    assert len({e.op_id for e in log}) == 3


def test_the_log_hides_upkeep_unless_asked(store):
    store.add("a")
    store.optimize()
    assert [e.operation for e in store.log()] == ["add"]
    everything = store.log(upkeep=True)
    assert [e.version for e in everything] == list(range(store.version, 0, -1))
    assert everything[-1].operation == "create"
    assert {e.operation for e in everything if e.upkeep} <= {"create", "index", "compact"}
    assert [e.version for e in store.log(limit=1)] == [3]
    assert store.log(limit=0) == []


def test_an_entry_of_the_log_prints_in_a_line_that_has_its_version(store):
    """It printed as 900 characters, the manifest among them."""
    ids = [store.add(text, user="ann").id for text in ("a", "b")]
    store.supersede(ids, "a and b", reason="the same " * 40)
    said = repr(store.log(upkeep=True)[0])
    at = f"{store.log()[0].at:%Y-%m-%d %H:%M}"
    assert said.startswith(f"<LogEntry {store.version} {at} supersede +1 ~2: 'the same the same")
    assert len(said) < 120
    assert str(store.log()[0]) == said
    assert repr(store.log(upkeep=True)[-1]).endswith("create, upkeep>")


def test_the_limit_of_the_log_cannot_be_negative(store):
    store.add("a")
    with pytest.raises(InvalidInputError, match="limit"):
        store.log(limit=-1)


# -- diff -----------------------------------------------------------------------------------


def test_a_diff_has_what_was_inserted_updated_with_columns_and_removed(store):
    _kept, changed, gone = store.add_many(["kept", "changed", "gone"]).ids
    before = store.version
    store.update(changed, content="changed since", tags=["t"])
    store.delete(gone)
    new = store.add("new").id
    diff = store.diff(before)
    assert (diff.before, diff.after, bool(diff)) == (before, store.version, True)
    assert [m.id for m in diff.inserted] == [new]
    assert [m.id for m in diff.removed] == [gone]
    assert [(c.before.content, c.after.content, sorted(c.columns)) for c in diff.updated] == [
        ("changed", "changed since", ["content", "content_hash", "embedding", "tags"])
    ]
    assert diff.updated[0].after == store.get(changed)
    backwards = store.diff(store.version, before)
    assert [m.id for m in backwards.inserted] == [gone]
    assert [m.id for m in backwards.removed] == [new]


def test_a_changed_embedding_is_a_change_of_that_column(store):
    stored = store.add("a")
    store.update(stored.id, embedding=[1.0] * 16)
    assert [c.columns for c in store.diff(stored.version).updated] == [("embedding",)]


def test_a_diff_is_right_across_a_rollback_and_upkeep(store):
    stored = store.add("a")
    then = store.version
    store.update(stored.id, content="b")
    store.add("c")
    store.optimize()
    store.rollback(then)
    assert not store.diff(then)
    store.update(stored.id, content="c")
    assert [(c.before.content, c.after.content) for c in store.diff(then).updated] == [("a", "c")]


def test_a_diff_sees_two_histories_apart_also_under_a_clock_that_stands(tmp_path, reopen):
    store = reopen(tmp_path / "still", clock=lambda: datetime(2025, 1, 1, tzinfo=UTC))
    stored = store.add("a")
    one = store.update(stored.id, content="b").version
    store.rollback(stored.version)
    two = store.update(stored.id, content="c").version
    assert [(c.before.content, c.after.content) for c in store.diff(one, two).updated] == [
        ("b", "c")
    ]


def test_a_diff_of_a_version_with_itself_is_empty(store):
    store.add("a")
    diff = store.diff(store.version)
    assert (bool(diff), diff.inserted, diff.updated, diff.removed) == (False, (), (), ())


# -- rollback -------------------------------------------------------------------------------


def test_a_rollback_is_a_new_version_that_has_what_was(store):
    kept = store.add("kept", user="ana")
    then, was = store.version, rows(store)
    store.update(kept.id, content="changed")
    gone = store.add("new")
    result = store.rollback(then, reason="a mistake")
    assert result == WriteResult(
        uri=store.uri,
        version=store.version,
        operation="rollback",
        ids=(kept.id, gone.id),
        updated=1,
        deleted=1,
    )
    assert rows(store) == was
    assert contents(store.at(result.version - 1)) == ["changed", "new"]
    assert [(e.operation, e.reason) for e in store.log(limit=1)] == [("rollback", "a mistake")]


def test_a_rollback_can_itself_be_undone(store):
    store.add("a")
    then = store.version
    store.add("b")
    store.delete(store.list()[0].id)
    was = rows(store)
    back = store.rollback(then)
    store.revert(back.version)
    assert rows(store) == was


@pytest.mark.parametrize(
    "operation",
    [
        "add",
        "upsert",
        "update",
        "supersede",
        "retire",
        "unretire",
        "delete",
        "consolidate",
        "rollback",
        "delete all",
        "optimize",
    ],
)
def test_rolling_back_any_operation_restores_every_column(store, operation):
    store.add_many(
        [
            "same words",
            {"content": "same words", "key": "k", "metadata": {"a": 0}},
            {"content": "other thing", "id": "x"},
        ]
    )
    store.retire("x")
    then, was = store.version, rows(store)
    {
        "add": lambda: store.add("new"),
        "upsert": lambda: store.upsert("new", key="k"),
        "update": lambda: store.update("k", content="new", key=None),
        "supersede": lambda: store.supersede("k", "new"),
        "retire": lambda: store.retire("k"),
        "unretire": lambda: store.unretire("x"),
        "delete": lambda: store.delete("x"),
        "consolidate": store.consolidate,
        "rollback": lambda: store.rollback(3),
        "delete all": lambda: store.delete([m.id for m in store.list(states="any")]),
        "optimize": store.optimize,
    }[operation]()
    if operation not in ("optimize", "rollback"):
        assert rows(store) != was
    store.rollback(then)
    assert rows(store) == was
    assert not store.diff(then)


def test_the_plan_of_a_rollback_says_what_would_appear_change_and_disappear(store):
    _kept, changed, gone = store.add_many(["kept", "changed", "gone"]).ids
    then = store.version
    store.update(changed, content="b")
    store.delete(gone)
    new = store.add("new").id
    before = store.version
    plan = store.rollback(then, dry_run=True)
    assert plan == RollbackPlan(
        operation="rollback",
        version=before,
        target=then,
        reappear=(gone,),
        change=(changed,),
        disappear=(new,),
    )
    assert plan
    assert store.version == before
    result = store.rollback(then)
    assert (result.inserted, result.updated, result.deleted) == (1, 1, 1)
    assert not store.rollback(then, dry_run=True)


def test_a_rollback_to_where_one_is_makes_no_version(store):
    store.add("a")
    before = store.version
    assert store.rollback(before) == WriteResult(
        uri=store.uri, version=before, operation="rollback"
    )
    assert store.version == before


def test_a_rollback_to_a_tag_or_a_moment(store, clock):
    store.add("a")
    store.tag("good")
    moment = clock.forward(minutes=1)
    store.add("b")
    store.rollback("good")
    assert contents(store) == ["a"]
    store.add("c")
    store.rollback(moment)
    assert contents(store) == ["a"]


def test_after_a_rollback_to_before_the_indices_search_works(store):
    """C27."""
    store.add_many([f"apple number {i}" for i in range(300)])
    then = store.version
    store.optimize(vector_index_from=256)
    store.add("pear number one")
    store.rollback(then)
    for mode in ("text", "vector", "hybrid"):
        assert len(store.search("apple", mode=mode, k=10)) == 10
    assert [h.memory.content for h in store.search("pear", mode="text")] == []
    store.add("plum number two")
    assert [h.memory.content for h in store.search("plum", mode="text")] == ["plum number two"]


def test_a_rollback_to_the_empty_beginning_and_back(store):
    store.add("a thing")
    full = store.version
    store.rollback(1)
    assert (store.list(states="any"), list(store.search("thing"))) == ([], [])
    store.rollback(full)
    assert [h.memory.content for h in store.search("thing")] == ["a thing"]


@pytest.mark.parametrize("verb", ["rollback", "revert"])
@pytest.mark.parametrize("when", [0, 99, -1, "nope"])
def test_an_unknown_version_cannot_be_gone_back_to(store, verb, when):
    store.add("a")
    before = store.version
    with pytest.raises(NotFoundError):
        getattr(store, verb)(when)
    assert store.version == before


# -- revert ---------------------------------------------------------------------------------


def test_a_revert_undoes_one_version_and_keeps_what_came_after(store):
    store.add("before")
    mistake = store.add_many(["wrong 1", "wrong 2"]).version
    store.add("after")
    plan = store.revert(mistake, dry_run=True)
    assert (plan.operation, plan.target, plan.reappear, plan.change, len(plan.disappear)) == (
        ("revert", mistake, (), (), 2)
    )
    result = store.revert(mistake, reason="wrong")
    assert (result.operation, result.deleted) == ("revert", 2)
    assert contents(store) == ["before", "after"]


def test_a_revert_of_a_change_and_of_a_deletion(store):
    changed, gone = store.add_many(["old", "gone"]).ids
    changing = store.update(changed, content="new").version
    deleting = store.delete(gone).version
    store.add("after")
    store.revert(changing)
    store.revert(deleting)
    assert contents(store) == ["old", "gone", "after"]
    assert [h.memory.content for h in store.search("old gone", mode="text")] != []


def test_a_revert_of_a_consolidation_brings_the_sources_back(store):
    store.add_many(
        [{"content": "same words", "event_at": datetime(2024, 1, d, tzinfo=UTC)} for d in (1, 2)]
    )
    was = rows(store)
    version = store.consolidate().version
    store.add("after")
    store.revert(version)
    assert rows(store)[:2] == was
    assert contents(store) == ["same words", "same words", "after"]


def test_what_was_changed_again_since_is_a_conflict_that_lists_it(store):
    first, second = store.add_many(["a", "b"]).ids
    mistake = store.retire([first, second]).version
    store.unretire(first)
    before = store.version
    for dry_run in (True, False):
        with pytest.raises(
            ConflictError, match=rf"could not revert version {mistake}: 1 of"
        ) as caught:
            store.revert(mistake, dry_run=dry_run)
        assert caught.value.ids == (first,)
    assert store.version == before


def test_a_deleted_memory_that_is_there_again_is_a_conflict(store):
    stored = store.add("a", id="x")
    deleting = store.delete(stored.id).version
    store.add("b", id="x")
    with pytest.raises(ConflictError) as caught:
        store.revert(deleting)
    assert caught.value.ids == ("x",)


def test_a_version_that_changed_no_memory_cannot_be_reverted(store):
    store.add("a")
    version = store.optimize().version
    with pytest.raises(InvalidInputError, match=f"version {version} changed no memories"):
        store.revert(version)


def test_what_has_nothing_to_revert_names_the_newest_version_below_that_has(store):
    store.add("a")
    wrote = store.add("b").version
    upkeep = store.optimize().version
    assert upkeep > wrote
    with pytest.raises(InvalidInputError, match=f"newest below it that did is version {wrote}$"):
        store.revert(upkeep)
    with pytest.raises(InvalidInputError, match=r"nothing to revert; none below it did$"):
        store.revert(2)


def test_a_tag_on_a_version_of_upkeep_reverts_the_write_whose_memories_that_has(store):
    """The tag that a user sets after a write is on what upkeep made of it, and reverted nothing."""
    store.add("a")
    wrote = store.add("b").version
    store.optimize()
    upkeep = store.tag("a-tag")
    store.add("c")
    assert upkeep > wrote
    plan = store.revert("a-tag", dry_run=True)
    assert (plan.target, len(plan.disappear)) == (wrote, 1)
    with pytest.raises(InvalidInputError, match="changed no memories"):
        store.revert(str(upkeep))
    store.revert("a-tag")
    assert contents(store) == ["a", "c"]
    store.tag("on-a-write", store.version)
    store.revert("on-a-write")
    assert contents(store) == ["a", "b", "c"]


def test_a_tag_on_upkeep_whose_write_was_cleaned_up_cannot_be_reverted(store):
    store.add("a")
    wrote = store.add("b").version
    store.optimize()
    upkeep = store.tag("a-tag")
    store.add("c")
    store.optimize(clean_older_than=timedelta(0))
    told = f"'a-tag' is on version {upkeep}, which upkeep made, and version {wrote}, .* cleaned up"
    with pytest.raises(NotFoundError, match=told):
        store.revert("a-tag")
    assert contents(store) == ["a", "b", "c"]


def test_a_write_without_the_version_before_it_cannot_be_reverted(store):
    store.add("a")
    wrote = store.add("b").version
    store.tag("b", wrote)
    store.optimize(clean_older_than=timedelta(0))
    told = f"could not revert version {wrote} without the one before it: .* cleaned up"
    with pytest.raises(NotFoundError, match=told):
        store.revert("b")


def test_the_first_version_cannot_be_reverted(store):
    with pytest.raises(NotFoundError):
        store.revert(1)


# -- tags -----------------------------------------------------------------------------------


def test_a_tag_names_a_version_until_it_is_removed(store):
    first = store.add("a").version
    assert store.tag("here") == first
    store.add("b")
    assert store.tag("older", first - 1) == first - 1
    assert store.tags() == {"here": first, "older": first - 1}
    assert store.untag("older") == first - 1
    assert store.tags() == {"here": first}


def test_a_tag_moves_only_when_asked(store):
    first = store.add("a").version
    store.tag("t")
    second = store.add("b").version
    with pytest.raises(ConflictError, match=f"tag 't' is on version {first} already"):
        store.tag("t")
    assert store.tag("t", move=True) == second
    assert store.tags() == {"t": second}
    assert store.tag("new", move=True) == second


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "x' OR '1'='1", "a\nb", "."])
def test_a_tag_has_a_plain_name(store, name):
    with pytest.raises(InvalidInputError, match=r"letters, digits|name"):
        store.tag(name)
    assert store.tags() == {}


def test_a_tag_on_no_version_and_an_unknown_tag(store):
    with pytest.raises(NotFoundError, match="no version 99"):
        store.tag("t", 99)
    with pytest.raises(NotFoundError, match="no tag 't'; there are: none"):
        store.untag("t")


# -- branches -------------------------------------------------------------------------------


def test_writes_on_a_branch_and_on_main_do_not_meet(store):
    """C29."""
    store.add("common")
    branch = store.branch("trial")
    branch.add("on the branch")
    store.add("on main")
    assert contents(branch) == ["common", "on the branch"]
    assert contents(store) == ["common", "on main"]
    assert [h.memory.content for h in store.search("branch", mode="text")] == []
    assert [h.memory.content for h in branch.search("main", mode="text")] == []
    assert (branch.branch_name, store.branch_name) == ("trial", "main")


def test_a_branch_is_listed_opened_again_and_removed(store, reopen):
    store.add("a")
    start = store.version
    store.add("b")
    store.branch("trial", start).add("c")
    found = store.branches()
    assert [(b.name, b.parent, b.parent_version) for b in found] == [("trial", "main", start)]
    assert found[0].created_at.tzinfo is not None
    assert contents(reopen(store.uri, branch="trial")) == ["a", "c"]
    store.delete_branch("trial")
    assert store.branches() == []
    with pytest.raises(NotFoundError):
        reopen(store.uri, branch="trial")
    assert contents(store) == ["a", "b"]


def test_everything_works_on_a_branch(store):
    stored = store.add("a thing", user="ana")
    branch = store.branch("trial")
    start = branch.version
    adding = branch.add("b thing").version
    branch.update(stored.id, content="c thing")
    branch.tag("here")
    assert (branch.tags(), store.tags()) == ({"here": branch.version}, {})
    assert [e.operation for e in branch.log(limit=2)] == ["update", "add"]
    assert [c.after.content for c in branch.diff(start).updated] == ["c thing"]
    branch.revert(adding)
    assert contents(branch) == ["c thing"]
    branch.optimize()
    branch.rollback("here")
    assert sorted(contents(branch)) == ["b thing", "c thing"]
    assert {h.memory.content for h in branch.search("thing")} == {"b thing", "c thing"}
    assert contents(branch.at(start)) == ["a thing"]
    branch.untag("here")
    sub = branch.branch("sub")
    sub.add("d thing")
    assert [(b.name, b.parent) for b in store.branches()] == [("sub", "trial"), ("trial", "main")]
    assert contents(store) == ["a thing"]


@pytest.mark.parametrize("name", ["", "a b", "../x", "x' OR '1'='1", "a\nb"])
def test_a_branch_has_a_plain_name(store, name):
    with pytest.raises(InvalidInputError):
        store.branch(name)
    assert store.branches() == []


def test_a_branch_that_is_there_and_one_that_is_not(store):
    store.branch("trial")
    for name in ("trial", "main"):
        with pytest.raises(ConflictError, match=f"a branch '{name}' already"):
            store.branch(name)
    with pytest.raises(NotFoundError, match="no branch 'x'; there are: trial"):
        store.delete_branch("x")
    with pytest.raises(NotFoundError, match="no branch 'main'"):
        store.delete_branch("main")
    with pytest.raises(NotFoundError):
        store.branch("late", 99)


def test_a_branch_that_a_tag_holds_is_not_removed(store):
    branch = store.branch("trial")
    branch.add("a")
    branch.tag("held")
    with pytest.raises(ConflictError, match="delete branch 'trial'"):
        store.delete_branch("trial")
    branch.untag("held")
    store.delete_branch("trial")
    assert store.branches() == []


# -- checkout -------------------------------------------------------------------------------


def test_a_checkout_is_a_store_of_its_own(store, tmp_path, reopen, place):
    """C49."""
    stored = store.add("a thing")
    then = store.version
    store.update(stored.id, content="changed")
    clone = store.checkout(then, place(tmp_path / "clone"))
    assert contents(clone) == ["a thing"]
    clone.add("only in the clone")
    clone.update(stored.id, content="another thing")
    assert contents(store) == ["changed"]
    assert contents(reopen(tmp_path / "clone")) == ["another thing", "only in the clone"]
    assert [h.memory.content for h in clone.search("thing", mode="text")] == ["another thing"]
    assert store.add("the source can still write").version == store.version
    assert len(clone.list()) == 2


def test_what_a_checkout_reads_is_protected_from_clean_up(store, tmp_path, place):
    stored = store.add("a thing")
    then = store.version
    clone = store.checkout(then, place(tmp_path / "clone"))
    store.update(stored.id, content="changed")
    store.optimize(clean_older_than=timedelta(0))
    clone.optimize(clean_older_than=timedelta(0))
    assert store.tags() == {f"checkout-v{then}": then}
    assert contents(clone) == ["a thing"]
    assert contents(store) == ["changed"]
    assert contents(store.at(then)) == ["a thing"]


def test_one_version_can_be_checked_out_twice(store, tmp_path, place):
    store.add("a")
    one, two = (store.checkout(store.version, place(tmp_path / name)) for name in ("one", "two"))
    one.add("b")
    assert (contents(one), contents(two)) == (["a", "b"], ["a"])


def test_a_branch_and_main_can_both_be_checked_out(store, tmp_path, place):
    store.add("a")
    branch = store.branch("trial")
    branch.add("on the branch")
    store.add("on main")
    assert branch.version == store.version
    main = store.checkout(store.version, place(tmp_path / "main"))
    trial = branch.checkout(branch.version, place(tmp_path / "trial"))
    assert (contents(main), contents(trial)) == (["a", "on main"], ["a", "on the branch"])


def test_a_checkout_onto_a_store_is_a_conflict_and_leaves_no_tag(store, tmp_path, reopen):
    store.add("a")
    other = reopen(tmp_path / "other")
    with pytest.raises(ConflictError, match="other"):
        store.checkout(store.version, other.uri)
    assert other.list() == []
    assert store.tags() == {}


@pytest.mark.disk
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_checkout_onto_something_else_is_refused_and_leaves_no_tag(store, tmp_path, kind):
    store.add("a")
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("x")
    else:
        place.mkdir()
        (place / "notes.txt").write_text("x")
    with pytest.raises(StoreFormatError, match="place"):
        store.checkout(store.version, place)
    assert store.tags() == {}


def test_a_checkout_of_no_version_is_not_found(store, tmp_path, place):
    with pytest.raises(NotFoundError):
        store.checkout(99, place(tmp_path / "clone"))
    assert not (tmp_path / "clone").exists()


def test_rollback_and_revert_work_in_a_checkout(store, tmp_path, place):
    store.add("a")
    clone = store.checkout(store.version, place(tmp_path / "clone"))
    start = clone.version
    adding = clone.add("b").version
    clone.add("c")
    clone.revert(adding)
    assert contents(clone) == ["a", "c"]
    clone.rollback(start)
    assert contents(clone) == ["a"]


def test_states_survive_a_checkout(store, tmp_path, place):
    stored = store.add("a")
    store.supersede(stored.id, "b")
    clone = store.checkout(store.version, place(tmp_path / "clone"))
    assert rows(clone) == rows(store)
    assert clone.get(stored.id).state is State.SUPERSEDED


def test_the_stores_own_tags_and_branches_are_hidden_and_cannot_be_taken(store):
    store.add("one")
    version = store.version
    store.add("two")
    with naming.holding(store._table, version):
        assert store.tags() == {}
        store._table.own().dataset.cleanup_old_versions(
            older_than=timedelta(0), error_if_tagged_old_versions=False
        )
        assert store.at(version).count() == 1
    for make in (store.tag, store.branch):
        with pytest.raises(InvalidInputError, match="the store's own"):
            make("lmem-hold-mine")
    assert naming.all_tags(store._table) == {}


def test_who_goes_back_or_merges_waits_for_who_forgets(store, monkeypatch):
    """It could write again what is being forgotten, after the proof that nothing is left."""
    monkeypatch.setattr(versioning, "_PATIENCE", 0.05)
    first = store.add("a").version
    store.branch("trial").add("b")
    second = store.add("c").version
    with store._table.place.alone(FORGET, wait=0):
        for verb, of in ((store.rollback, first), (store.revert, second), (store.merge, "trial")):
            assert verb(of, dry_run=True)
            with pytest.raises(ConflictError, match="another process holds"):
                verb(of)
    store.merge("trial")
    store.rollback(first)
    assert contents(store) == ["a"]
