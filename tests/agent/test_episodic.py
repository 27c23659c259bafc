"""The episodic layer: events by session, type, time and importance."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lance_memory import (
    Episode,
    EpisodicMemory,
    FunctionEmbedder,
    Heuristic,
    InvalidInputError,
    MemoryStore,
    RejectedError,
    ScopeError,
)


def day(number):
    return datetime(2025, 3, number, 12, tzinfo=UTC)


@pytest.fixture
def ann(store):
    return store.scoped(tenant="t", user="ann")


EVENTS = [
    Episode(content="the build failed", type="tool_error", session="s1", importance=0.9, at=day(1)),
    Episode(content="we chose postgres", type="decision", session="s1", importance=0.8, at=day(3)),
    Episode(content="we met at noon", session="s2", importance=0.2, at=day(2)),
    Episode(content="the build is green", type="", session="s2", importance=0.5, at=day(4)),
]


@pytest.fixture
def events(ann):
    layer = EpisodicMemory(ann)
    layer.add_many(EVENTS)
    return layer


def contents(memories):
    return [memory.content for memory in memories]


def test_an_event_is_kept_with_all_that_is_said_of_it(ann):
    made = EpisodicMemory(ann).add(
        "the build failed",
        type="tool_error",
        session="s1",
        importance=0.75,
        at=day(1),
        metadata={"tool": "make", "code": 0},
    )
    memory = ann.get(made.id)
    assert (memory.kind, memory.session, memory.importance) == ("episodic", "s1", 0.75)
    assert (memory.event_at, memory.user) == (day(1), "ann")
    assert memory.metadata == {"tool": "make", "code": 0, "type": "tool_error"}


def test_what_is_not_said_of_an_event_is_left_to_the_store(ann, clock):
    memory = ann.get(EpisodicMemory(ann).add("we met at noon").id)
    assert (memory.session, memory.metadata, memory.event_at) == ("", {}, None)
    assert memory.importance == pytest.approx(0.25 + 0.1 * 4 / 60)


def test_many_events_are_one_version_and_one_call_of_the_embedder(tmp_path, clock):
    calls = []

    def embed(texts):
        calls.append(len(texts))
        return [[1.0, float(len(text))] for text in texts]

    embedder = FunctionEmbedder(embed, name="lengths", dimension=2)
    store = MemoryStore.open(tmp_path / "s", embedder=embedder, clock=clock, upkeep=None)
    version = store.version
    made = EpisodicMemory(store).add_many(EVENTS)
    assert (made.stored, store.version, calls) == (4, version + 1, [4])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, [3, 1, 2, 0]),
        ({"newest_first": False}, [0, 2, 1, 3]),
        ({"limit": 2}, [3, 1]),
        ({"session": "s1"}, [1, 0]),
        ({"type": "decision"}, [1]),
        ({"type": "none such"}, []),
        ({"since": day(2), "until": day(4)}, [1, 2]),
        ({"min_importance": 0.5}, [3, 1, 0]),
        ({"min_importance": 0.8, "session": "s1", "limit": 1}, [1]),
    ],
    ids=str,
)
def test_events_are_listed_by_session_type_time_and_importance(events, asked, expected):
    assert contents(events.list(**asked)) == [EVENTS[place].content for place in expected]


def test_events_are_recalled_within_the_same_bounds(events):
    nearest = {hit.memory.content for hit in events.recall("the build", k=2)}
    assert nearest == {"the build is green", "the build failed"}
    only = events.recall("the build", type="tool_error", min_importance=0.5)
    assert [hit.memory.content for hit in only] == ["the build failed"]
    assert events.recall("the build", k=0).hits == ()


def test_a_falsy_member_of_an_event_is_found(ann):
    """C14."""
    layer = EpisodicMemory(ann)
    for place, value in enumerate([0, False, "", None]):
        layer.add(f"event {place}", metadata={"code": value})
    for place, value in enumerate([0, False, "", None]):
        assert contents(layer.list(metadata={"code": value})) == [f"event {place}"]


def test_other_kinds_and_other_users_are_not_among_the_events(events, store, ann):
    """C16."""
    ann.add("the build is a fact", kind="semantic")
    store.scoped(tenant="t", user="bob").add("the build of bob", kind="episodic")
    assert len(events.list()) == len(EVENTS)
    found = {hit.memory.content for hit in events.recall("the build", k=10)}
    assert found == {event.content for event in EVENTS}
    with pytest.raises(ScopeError):
        events.list(user="bob")
    with pytest.raises(InvalidInputError, match="this layer is about episodic memories"):
        events.list(kinds="semantic")


def test_an_event_has_one_type(events):
    with pytest.raises(InvalidInputError, match="type='a', and metadata says type='b'"):
        events.add("x", type="a", metadata={"type": "b"})
    with pytest.raises(InvalidInputError, match="type='a', and metadata asks for type='b'"):
        events.list(type="a", metadata={"type": "b"})
    made = events.add("typed by its metadata", metadata={"type": "b"})
    assert [memory.id for memory in events.list(type="b")] == [made.id]


def test_a_batch_with_a_bad_event_stores_none_of_it(events, store):
    """C23."""
    before = store.version
    with pytest.raises(RejectedError) as caught:
        events.add_many([Episode(content="good"), Episode(content="  ")])
    assert (caught.value.rows, store.version) == ((1,), before)
    with pytest.raises(RejectedError):
        events.add("naive", at=datetime(2025, 1, 1))
    with pytest.raises(RejectedError, match="importance"):
        events.add("too much", importance=1.5)


def test_the_assessor_says_how_much_an_event_matters_of_which_nobody_does(ann):
    asked = []

    def assessor(messages):
        asked.append([(str(m.role), m.content) for m in messages])
        return 0.625

    layer = EpisodicMemory(ann, assessor=assessor)
    made = layer.add_many(
        [
            Episode(content="one", role="assistant"),
            Episode(content="two", importance=0.0),
            Episode(content="three", role="narrator"),
        ]
    )
    assert [ann.get(id).importance for id in made.ids] == [0.625, 0.0, 0.625]
    assert asked == [[("assistant", "one")], [("user", "three")]]
    assert ann.get(made.ids[2]).role == "narrator"


def test_an_assessor_that_gives_no_share_is_told_of(ann):
    with pytest.raises(InvalidInputError, match=r"importance=7; it takes a number within 0\.\.1"):
        EpisodicMemory(ann, assessor=lambda messages: 7).add("x")


def test_the_default_assessor_is_the_heuristic(ann):
    made = EpisodicMemory(ann).add("Remember that I am allergic to peanuts.")
    assert ann.get(made.id).importance > 0.8
    plain = EpisodicMemory(ann, assessor=Heuristic(asked=0, personal=0)).add("Always remember it.")
    assert ann.get(plain.id).importance < 0.3


@pytest.mark.parametrize("type", ["", "decision"])
def test_metadata_that_is_no_mapping_is_refused(ann, type):
    with pytest.raises(InvalidInputError, match="metadata"):
        EpisodicMemory(ann).add("we chose postgres", type=type, metadata=[])
    assert ann.count() == 0
