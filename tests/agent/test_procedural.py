"""The procedural layer: procedures by name, their counts, and which of them fits best."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lance_memory import (
    AmbiguousError,
    ConflictError,
    EmbeddingError,
    FunctionEmbedder,
    InvalidInputError,
    NotFoundError,
    ProceduralMemory,
    Procedure,
    ScopeError,
)

HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.append(str(HERE))

from record_child import NAME, THREADS, USES, counting, procedures  # noqa: E402

STEPS = ["run the tests", "tag the commit"]


@pytest.fixture
def user(store):
    return store.scoped(tenant="t", user="ann")


@pytest.fixture
def known(user):
    return ProceduralMemory(user)


def counts(one):
    return (one.successes, one.failures, one.timed, one.mean_seconds)


# -- learn ------------------------------------------------------------------------------------


def test_a_learned_procedure_has_its_steps_and_no_uses(known, user, clock):
    made = known.learn("deploy", context="release the web service", steps=STEPS)
    memory = user.get("procedure:deploy")
    assert made == Procedure(
        name="deploy",
        context="release the web service",
        steps=tuple(STEPS),
        id=memory.id,
        scope=user.scope,
        learned_at=memory.created_at,
    )
    assert known.get("deploy") == known.find("deploy") == made
    assert (memory.kind, made.uses, made.success_rate) == ("procedural", 0, 0.5)
    assert memory.content == (
        "deploy: release the web service\n1. run the tests\n2. tag the commit"
    )


def test_the_embedding_is_of_the_context_alone(known, user, embedder):
    known.learn("deploy", context="release the web service", steps=STEPS)
    own = user.get("procedure:deploy").embedding
    of_context = embedder.embed(["release the web service"])[0]
    assert own @ of_context / np.linalg.norm(own) / np.linalg.norm(of_context) == pytest.approx(1)
    (hit,) = user.search("release the web service", mode="vector")
    assert hit.similarity == pytest.approx(1)


def test_other_steps_supersede_the_old_ones_and_begin_without_counts(known, user):
    """C02. What was counted was counted of other steps, and stays with them."""
    old = known.learn("deploy", context="release", steps=STEPS)
    known.record("deploy", success=True, seconds=4)
    new = known.learn("deploy", context="release", steps=[*STEPS, "push the tag"])
    assert (new.uses, new.mean_seconds, new.last_used, new.id != old.id) == (0, None, None, True)
    assert [one.id for one in known.list()] == [new.id]
    assert [ranked.procedure.id for ranked in known.best("release")] == [new.id]
    before = user.get(old.id)
    assert (before.state, before.superseded_by) == ("superseded", new.id)
    assert before.metadata["successes"] == 1
    assert [r.memory.id for r in user.related(new.id, relation="updates")] == [old.id]


def test_another_context_changes_the_procedure_in_place_and_keeps_the_counts(known, user):
    old = known.learn("deploy", context="release", steps=STEPS)
    known.record("deploy", success=True, seconds=4)
    new = known.learn("deploy", context="ship to customers", steps=STEPS)
    assert (new.id, new.context, counts(new)) == (old.id, "ship to customers", (1, 0, 1, 4.0))
    (found,) = known.best("ship to customers")
    assert found.similarity == pytest.approx(1)
    assert user.get(new.id).content.startswith("deploy: ship to customers\n")


def test_learning_what_is_known_writes_nothing(known, store):
    made = known.learn("deploy", context="release", steps=STEPS)
    version = store.version
    assert known.learn("deploy", context="release", steps=tuple(STEPS)) == made
    assert store.version == version


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name is ''; it takes a text that is not blank"),
        ({"name": "a\tb"}, "control character"),
        ({"name": "x" * 201}, "200 at most"),
        ({"context": " "}, "context=' '"),
        ({"context": None}, "context=None"),
        ({"steps": []}, "one step at least"),
        ({"steps": "run"}, "steps='run'; it takes a list of texts"),
        ({"steps": ["run", ""]}, "steps=''"),
        ({"steps": [1]}, "steps"),
    ],
)
def test_a_procedure_has_a_name_a_context_and_steps(known, store, changes, message):
    before = store.version
    given = {"name": "deploy", "context": "release", "steps": STEPS, **changes}
    with pytest.raises(InvalidInputError, match=message):
        known.learn(given.pop("name"), **given)
    assert store.version == before


def test_a_name_that_another_memory_has_is_not_taken_from_it(known, user):
    note = user.add("a note", key="procedure:deploy")
    with pytest.raises(ConflictError, match=f"memory {note.id} .* is no procedure"):
        known.learn("deploy", context="release", steps=STEPS)
    with pytest.raises(NotFoundError, match="there is no procedure 'deploy' in tenant=t/user=ann"):
        known.record("deploy", success=True)
    assert (known.find("deploy"), known.list()) == (None, [])


# -- record -----------------------------------------------------------------------------------


def test_uses_are_counted_with_a_true_running_mean(known, clock):
    known.learn("deploy", context="release", steps=STEPS)
    for success, seconds in ((True, 10), (False, 20), (True, None), (True, 0.5)):
        last = known.record("deploy", success=success, seconds=seconds)
    assert counts(last) == (3, 1, 3, pytest.approx((10 + 20 + 0.5) / 3))
    assert last == known.get("deploy")
    assert (last.success_rate, last.revision) == (4 / 6, 5)
    assert clock.now > last.last_used > last.learned_at


def test_what_others_say_of_the_memory_stays(known, user):
    made = known.learn("deploy", context="release", steps=STEPS)
    user.update(made.id, metadata={**user.get(made.id).metadata, "owner": "ops"}, tags=["ci"])
    known.record("deploy", success=True)
    memory = user.get(made.id)
    assert (memory.metadata["owner"], memory.tags) == ("ops", ("ci",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"success": 1}, "success=1; it takes True or False"),
        ({"success": True, "seconds": -1}, "seconds=-1"),
        ({"success": True, "seconds": float("nan")}, "seconds=nan"),
        ({"success": True, "seconds": float("inf")}, "seconds=inf"),
    ],
)
def test_a_use_went_well_or_not_and_took_some_time(known, given, message):
    made = known.learn("deploy", context="release", steps=STEPS)
    with pytest.raises(InvalidInputError, match=message):
        known.record("deploy", **given)
    assert known.get("deploy") == made


def test_no_use_is_lost_when_two_processes_count_from_several_threads(tmp_path):
    """C46, C47: each count is read, added to and written with the revision that was read."""
    place, ready, go = (tmp_path / name for name in ("store", "ready", "go"))
    here = procedures(place)
    here.learn(NAME, context="release", steps=STEPS)
    child = [sys.executable, HERE / "record_child.py", place, ready, go]
    with subprocess.Popen([*map(str, child)]) as other:
        while not ready.exists():
            assert other.poll() is None
            time.sleep(0.01)
        go.touch()
        counting(here)
        assert other.wait(timeout=60) == 0
    uses = 2 * THREADS * USES
    assert counts(here.get(NAME)) == (uses // 2, uses // 2, uses, pytest.approx((1 + USES) / 2))


# -- best -------------------------------------------------------------------------------------


def used(known, name, successes, failures, *, context="release the service"):
    """A procedure with so many uses; the counts are written at once."""
    made = known.learn(name, context=context, steps=[f"do {name}"])
    metadata = known._store.get(made.id).metadata
    told = {**metadata, "successes": successes, "failures": failures}
    known._store.update(made.id, metadata=told)
    return known.get(name)


def names(found):
    return [ranked.procedure.name for ranked in found]


def test_one_of_one_does_not_beat_many_of_many_and_what_is_untried_is_found(known):
    for name, successes, failures in (
        ("often", 98, 2), ("once", 1, 0), ("new", 0, 0), ("even", 50, 50), ("bad", 0, 1),
        ("worse", 0, 9),
    ):  # fmt: skip
        used(known, name, successes, failures)
    found = known.best("release the service", k=9)
    assert names(found) == ["often", "once", "even", "new", "bad", "worse"]
    rates = [99 / 102, 2 / 3, 51 / 102, 1 / 2, 1 / 3, 1 / 11]
    assert [ranked.score for ranked in found] == pytest.approx(rates, abs=1e-6)


def test_what_fits_better_may_beat_what_works_better(known):
    used(known, "works", 9, 1, context="bake a cake at home")
    used(known, "fits", 6, 4, context="release the service")
    assert names(known.best("release the service", k=1)) == ["fits"]


def test_each_rank_is_explained(known):
    used(known, "deploy", 98, 2)
    known.learn("new", context="release the service", steps=STEPS)
    first, second = known.best("release the service")
    assert first.explain() == (
        "score 0.971 = similarity 1.000 × success 0.971 (98 of 100; Laplace: (98 + 1) / (100 + 2))"
    )
    assert "success 0.500 (never tried; Laplace: (0 + 1) / (0 + 2))" in second.explain()


def test_k_bounds_the_answer_and_what_does_not_fit_is_left_out(known):
    used(known, "deploy", 1, 0)
    used(known, "cake", 1, 0, context="flour eggs sugar")
    all_of_them = known.best("release the service", k=9)
    assert names(all_of_them)[0] == "deploy"
    assert all(ranked.similarity > 0 for ranked in all_of_them)
    assert list(known.best("release the service", k=0)) == []
    assert names(known.best("release the service", k=9, min_similarity=0.99)) == ["deploy"]
    for wrong in ({"k": -1}, {"k": True}, {"min_similarity": 2}, {"min_similarity": -0.1}):
        with pytest.raises(InvalidInputError):
            known.best("release", **wrong)
    with pytest.raises(InvalidInputError):
        known.best(" ")


def test_one_that_works_is_found_behind_any_number_of_nearer_ones_that_fail(known, user):
    """Guards against a ranking of the nearest few alone."""
    rows = [
        {
            "content": f"bad {number}", "kind": "procedural", "key": f"procedure:bad {number}",
            "embedding": [1.0, 0.001 * number, *[0.0] * 14],
            "metadata": {
                **Procedure(name=f"bad {number}", context="x", steps=("y",), failures=8).to_metadata(),
                "embedded_by": "words-16",
            },
        }
        for number in range(90)
    ]  # fmt: skip
    good = Procedure(name="good", context="x", steps=("y",), successes=40)
    rows.append({
        "content": "good", "kind": "procedural", "key": "procedure:good",
        "embedding": [1.0, 0.5, *[0.0] * 14],
        "metadata": {**good.to_metadata(), "embedded_by": "words-16"},
    })  # fmt: skip
    user.add_many(rows)
    found = known.best("anything", k=2, vector=[1.0, *[0.0] * 15])
    assert names(found) == ["good", "bad 0"]


def test_memories_of_the_kind_that_are_no_procedures_are_passed_over(known, user):
    user.add("release the service like that", kind="procedural")
    known.learn("deploy", context="release", steps=STEPS)
    assert (names(known.best("release the service")), len(known.list())) == (["deploy"], 1)


def test_after_re_embedding_the_context_alone_is_still_what_is_compared(tmp_path, reopen):
    """Guards against vectors of whole contents, where every step counts as part of the situation."""
    place = tmp_path / "store"
    first = reopen(place)
    mine = ProceduralMemory(first.scoped(user="ann"))
    mine.learn("deploy", context="release the service", steps=["flour eggs sugar", "butter milk"])
    other = FunctionEmbedder(lambda t: first.embedder.embed(t)[:, ::-1], name="other", dimension=16)
    first.reembed(other)
    second = reopen(place, embedder=other).scoped(user="ann")
    (found,) = ProceduralMemory(second).best("release the service")
    assert found.similarity == pytest.approx(1, abs=1e-6)
    (hit,) = second.search("release the service", mode="vector")
    assert hit.similarity < 0.9


MANY = [f"word{number}" for number in range(200)]


@pytest.fixture
def swapped(tmp_path, reopen):
    """Learns so many procedures, and then gives the store another model."""

    def made(count, *, dimension=16):
        store = reopen(tmp_path / "store")
        known = ProceduralMemory(store.scoped(user="ann"))
        known.learn("bake", context="bake a cake at home", steps=[" ".join(MANY)])
        known.learn("deploy", context="release the service", steps=["flour eggs", "butter"])
        row = known._store.get("procedure:deploy")
        rows = [
            {
                "content": f"other {number}", "kind": "procedural",
                "key": f"procedure:other {number}", "embedding": row.embedding,
                "metadata": {
                    **Procedure(name=f"other {number}", context="x", steps=("y",)).to_metadata(),
                    "embedded_by": row.metadata["embedded_by"],
                },
            }
            for number in range(count - 2)
        ]  # fmt: skip
        if rows:
            known._store.add_many(rows)
        embed = store.embedder.embed
        other = FunctionEmbedder(
            lambda texts: embed(texts)[:, :dimension][:, ::-1], name="other", dimension=dimension
        )
        store.reembed(other)
        return known, other

    return made


@pytest.mark.parametrize("dimension", [16, 8])
def test_a_handle_from_before_a_re_embedding_compares_all_of_a_few(swapped, dimension):
    """Guards against an error where the store's vectors are of another model by now."""
    known, _ = swapped(2, dimension=dimension)
    found = known.best("release the service")
    assert (names(found)[0], dict(found.degraded)) == ("deploy", {})
    assert found[0].similarity == pytest.approx(1, abs=1e-6)
    assert len(known.best("release the service", k=1)) == 1
    assert list(known.best("release the service", k=0)) == []


def test_of_many_it_compares_what_words_find_and_says_so(swapped):
    known, _ = swapped(70)
    found = known.best("release the service")
    assert names(found) == ["deploy"]
    assert found[0].similarity == pytest.approx(1, abs=1e-6)
    assert list(found.degraded) == ["vector"]
    assert "from the model 'other'" in found.degraded["vector"]
    assert "without vector" in repr(found)


def test_after_re_embedding_many_the_right_one_is_found_however_far_its_content_is(
    swapped, tmp_path, reopen
):
    """Guards against candidates by vectors of contents alone: there the steps count as well."""
    _, other = swapped(160)
    user = reopen(tmp_path / "store", embedder=other).scoped(user="ann")
    nearest = user.search("bake a cake at home", mode="vector", k=64)
    assert user.get("procedure:bake").id not in {hit.memory.id for hit in nearest}
    found = ProceduralMemory(user).best("bake a cake at home", k=1)
    assert (names(found), dict(found.degraded)) == (["bake"], {})
    assert found[0].similarity == pytest.approx(1, abs=1e-6)


def test_learning_it_again_gives_it_the_vector_of_its_context_and_keeps_the_counts(
    swapped, tmp_path, reopen
):
    _, other = swapped(2)
    user = reopen(tmp_path / "store", embedder=other).scoped(user="ann")
    fresh = ProceduralMemory(user)
    fresh.record("deploy", success=True)
    (hit,) = user.search("release the service", mode="vector", k=1)
    assert hit.similarity < 0.9
    again = fresh.learn("deploy", context="release the service", steps=["flour eggs", "butter"])
    assert (again.successes, again.revision) == (1, 3)
    (hit,) = user.search("release the service", mode="vector", k=1)
    assert (hit.memory.id, hit.similarity) == (again.id, pytest.approx(1))


def test_an_embedder_that_fails_is_said(known, user):
    known.learn("deploy", context="release", steps=STEPS)
    broken = FunctionEmbedder(lambda _: 1 / 0, name="words-16", dimension=16)
    known._store._embedder = broken
    with pytest.raises(EmbeddingError, match="words-16"):
        known.best("release")


# -- what a person reads ----------------------------------------------------------------------


def test_a_procedure_is_shown_in_a_line_with_its_id(known):
    made = known.learn("deploy", context="release the web service " * 9, steps=STEPS)
    known.record("deploy", success=True)
    one = known.get("deploy")
    assert str(one).startswith("deploy: release the web service release")
    assert str(one).endswith(" (1 of 1)")
    assert repr(one) == (
        "<Procedure 'deploy: release the web service release the web service rel…', 2 steps; "
        f"tenant=t/user=ann, id {made.id}>"
    )
    (first,) = known.best("release the web service")
    assert repr(first).startswith(f"<RankedProcedure '{first.score:.3f} deploy: release")
    assert repr(first).endswith(f"id {made.id}>")


# -- scopes -----------------------------------------------------------------------------------


def test_procedures_of_another_user_are_neither_found_nor_changed(known, store):
    """C16."""
    bob = ProceduralMemory(store.scoped(tenant="t", user="bob"))
    theirs = bob.learn("deploy", context="release", steps=STEPS)
    assert (known.find("deploy"), known.list(), list(known.best("release"))) == (None, [], [])
    with pytest.raises(NotFoundError):
        known.record("deploy", success=True)
    known.learn("deploy", context="release", steps=["pray"])
    known.record("deploy", success=False)
    assert bob.get("deploy") == theirs


def test_a_wider_handle_lists_all_and_finds_by_name_what_is_one_alone(known, store):
    tenant = ProceduralMemory(store.scoped(tenant="t"))
    bob = ProceduralMemory(store.scoped(tenant="t", user="bob"))
    known.learn("deploy", context="release", steps=STEPS)
    bob.learn("deploy", context="release", steps=STEPS)
    mine = known.learn("bake", context="cake", steps=STEPS)
    assert [(one.name, one.scope.user) for one in tenant.list()] == [
        ("bake", "ann"), ("deploy", "ann"), ("deploy", "bob"),
    ]  # fmt: skip
    assert tenant.get("bake") == mine
    assert tenant.record("bake", success=True).scope.user == "ann"
    with pytest.raises(AmbiguousError, match="'procedure:deploy' is kept in 2 scopes"):
        tenant.record("deploy", success=True)


def test_nothing_procedural_is_merged_into_other_memories(known, store):
    for name in ("deploy", "release"):
        known.learn(name, context="release the service", steps=STEPS)
    assert store.consolidate(dry_run=True).clusters == ()


# -- across users -----------------------------------------------------------------------------


def learned_by(store, users, name="deploy", steps=STEPS, context="release"):
    for user in users:
        mine = ProceduralMemory(store.scoped(tenant="t", user=user))
        mine.learn(name, context=context, steps=steps)
        yield mine


def test_what_enough_users_share_is_told_and_never_whose(store):
    for number, mine in enumerate(learned_by(store, ["a", "b", "c"])):
        for _ in range(number + 1):
            mine.record("deploy", success=number > 0, seconds=number + 1.0)
    list(learned_by(store, ["a", "b"], name="rare"))
    list(learned_by(store, ["x"], name="deploy", steps=["secret step"], context="own"))
    elsewhere = ProceduralMemory(store.scoped(tenant="other", user="z"))
    elsewhere.learn("deploy", context="release", steps=STEPS)
    (found,) = ProceduralMemory(store.scoped(tenant="t")).across_users(min_users=3)
    assert (found.name, found.users, found.successes, found.failures) == ("deploy", 4, 5, 1)
    assert found.mean_seconds == pytest.approx((1 * 1 + 2 * 2 + 3 * 3) / 6)
    assert (found.context, found.steps) == ("release", tuple(STEPS))
    assert "secret" not in repr(found)


def test_a_figure_of_too_few_is_not_told(store):
    """Four have it, two have used it, and no three do the same: only that they have it is told."""
    users = list(learned_by(store, ["a", "b"])) + list(
        learned_by(store, ["c", "d"], steps=["other"], context="elsewhere")
    )
    for mine in users[:2]:
        mine.record("deploy", success=True, seconds=1)
    tenant = ProceduralMemory(store.scoped(tenant="t"))
    (found,) = tenant.across_users(min_users=3)
    assert (found.users, found.successes, found.failures) == (4, None, None)
    assert (found.mean_seconds, found.context, found.steps) == (None, None, None)
    (more,) = tenant.across_users(min_users=2)
    assert (more.successes, more.mean_seconds, more.steps) == (2, 1.0, ("other",))
    assert tenant.across_users() == []


def test_one_user_with_several_agents_is_one_user(store):
    for agent in "xyz":
        mine = ProceduralMemory(store.scoped(tenant="t", user="a", agent=agent))
        mine.learn("deploy", context="release", steps=STEPS)
    ProceduralMemory(store.scoped(tenant="t")).learn("deploy", context="release", steps=STEPS)
    assert ProceduralMemory(store.scoped(tenant="t")).across_users(min_users=2) == []


def test_a_group_is_of_one_tenant_and_of_two_users_at_least(store):
    for levels in ({"user": "a"}, {"tenant": "t", "user": "a"}):
        with pytest.raises(ScopeError, match="across_users is asked of a tenant's handle"):
            ProceduralMemory(store.scoped(**levels)).across_users()
    with pytest.raises(ScopeError):
        ProceduralMemory(store).across_users()
    for wrong in (1, 0, True, 2.5):
        with pytest.raises(InvalidInputError, match="min_users="):
            ProceduralMemory(store.scoped(tenant="t")).across_users(wrong)


@pytest.mark.parametrize(
    "said",
    [
        {"context": None},
        {"steps": [1]},
        {"steps": None},
        {"successes": "many"},
        {"failures": -1},
        {"timed": 2, "mean_seconds": "long"},
        {"last_used": "yesterday"},
        {"last_used": 5},
    ],
    ids=str,
)
def test_a_row_that_only_looks_like_a_procedure_ends_no_list_that_others_are_in(store, said):
    """A user's row once ended `list`, `best` and `across_users` of the whole tenant."""
    tenant = store.scoped(tenant="t")
    good = ProceduralMemory(tenant.scoped(user="ann")).learn(
        "deploy", context="release the web service", steps=STEPS
    )
    ours = ProceduralMemory(tenant)
    whole = {**good.to_metadata(), "procedure": "x", **said}
    bob = tenant.scoped(user="bob")
    bob.add("x: release the web", key="procedure:x", kind="procedural", metadata=whole)
    assert ours.list() == [good]
    assert [one.procedure for one in ours.best("release the web service")] == [good]
    assert ours.across_users(min_users=2) == []
    with pytest.raises(ConflictError, match="is no procedure"):
        ProceduralMemory(bob).learn("x", context="release", steps=STEPS)


def test_a_procedure_of_another_kind_is_none(known, user):
    told = known.learn("deploy", context="release", steps=STEPS).to_metadata()
    known_by = {**told, "procedure": "other"}
    user.add("other: release", key="procedure:other", kind="semantic", metadata=known_by)
    with pytest.raises(ConflictError, match="is no procedure"):
        known.learn("other", context="release", steps=STEPS)
