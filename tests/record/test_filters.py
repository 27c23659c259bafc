from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import InvalidInputError, MemoryStore, Scope, ScopeError
from lance_memory.record.filters import Filter, equals, is_one_of, prefixed

TEXTS = st.text(max_size=20).filter(lambda t: not any(0xD800 <= ord(c) <= 0xDFFF for c in t))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)


@pytest.fixture(scope="module")
def law_store(tmp_path_factory, embedder, ticking):
    path = tmp_path_factory.mktemp("law") / "store"
    return MemoryStore.open(path, embedder=embedder, clock=ticking())


def same(one, other):
    """Equal as JSON: a bool is no number, and 1 and 1.0 are one number."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return (type(one) is type(other) and one == other) or (
        isinstance(one, int | float) and isinstance(other, int | float) and one == other
    )


@settings(max_examples=8, deadline=None)
@given(st.dictionaries(TEXTS, SCALARS, min_size=1, max_size=8))
def test_metadata_survives_and_every_member_is_found_by_its_value(law_store, metadata):
    """C14, as a law."""
    stored = law_store.add(json.dumps([*metadata.items()]), metadata=metadata)
    found = law_store.get(stored.id).metadata
    assert found.keys() == metadata.keys()
    assert all(same(found[k], metadata[k]) for k in metadata), found
    for name, value in metadata.items():
        hits = law_store.list(metadata={name: value})
        assert stored.id in {m.id for m in hits}, (name, value)
        assert all(same(m.metadata[name], value) for m in hits), (name, value)


@pytest.mark.parametrize(
    "value", [1e-7, 5e-324, 1e16, 1e22, 1.5e300, -0.0, 0.1 + 0.2, 2**53 + 1, 2**64 - 1, -(2**63)]
)
def test_a_number_is_found_by_itself(store, value):
    stored = store.add("a number", metadata={"n": value})
    assert [m.id for m in store.list(metadata={"n": value})] == [stored.id]


@pytest.mark.parametrize("value", [2**64, 10**30, -(10**30)])
def test_a_whole_number_keeps_its_value_or_is_refused(store, value):
    try:
        stored = store.add("a number", metadata={"n": value})
    except ValueError:
        return
    assert store.get(stored.id).metadata == {"n": value}


@settings(max_examples=100, deadline=None)
@given(TEXTS, TEXTS)
def test_a_predicate_quotes_its_value(column, value):
    for text in (equals("user", value), is_one_of("user", [value, column]), prefixed("id", value)):
        inside = text.split("'", 1)[1].rsplit("'", 1)[0]
        assert inside.replace("''", "").count("'") in (0, 2)


def test_one_of_nothing_is_no_row(store):
    store.add("a")
    assert store._snapshot().count(is_one_of("id", [])) == 0


def test_a_filter_stays_within_its_scope():
    within = Scope(tenant="t", user="u")
    assert Filter.of({}, within=within).scope == within
    assert Filter.of({"session": "s"}, within=within).scope == Scope(
        tenant="t", user="u", session="s"
    )
    assert Filter.of({"user": "u"}, within=within).scope == within
    with pytest.raises(ScopeError, match="user='v'"):
        Filter.of({"user": "v"}, within=within)


def test_nan_is_no_filter_value():
    with pytest.raises(ValueError, match="finite"):
        Filter.of({"metadata": {"n": math.inf}}, within=Scope())


@pytest.mark.parametrize(
    "where",
    [{"user": "\ud800"}, {"tags": "\ud800"}, {"metadata": {"\ud800": 1}}, {"key": "\udfff"}],
    ids=ascii,
)
def test_a_lone_surrogate_is_no_filter_value(store, where):
    with pytest.raises(InvalidInputError, match="surrogate"):
        store.list(**where)


@pytest.mark.parametrize("bad", ["\ud800", None, 5], ids=ascii)
def test_a_reason_is_a_text(store, bad):
    stored = store.add("a")
    before = store.version
    for verb in (store.retire, store.delete, store.unretire):
        with pytest.raises(InvalidInputError, match="reason"):
            verb(stored.id, reason=bad)
    assert store.version == before
