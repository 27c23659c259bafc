from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import MemoryStore, RejectedError

NOON = datetime(2024, 1, 1, tzinfo=UTC)
ROWS = st.fixed_dictionaries(
    {"content": st.sampled_from("abc")},
    optional={
        "user": st.sampled_from(["u", "v"]),
        "key": st.sampled_from(["k", "l"]),
        "event_at": st.just(NOON),
        "actor": st.just("x"),
    },
)


@settings(max_examples=8, deadline=None)
@given(st.lists(ROWS, max_size=8))
def test_a_batch_is_the_same_as_one_by_one(tmp_path_factory, embedder, ticking, rows):
    path = tmp_path_factory.mktemp("admit")
    whole, single = (
        MemoryStore.open(path / name, embedder=embedder, clock=ticking())
        for name in ("whole", "single")
    )
    if rows:
        whole.add_many(rows)
    for row in rows:
        single.add(**row)

    def plain(store):
        return sorted(
            (m.content, m.user, m.key or "", m.event_at is None, m.actor) for m in store.list()
        )

    assert plain(whole) == plain(single)


def test_two_events_of_the_same_words_are_two_memories_and_each_is_known(store):
    times = [NOON, NOON.replace(hour=1)]
    for at in (*times, *times):
        store.add("good morning", event_at=at)
    assert [m.event_at for m in store.list()] == times


def test_a_large_batch_knows_what_is_there_by_id_key_and_content(store):
    store.add_many(
        [{"content": "by id", "id": "x"}, {"content": "by key", "key": "k"}, "by content"]
    )
    batch = [
        {"content": "by id", "id": "x"},
        {"content": "another", "key": "k"},
        "by content",
        *(f"new {i}" for i in range(300)),
    ]
    result = store.add_many(batch)
    assert (result.stored, sorted(result.already_there)) == (300, [0, 1, 2])
    assert store.count() == 303


def test_what_is_known_is_not_embedded_again(store, reopen, embedder):
    from lance_memory import FunctionEmbedder

    store.add_many(["a", "b"])
    asked = []

    def listen(texts):
        asked.extend(texts)
        return embedder.embed(texts)

    other = reopen(store.uri, embedder=FunctionEmbedder(listen, name="words-16", dimension=16))
    other.add_many(["a", "b", "c"])
    assert asked == ["c"]


def test_thousands_of_single_adds_later_repetitions_are_known(store):
    store.add_many([{"content": f"m{i}", "embedding": [1.0] * 16} for i in range(4_200)])
    for i in range(6):
        store.add(f"warm {i}", embedding=[1.0] * 16)
    for i in (0, 17, 4_199):
        assert store.add(f"m{i}", embedding=[1.0] * 16).outcome == "already_there"
    assert store.count() == 4_206


def test_after_a_rejected_add_the_same_memory_can_be_added(store):
    for i in range(5):
        store.add(f"m{i}")
    with contextlib.suppress(RejectedError):
        store.add("good words", kind="dream")
    assert store.add("good words").outcome == "stored"


def test_after_a_rollback_what_went_can_be_added_and_what_came_back_is_known(store):
    for i in range(6):
        store.add(f"m{i}")
    then = store.version
    store.delete([m.id for m in store.list()[:1]])
    store.add("late")
    store.rollback(then)
    assert store.add("late").outcome == "stored"
    assert store.add("m0").outcome == "already_there"
    assert store.count() == 7


def test_a_handle_that_wrote_beside_a_rival_still_knows_what_the_rival_stored(store, reopen):
    """It once took the rival's fragments for read."""
    store.add_many(f"warm {i}" for i in range(6))
    for i in range(6):
        store.add(f"one {i}")
    reopen(store.uri).add("said by a rival")
    store.add("keyed", key="k")
    assert store.add("said by a rival").outcome == "already_there"
    assert store.count() == 14


def test_metadata_that_changes_from_0_to_false_has_changed(store):
    stored = store.add("a", metadata={"n": 0})
    assert store.update(stored.id, metadata={"n": False}).updated == 1
    assert store.get(stored.id).metadata == {"n": False}
