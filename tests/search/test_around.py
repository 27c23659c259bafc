"""What stands next to memories in their sessions, and the vectors of memories by id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lance_memory import InvalidInputError

START = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
def talk(store):
    """Two sessions of nine turns, stored out of order; the ids by name."""
    rows = [
        {
            "content": f"turn {n} of {session}",
            "session": session,
            "user": "ana",
            "key": f"{session}{n}",
            "event_at": START + timedelta(minutes=n),
        }
        for n in (3, 1, 0, 8, 5, 2, 7, 4, 6)
        for session in ("a", "b")
    ]
    result = store.add_many([*rows, {"content": "alone", "user": "ana", "key": "alone"}])
    return {row["key"]: id for row, id in zip([*rows, {"key": "alone"}], result.ids, strict=True)}


def near(view, talk, *names, **options):
    of = {id: name for name, id in talk.items()}
    found = view.around([talk[name] for name in names], **options)
    return [(of[one.of], one.offset, of[one.memory.id]) for one in found]


def test_neighbours_are_in_the_order_of_time_within_the_session(store, talk):
    assert near(store, talk, "a3", "b0") == [
        ("a3", -1, "a2"), ("a3", 1, "a4"), ("b0", 1, "b1"),
    ]  # fmt: skip
    assert near(store, talk, "a8", before=2, after=3) == [("a8", -1, "a7"), ("a8", -2, "a6")]
    assert near(store, talk, "a3", before=0) == [("a3", 1, "a4")]
    assert near(store, talk, "alone") == near(store, talk) == []


def test_what_does_not_pass_is_stepped_over(store, talk):
    store.retire([talk["a4"], talk["a5"]])
    assert near(store, talk, "a3") == [("a3", -1, "a2"), ("a3", 1, "a6")]
    states = ("active", "retired")
    assert near(store, talk, "a3", before=0, states=states) == [("a3", 1, "a4")]
    store.retire([talk[f"a{n}"] for n in (0, 1, 2, 6, 7, 8)])
    assert near(store, talk, "a3") == []


def test_a_past_version_has_the_neighbours_of_then(store, talk):
    store.tag("before")
    store.retire(talk["a4"])
    assert near(store.at("before"), talk, "a3", before=0) == [("a3", 1, "a4")]
    assert near(store, talk, "a3", before=0) == [("a3", 1, "a5")]


def test_no_scope_has_neighbours_or_vectors_of_another(store, talk):
    bob = store.scoped(user="bob")
    assert bob.around(talk.values()) == []
    assert bob.embeddings(talk.values()) == {}
    one = store.scoped(session="a")
    assert near(one, talk, "b3", "a0") == [("a0", 1, "a1")]
    assert one.embeddings([talk["a0"], talk["b0"]]).keys() == {talk["a0"]}


def test_vectors_are_those_that_get_gives(store, talk):
    found = store.embeddings([talk["a0"], talk["b5"], "unknown", "x' OR '1'='1"])
    assert found.keys() == {talk["a0"], talk["b5"]}
    for id, vector in found.items():
        np.testing.assert_array_equal(vector, store.get(id).embedding)
        assert vector.dtype == np.float32
    store.retire(talk["a0"])
    assert store.embeddings([talk["a0"]]).keys() == {talk["a0"]}
    assert store.embeddings([]) == {}


@pytest.mark.parametrize(
    "wrong", [{"ids": "text"}, {"ids": [5]}, {"before": -1}, {"after": 1.5}, {"kinds": "dreams"}]
)
def test_what_makes_no_sense_is_refused(store, wrong):
    with pytest.raises(InvalidInputError):
        store.around(wrong.pop("ids", ["a"]), **wrong)
