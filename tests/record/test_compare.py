"""When two JSON values are one, and what differs between two memories."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.record.compare import same_json

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5, "", "1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (0, False, False),
        (0, None, False),
        ("1", 1, False),
        ([1, [True]], [1.0, [True]], True),
        ([1, [True]], [1, [1]], False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": 0}, {"b": 0.0, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ({"a": {"b": False}}, {"a": {"b": 0}}, False),
        ([], {}, False),
        (2**53 + 1, float(2**53), False),
    ],
)
def test_one_is_one_point_zero_and_not_true_however_deep(one, other, same):
    assert same_json(one, other) is same
    assert same_json(other, one) is same


def unified(value):
    """The value as JSON text, with every number in one form."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return [unified(one) for one in value]
    if isinstance(value, dict):
        return {name: unified(one) for name, one in value.items()}
    return float(value)


@settings(max_examples=200, deadline=None)
@given(one=VALUES, other=VALUES)
def test_two_values_are_one_where_their_texts_are_with_numbers_in_one_form(one, other):
    texts = [json.dumps(unified(value), sort_keys=True) for value in (one, other)]
    assert same_json(one, other) is (texts[0] == texts[1])
    assert same_json(one, json.loads(json.dumps(one)))


def test_an_update_sees_what_a_filter_sees(store):
    """1.0 for 1 is nothing to write; true for 1 is, and is found as that."""
    made = store.add("a text", metadata={"n": 1})
    assert store.update(made.id, metadata={"n": 1.0}).version == made.version
    assert store.count(metadata={"n": 1.0}) == 1
    assert store.update(made.id, metadata={"n": True}).updated == 1
    assert (store.count(metadata={"n": 1}), store.count(metadata={"n": True})) == (0, 1)
