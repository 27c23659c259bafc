"""The profile layer: facts by key, each with versions."""

from __future__ import annotations

import string
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import (
    AmbiguousError,
    ConflictError,
    Fact,
    InvalidInputError,
    NotFoundError,
    ProfileMemory,
    Scope,
)


@pytest.fixture
def ann(store):
    return ProfileMemory(store.scoped(tenant="t", user="ann"))


def told(facts):
    return [(fact.fact_key, fact.value, fact.version, str(fact.state)) for fact in facts]


def test_a_fact_is_a_value_under_a_key_with_a_version(ann, store):
    made = ann.set("city", "Porto", confidence=0.5)
    memory = store.get(made.id)
    assert made == Fact(
        fact_key="city",
        value="Porto",
        confidence=0.5,
        version=1,
        id=memory.id,
        scope=Scope(tenant="t", user="ann"),
        state="active",
        updated_at=memory.updated_at,
    )
    assert ann.get("city") == ann.find("city") == made
    assert (memory.kind, memory.key, memory.content) == ("profile", "profile:city", "city: Porto")
    assert memory.metadata == {"fact_key": "city", "value": "Porto", "version": 1}


def test_a_changed_fact_supersedes_the_old_one_and_is_the_one_that_is_recalled(ann, store):
    """C02."""
    old = ann.set("city", "Porto")
    new = ann.set("city", "Lisbon")
    assert told(ann.all()) == [("city", "Lisbon", 2, "active")]
    assert [m.id for m in store.list(kinds="profile")] == [new.id]
    hits = store.search("city Porto Lisbon", k=5)
    assert [hit.memory.id for hit in hits] == [new.id]
    assert told(ann.history("city")) == [
        ("city", "Porto", 1, "superseded"),
        ("city", "Lisbon", 2, "active"),
    ]
    assert [(r.memory.id, r.relation) for r in store.related(new.id, relation="updates")] == [
        (old.id, "updates")
    ]
    assert store.get(old.id).superseded_by == new.id


@pytest.mark.parametrize("value", [0, False, "", None, [], {}, 0.0])
def test_a_falsy_value_is_a_value(ann, store, value):
    """C14."""
    ann.set("flag", value)
    found = ann.get("flag").value
    assert (found, type(found)) == (value, type(value))
    assert ann.find("flag") is not None
    if not isinstance(value, list | dict):
        assert store.count(kinds="profile", metadata={"value": value}) == 1


def test_one_and_true_are_two_values_and_one_and_one_point_zero_are_one(ann):
    versions = [
        ann.set("n", value).version for value in (1, 1.0, True, [1], [1.0], [True], {"a": 0})
    ]
    assert versions == [1, 1, 2, 3, 3, 4, 5]
    assert [ann.set("n", value).version for value in ({"a": 0.0}, {"a": False})] == [5, 6]


def test_the_same_value_again_is_no_new_version_and_only_raises_the_confidence(ann, store):
    first = ann.set("city", {"name": "Porto", "since": 2020}, confidence=0.6)
    version = store.version
    again = ann.set("city", {"since": 2020, "name": "Porto"}, confidence=0.6)
    lower = ann.set("city", {"name": "Porto", "since": 2020}, confidence=0.1)
    assert (again, lower, store.version) == (first, first, version)
    surer = ann.set("city", {"name": "Porto", "since": 2020}, confidence=0.9)
    assert (surer.id, surer.version) == (first.id, 1)
    assert surer.confidence == 0.9  # as it was given, and not as a float32 reads
    assert "confidence=0.9," in repr(ann.get("city"))
    assert store.version == version + 1


def test_an_expected_version_is_checked_and_nothing_is_written_where_it_is_another(ann, store):
    ann.set("city", "Porto", expected_version=0)
    ann.set("city", "Lisbon", expected_version=1)
    before = store.version
    for expected in (0, 1, 3):
        with pytest.raises(
            ConflictError, match=r"the fact 'city': version 2 stands, and not (nothing|version \d)"
        ):
            ann.set("city", "Faro", expected_version=expected)
    with pytest.raises(ConflictError, match="version 2 stands, and not version 1"):
        ann.remove("city", expected_version=1)
    assert (store.version, ann.get("city").value) == (before, "Lisbon")


def test_a_fact_is_shown_in_a_line_with_its_id(ann):
    made = ann.set("city", {"name": "Porto", "since": [2020] * 30})
    assert str(ann.set("tea", "green")) == "tea: green"
    assert repr(made) == (
        """<Fact 'city: {"name": "Porto", "since": [2020, 2020, 2020, 2020, 2…', version 1, """
        f"confidence=1.0, active; tenant=t/user=ann, id {made.id}>"
    )


def test_going_back_in_the_store_gives_version_numbers_again(ann, store):
    """As `set` says: what was read before is to be read anew."""
    ann.set("city", "Porto")
    before = store.version
    ann.set("city", "Lisbon")
    store.rollback(before)
    again = ann.set("city", "Faro", expected_version=1)
    assert told(ann.history("city")) == [
        ("city", "Porto", 1, "superseded"),
        ("city", "Faro", 2, "active"),
    ]
    assert ann.set("city", "Rome", expected_version=again.version).version == 3


def test_a_removed_fact_is_gone_from_reads_and_its_versions_go_on(ann, store):
    """Guards against a version that names two values: who read 1 would overwrite the second."""
    ann.set("city", "Porto")
    ann.set("city", "Lisbon")
    ann.remove("city", reason="she asked")
    assert (ann.find("city"), ann.all()) == (None, [])
    assert store.log(limit=1)[0].reason == "she asked"
    with pytest.raises(NotFoundError, match="there is no fact 'city' in tenant=t/user=ann"):
        ann.remove("city")
    assert ann.set("city", "Faro", expected_version=0).version == 3
    assert told(ann.history("city")) == [
        ("city", "Porto", 1, "superseded"),
        ("city", "Lisbon", 2, "retired"),
        ("city", "Faro", 3, "active"),
    ]


def test_facts_of_another_user_are_neither_seen_nor_changed(ann, store):
    """C16."""
    bob = ProfileMemory(store.scoped(tenant="t", user="bob"))
    theirs = bob.set("city", "Rome")
    assert (ann.find("city"), ann.all()) == (None, [])
    assert ann.set("city", "Porto").version == 1
    ann.remove("city")
    for verb in (ann.get, ann.remove):
        with pytest.raises(NotFoundError):
            verb("city")
    assert bob.get("city") == theirs


def test_a_wider_handle_lists_all_and_finds_by_key_what_is_one_alone(ann, store):
    tenant = ProfileMemory(store.scoped(tenant="t"))
    bob = ProfileMemory(store.scoped(tenant="t", user="bob"))
    mine, theirs, tea = ann.set("city", "Porto"), bob.set("city", "Rome"), ann.set("tea", "green")
    assert [f.id for f in tenant.all()] == [mine.id, theirs.id, tea.id]
    assert tenant.get("tea") == tea
    with pytest.raises(AmbiguousError, match="'profile:city' is kept in 2 scopes") as caught:
        tenant.get("city")
    assert set(caught.value.candidates) == {mine.id, theirs.id}
    own = tenant.set("city", "everywhere")
    assert (tenant.get("city"), ann.get("city"), bob.get("city")) == (own, mine, theirs)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "not blank"),
        (" \t", "not blank"),
        ("x" * 201, "201 characters; it takes 200 at most"),
        ("a\nb", r"control character '\\n' at position 1"),
        ("a\0", r"control character '\\x00'"),
        ("a\u2028", "control character"),
        ("\ud800", "lone surrogate"),
        (5, "it takes a text"),
        (None, "it takes a text"),
    ],
)
def test_a_key_is_one_line_of_text(ann, key, message):
    for verb in (ann.get, ann.find, ann.history, ann.remove, lambda key: ann.set(key, 1)):
        with pytest.raises(InvalidInputError, match=message):
            verb(key)


@pytest.mark.parametrize(
    "key", ["x" * 200, "x' OR '1'='1", '"', "%", "a_", "né 😀", " a", "profile:"]
)
def test_a_key_matches_itself_alone(ann, key):
    """C13."""
    ann.set("other", 1)
    ann.set("xx", 2)
    made = ann.set(key, 3)
    assert (ann.get(key), len(ann.all())) == (made, 3)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object(), 2**64])
def test_a_value_that_is_no_json_is_refused(ann, store, value):
    before = store.version
    with pytest.raises(InvalidInputError, match="value cannot be written as JSON"):
        ann.set("n", value)
    assert store.version == before


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "high", True, float("nan")])
def test_a_confidence_is_a_share(ann, confidence):
    with pytest.raises(InvalidInputError, match="confidence="):
        ann.set("n", 1, confidence=confidence)


def test_a_key_that_another_memory_has_is_not_taken_from_it(store, ann):
    ours = store.scoped(tenant="t", user="ann")
    waiting = ours.add("city: Porto", key="profile:city", kind="profile", state="pending")
    with pytest.raises(ConflictError, match=f"memory {waiting.id} .* is pending"):
        ann.set("city", "Lisbon")
    stranger = ours.add("a note", key="profile:tea")
    with pytest.raises(ConflictError, match=f"memory {stranger.id} .* is no fact of a profile"):
        ann.set("tea", "green")
    assert (ann.find("city"), ann.find("tea"), ann.all()) == (None, None, [])


def test_an_expired_fact_leaves_its_key_to_the_next(ann, store, clock):
    """C44."""
    made = ann.set("mood", "fine")
    store.update(made.id, expires_at=clock.forward(hours=1))
    clock.forward(hours=2)
    assert ann.find("mood") is None
    assert ann.set("mood", "tired").version == 2


def test_nothing_of_a_profile_is_merged_into_other_memories(ann, store):
    """Guards against a nightly pass that makes one text of two facts, whose keys are then gone."""
    ann.set("city", "Porto in Portugal by the sea")
    ann.set("town", "Porto in Portugal by the sea")
    store.scoped(tenant="t", user="ann").add_many(["porto by the sea", "porto by the sea ."])
    plan = store.consolidate(dry_run=True)
    assert [cluster.size for cluster in plan.accepted] == [2]
    assert {store.get(source).kind for source in plan.accepted[0].sources} == {"episodic"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(string.printable, max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner, max_size=2),
    max_leaves=4,
)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_history_has_each_value_that_differs_from_the_one_before(store, values, request):
    """What is set is what is got, whatever JSON it is, and versions count the changes."""
    user = store.scoped(user=f"u{store.version}")
    profile = ProfileMemory(user)
    changes = [v for n, v in enumerate(values) if not n or repr(v) != repr(values[n - 1])]
    changed = [repr(v) for v in changes]
    for value in values:
        assert profile.set("k", value).value == value
    found = profile.history("k")
    assert [fact.version for fact in found] == list(range(1, len(found) + 1))
    assert profile.get("k") == found[-1]
    assert len(found) <= len(changed)
    assert found[-1].value == values[-1]


def test_of_writers_at_once_none_is_lost_from_the_history(ann):
    """C10, C47: each value supersedes the one before it, and the last one stands."""
    threads = [threading.Thread(target=ann.set, args=("n", number)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ann.history("n")
    assert [fact.version for fact in found] == [1, 2, 3, 4, 5, 6]
    assert {fact.value for fact in found} == set(range(6))
    assert [str(fact.state) for fact in found] == ["superseded"] * 5 + ["active"]
    assert ann.get("n") == found[-1]


@pytest.mark.parametrize("kind", ["workspace", "semantic"])
def test_a_key_that_a_memory_of_another_kind_has_is_told_at_once(ann, store, kind):
    """One of kind "workspace" was not found, and so tried against for ten seconds."""
    said = {"fact_key": "city", "value": "Porto", "version": 1}
    ours = store.scoped(tenant="t", user="ann")
    other = ours.add("Porto", key="profile:city", kind=kind, metadata=said)
    begun = time.monotonic()
    with pytest.raises(ConflictError, match=f"memory {other.id} .* is no fact of a profile"):
        ann.set("city", "Porto")
    assert time.monotonic() - begun < 5
    assert ann.find("city") is None
