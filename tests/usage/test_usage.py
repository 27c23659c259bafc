"""What recorded queries say of the memories: recalls, ranks, and what was never found."""

from __future__ import annotations

import pytest

from lance_memory import QueryRecording, Scope, Usage
from lance_memory.usage import RecordingStatus


@pytest.fixture
def store(tmp_path, reopen):
    recording = QueryRecording(redact=None, seconds=600)
    store = reopen(tmp_path / "store", record_queries=recording)
    store.add_many(
        [
            {"id": "pear", "content": "bob likes pears", "user": "bob"},
            {"id": "plum", "content": "bob likes plums and more plums", "user": "bob"},
            {"id": "kettle", "content": "the kettle is red", "user": "ann"},
            {"id": "old", "content": "old things", "user": "ann", "state": "retired"},
        ]
    )
    return store


def table(usage):
    return [
        (row["id"], row["recalls"], row["best_rank"], row["mean_rank"])
        for row in usage.memories.to_pylist()
    ]


def test_recalls_and_ranks_are_counted(store, clock):
    both = store.search("likes pears", mode="text")
    assert [hit.memory.id for hit in both] == ["pear", "plum"]
    store.search("plums", mode="text")
    last = clock.now
    store.search("zebra", mode="text")
    found = store.usage()
    assert table(found) == [
        ("plum", 2, 1, 1.5),
        ("pear", 1, 1, 1.0),
        ("kettle", 0, None, None),
    ]
    plum = found.memories.to_pylist()[0]
    assert plum["last_recalled"] == last
    assert plum["mean_score"] == pytest.approx((both[1].score + 1) / 2)
    assert found == Usage(
        version=store.version,
        scope=Scope(),
        queries=3,
        without_hits=1,
        mean_hits=1.0,
        since=found.since,
        memories=found.memories,
        recording=RecordingStatus(written=3),
    )
    assert (found.never_recalled, found.hit_rate) == (["kettle"], pytest.approx(2 / 3))


def test_without_queries_nothing_is_known(store):
    found = store.usage()
    assert (found.queries, found.hit_rate, found.mean_hits, found.since) == (0, None, 0.0, None)
    assert found.never_recalled == ["kettle", "pear", "plum"]
    assert found.memories.schema.names == [
        "id", "recalls", "last_recalled", "best_rank", "mean_rank", "mean_score",
    ]  # fmt: skip


def test_a_later_page_counts_its_ranks_and_no_query(store):
    store.search("likes pears", mode="text", k=1)
    store.search("likes pears", mode="text", k=1, offset=1)
    found = store.usage(user="bob")
    assert table(found) == [("plum", 1, 2, 2.0), ("pear", 1, 1, 1.0)]
    assert store.usage().queries == 1


def test_a_filter_chooses_memories_and_whose_queries_the_rate_is_about(store):
    store.search("pears", mode="text")
    store.search("zebra", mode="text", user="bob")
    found = store.usage(user="bob")
    assert (found.queries, found.hit_rate) == (1, 0.0)
    assert table(found) == [("pear", 1, 1, 1.0), ("plum", 0, None, None)]
    assert table(store.usage(states="retired")) == [("old", 0, None, None)]


def test_a_scoped_handle_knows_only_its_own(store):
    store.search("pears", mode="text")
    ann = store.scoped(user="ann")
    ann.search("kettle", mode="text")
    found = ann.usage()
    assert (found.scope, found.queries) == (Scope(user="ann"), 1)
    assert table(found) == [("kettle", 1, 1, 1.0)]


def test_a_past_version_knows_what_was_recalled_by_then(store, clock):
    store.search("pears", mode="text")
    then = clock.now
    clock.forward(minutes=1)
    store.search("pears", mode="text")
    store.query_log.flush()
    past = store.at(then).usage()
    assert table(past) == [
        ("kettle", 0, None, None),
        ("pear", 0, None, None),
        ("plum", 0, None, None),
    ]
    assert table(store.at(clock.forward(seconds=1)).usage())[0] == ("pear", 2, 1, 1.0)
    assert past.recording is None


def test_a_store_that_does_not_record_reads_what_others_did(store, reopen):
    store.search("pears", mode="text")
    store.query_log.flush()
    other = reopen(store.uri)
    assert table(other.usage())[0] == ("pear", 1, 1, 1.0)


def test_a_deleted_memory_is_counted_no_more(store):
    store.search("pears", mode="text")
    store.delete("pear")
    assert table(store.usage()) == [("kettle", 0, None, None), ("plum", 0, None, None)]
