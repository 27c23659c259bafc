"""What somebody who tried to break the store once could."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    ConsolidationPlan,
    FunctionEmbedder,
    InvalidInputError,
    MemoryStore,
    RejectedError,
)


def test_threads_read_and_write_while_upkeep_tags_and_branches_go_on(store):
    """Engine calls that change their handle made others fail with "already borrowed"."""
    store.add_many(f"memory {i}" for i in range(500))
    stop, failures, done = threading.Event(), [], []

    def loop(act):
        count = 0
        while not stop.wait(0.01):  # else upkeep would be overtaken again and again
            count += 1
            try:
                act(count)
            except ConflictError:
                pass
            except Exception as error:
                failures.append(error)
                return
        done.append(count)

    readers = [
        lambda n: store.count(),
        lambda n: store.search("memory", k=3),
        lambda n: store.list(limit=3),
    ]
    threads = [
        threading.Thread(target=loop, args=(act,))
        for act in [*readers, lambda n: store.add(f"new {n}")]
    ]
    for thread in threads:
        thread.start()
    for i in range(3):
        store.optimize(vector_index_from=256)
        store.tag(f"t{i}")
        store.branch(f"b{i}")
        store.delete_branch(f"b{i}")
        store.untag(f"t{i}")
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert min(done) > 3


def tampered(plan, change):
    document = json.loads(plan.to_json())
    change(document["clusters"])
    return json.dumps(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda clusters: clusters[0].update(sources={}),
        lambda clusters: clusters.append(clusters[0]),
        lambda clusters: clusters[0]["derived"].update(key="K"),  # told when it is applied
        lambda clusters: clusters[0]["derived"].update(state="retired"),
        lambda clusters: clusters[0]["derived"].update(superseded_by="me"),
        lambda clusters: clusters[0]["derived"].update(revision=-5),
        lambda clusters: clusters[0].update(derived="hello"),
    ],
)
def test_a_plan_that_was_edited_into_nonsense_is_refused(store, change):
    store.add_many([{"content": f"tea at {i}", "session": "s"} for i in range(3)])
    plan = store.consolidate(ConsolidateOptions(by="session"), dry_run=True)
    before = store.version
    with pytest.raises(InvalidInputError, match="plan"):
        store.apply(ConsolidationPlan.from_json(tampered(plan, change)))
    assert store.version == before


@pytest.mark.parametrize(
    "column", ["event_at", "expires_at", "valid_from", "created_at", "updated_at"]
)
@pytest.mark.parametrize("seconds", [570_000_000_000, -100_000_000_000])
def test_a_time_that_no_calendar_holds_is_refused(store, column, seconds):
    """It was stored, and then no read of the whole store worked."""
    far = pa.array([None, seconds * 10**6], pa.timestamp("us", "UTC"))
    with pytest.raises(RejectedError, match=rf"row 1: {column}") as caught:
        store.add_many(pa.table({"content": ["a", "b"], column: far}))
    assert caught.value.rows == (1,)
    with pytest.raises(RejectedError, match=column):
        store.add_many([{"content": "a", column: datetime.max.replace(tzinfo=UTC)}])
    with pytest.raises(RejectedError, match=column):
        store.add_many(
            pa.table({"content": ["a"], column: pa.array([2**60], pa.timestamp("s", "UTC"))})
        )
    assert store.count(states="any") == 0


def test_metadata_too_deep_to_read_everywhere_is_refused(store):
    deep: dict = {}
    for _ in range(300):
        deep = {"in": deep}
    with pytest.raises(RejectedError, match="deeper than 100"):
        store.add("deep", metadata=deep)


@pytest.mark.parametrize(
    "values", [{"seq": 3.7}, {"seq": True}, {"revision": 0}, {"revision": 2**63 - 1}]
)
def test_whole_numbers_are_whole(store, values):
    with pytest.raises(RejectedError, match=next(iter(values))):
        store.add_many([{"content": "a", **values}])


def test_many_copies_of_one_text_cluster_in_bounded_memory(tmp_path):
    """n copies have n² pairs; 20,000 once took 5 GB."""
    import tracemalloc

    from lance_memory.curate.cluster.groups import near_duplicates

    vectors = np.ones((6_000, 8), dtype=np.float32) / np.float32(np.sqrt(8))
    tracemalloc.start()
    clusters = near_duplicates(vectors, floor=0.9, max_size=20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(clusters), {len(c) for c in clusters}) == (300, {20})
    assert peak < 120 * 2**20  # the pairs alone would be 432 MB


def test_a_transform_cannot_take_a_source_out_of_the_plan(store):
    store.add_many([{"content": f"tea at {i}", "session": "s"} for i in range(4)])

    def greedy(memories):
        if isinstance(memories, list):
            memories.pop()
        return "tea"

    plan = store.consolidate(ConsolidateOptions(by="session", max_dropped=1), greedy, dry_run=True)
    assert [c.size for c in plan.clusters] == [4]


def test_a_long_query_is_answered_in_time(store):
    store.add_many(f"tea {i}" for i in range(200))
    started = time.process_time()
    assert len(store.search("what is the tea like " * 5_000, k=3)) == 3
    assert time.process_time() - started < 5


def test_many_keys_are_named_in_one_look(store):
    store.add_many({"content": f"m{i}", "key": f"k{i}"} for i in range(1_000))
    started = time.process_time()
    assert store.retire([f"k{i}" for i in range(1_000)]).updated == 1_000
    assert time.process_time() - started < 3
    assert store.count() == 0


def test_refs_may_come_from_a_generator_also_when_a_race_is_lost(store, reopen):
    ids = store.add_many(["a", "b"]).ids
    assert store.retire(identifier for identifier in ids).updated == 2


def test_a_writer_goes_on_when_another_process_cleans_up(store, reopen):
    rival = reopen(store.uri)
    for i in range(5):
        store.add(f"m{i}")
    held = rival._snapshot()
    store.optimize(clean_older_than=timedelta(0))
    assert held.version < store.version
    rival.add("after the clean-up")
    assert store.count() == 6


@pytest.mark.slow
def test_a_filtered_page_is_full_with_a_vector_index_of_many_partitions(tmp_path):
    """A search that stopped after 32 partitions gave empty pages."""
    rng = np.random.default_rng(0)
    users, rows, width = 200, 150_000, 16
    centres = rng.normal(size=(users, width)).astype(np.float32) * 3
    of_user = rng.integers(0, users, rows)
    vectors = centres[of_user] + rng.normal(size=(rows, width)).astype(np.float32)
    ones = FunctionEmbedder(lambda t: np.ones((len(t), width)), name="ones", dimension=width)
    store = MemoryStore.open(tmp_path / "s", embedder=ones)
    store.add_many(
        pa.table(
            {
                "content": [f"m{i}" for i in range(rows)],
                "user": [f"u{u}" for u in of_user],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), width),
            }
        )
    )
    store.optimize()
    for user in range(0, users, 7):
        far = -centres[user]  # the right rows lie in partitions far from the query
        assert len(store.search(vector=far, k=10, user=f"u{user}")) == 10
