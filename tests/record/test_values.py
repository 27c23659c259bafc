from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    InvalidInputError,
    NotFoundError,
    RejectedError,
    Scope,
    ScopeError,
    StoreFormatError,
)
from lance_memory.record.identity import content_hash, content_hashes, new_id, new_ids
from lance_memory.record.memory import Memory
from lance_memory.record.schema import StoreFormat, arrow_schema, read_format
from lance_memory.record.times import parse_instant, utc, utc_now

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(3000, 1, 1), timezones=st.just(UTC))


@given(MOMENTS, st.integers(1, 50))
def test_ids_are_version_7_and_sort_by_place(moment, count):
    ids = new_ids(count, moment)
    assert ids == sorted(set(ids))
    for identifier in ids:
        parsed = uuid.UUID(identifier)
        assert (str(parsed), parsed.version, parsed.variant) == (identifier, 7, uuid.RFC_4122)
        assert parsed.int >> 80 == int(moment.timestamp() * 1_000_000) // 1000


@given(MOMENTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=999)))
def test_ids_sort_by_time(moment, later):
    assert new_id(moment) < new_id(moment + later)


def test_a_content_hash_depends_on_the_text_alone():
    assert content_hashes(["a", "b", "a"]) == [
        content_hash("a"),
        content_hash("b"),
        content_hash("a"),
    ]
    assert len(content_hash("")) == 32


@settings(max_examples=20, deadline=None)
@given(
    st.datetimes(
        timezones=st.timezones(), min_value=datetime(1900, 1, 1), max_value=datetime(2100, 1, 1)
    )
)
def test_an_instant_is_the_same_in_utc_and_as_text(moment):
    assert utc(moment).timestamp() == moment.timestamp()
    assert utc(moment).tzinfo is UTC
    assert parse_instant(utc(moment).isoformat()) == utc(moment)


def test_the_present_is_aware():
    assert utc_now().tzinfo is UTC


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2025-13-01T00:00:00+00:00", "2025-01-01", "2025-01-01T00:00:00"]
)
def test_a_text_that_names_no_instant_is_refused(text):
    with pytest.raises(InvalidInputError, match="when="):
        parse_instant(text, "when")


def test_a_scope_holds_what_agrees_on_every_level_it_gives():
    outer = Scope(tenant="t")
    assert outer.holds(outer)
    assert outer.holds(Scope(tenant="t", user="u"))
    assert not outer.holds(Scope(user="u"))
    assert not Scope(tenant="t", user="u").holds(outer)
    assert Scope().holds(outer)
    assert (bool(Scope()), bool(outer), str(Scope()), str(outer)) == (
        False,
        True,
        "(all)",
        "tenant=t",
    )


def test_a_scope_narrows_to_more_levels_only():
    assert Scope(tenant="t").narrowed(user="u") == Scope(tenant="t", user="u")
    assert Scope(tenant="t").narrowed(tenant="t") == Scope(tenant="t")
    with pytest.raises(ScopeError, match="tenant='x'"):
        Scope(tenant="t").narrowed(tenant="x")


@pytest.mark.parametrize(
    ("state", "expires", "visible"),
    [
        ("active", None, True),
        ("active", NOON + timedelta(seconds=1), True),
        ("active", NOON, False),
        ("retired", None, False),
        ("pending", None, False),
    ],
)
def test_a_memory_is_visible_while_active_and_not_expired(store, state, expires, visible):
    memory = store.get(store.add("a", state=state, expires_at=expires).id)
    assert isinstance(memory, Memory)
    assert memory.visible_at(NOON) is visible


def test_a_memory_happened_at_its_event_or_when_it_was_learned(store):
    event, learned = (
        store.add("a", event_at=NOON.astimezone(timezone(timedelta(hours=5)))),
        store.add("b"),
    )
    assert store.get(event.id).happened_at == NOON
    assert store.get(learned.id).happened_at == store.get(learned.id).created_at


def test_a_format_is_read_back_from_its_schema():
    fmt = StoreFormat(embedding_model="m", dimension=3)
    assert read_format(arrow_schema(fmt), "here") == fmt


@pytest.mark.parametrize("change", [{"dimension": "three"}, {"schema_version": ""}])
def test_a_damaged_format_is_refused(change):
    schema = arrow_schema(StoreFormat(embedding_model="m", dimension=3))
    metadata = {
        **schema.metadata,
        **{f"lance_memory.{k}".encode(): v.encode() for k, v in change.items()},
    }
    with pytest.raises(StoreFormatError, match="here"):
        read_format(schema.with_metadata(metadata), "here")


def test_errors_say_their_message_and_carry_their_facts():
    assert str(NotFoundError("there is no x")) == "there is no x"
    assert str(NotFoundError()) == ""
    assert RejectedError("m", rows=[1, 2]).rows == (1, 2)
