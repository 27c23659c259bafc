"""What charts are drawn from says what happened, and nothing else."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from lance_memory import report
from lance_memory.report import frames
from lance_memory.report.shown import aged, shown

START = datetime(2025, 1, 1, tzinfo=UTC)
STATES = ["active", "pending", "retired", "superseded"]


def history(rows):
    columns = ["version", "operation", "id", "change", "state_before", "state_after"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    return frame.with_columns(
        pl.col("version").cast(pl.Int64),
        pl.col("state_before", "state_after", "operation").cast(pl.String),
        pl.lit(START).alias("at"),
    )


PAST = history(
    [
        (2, "add", "a", "added", None, "active"),
        (2, "add", "b", "added", None, "active"),
        (3, "consolidate", "c", "added", None, "active"),
        (3, "consolidate", "a", "superseded", "active", "superseded"),
        (3, "consolidate", "b", "superseded", "active", "superseded"),
        (5, "delete", "b", "removed", "superseded", None),
    ]
)


def test_states_are_counted_after_each_version():
    told = frames.states(PAST).sort("version", "state").rows()
    assert told == [
        (2, "active", 2),
        (2, "superseded", 0),
        (3, "active", 1),
        (3, "superseded", 2),
        (5, "active", 1),
        (5, "superseded", 1),
    ]


def test_a_flow_leads_from_what_brought_a_memory_to_its_last_state():
    assert frames.flows(PAST).rows() == [
        ("add", "deleted", 1),
        ("add", "superseded", 1),
        ("consolidate", "active", 1),
    ]


def test_what_a_history_says_is_what_the_versions_wrote():
    told = frames.written(PAST).select("version", "inserted", "updated", "deleted", "memories")
    assert told.rows() == [(2, 2, 0, 0, 2), (3, 1, 2, 0, 3), (5, 0, 0, 1, 2)]


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=150))
@settings(max_examples=30, deadline=None)
def test_putting_versions_together_loses_no_count(counts):
    versions = pl.DataFrame(counts, schema=["inserted", "updated", "deleted"], orient="row")
    versions = versions.with_columns(
        (pl.int_range(pl.len()) + 2).alias("version"),
        pl.lit(value=False).alias("upkeep"),
        (pl.col("inserted") - pl.col("deleted")).cum_sum().alias("memories"),
    )
    told = frames.churn(versions, at_most=20)
    assert len(told) <= 20
    names = ["inserted", "updated", "deleted"]
    assert told.select(pl.col(names).sum()).row(0) == versions.select(pl.col(names).sum()).row(0)
    assert told["memories"].to_list()[-1] == versions["memories"].to_list()[-1]
    assert told["version"][0] == 2
    assert told["until"].to_list()[-1] == len(counts) + 1


def test_the_largest_scopes_come_first():
    names = [name for place, name in enumerate("abcde") for _ in range(5 - place)]
    memories = pl.DataFrame({"user": names, "visible": [name != "b" for name in names]})
    assert report.scopes_frame(memories, "user", at_most=3).rows() == [
        ("a", 5, 0),
        ("b", 0, 4),
        ("c", 3, 0),
    ]
    assert len(report.scopes_frame(memories, "user")) == 5


def test_the_level_that_is_shown_is_the_first_that_differs():
    levels = {"tenant": "t", "user": ["a", "a"], "agent": "", "session": ["x", "y"], "run": ""}
    memories = pl.DataFrame(levels)
    assert frames.level_to_show(memories) == "session"
    assert frames.level_to_show(memories, {"session"}) == "user"
    assert frames.level_to_show(memories.head(0), {"tenant", "user"}) == "agent"


@pytest.mark.parametrize(
    ("days", "told"),
    [(0, "under a day"), (1, "1 to 6 days"), (7, "1 to 4 weeks"), (30, "1 to 3 months"),
     (91, "3 to 12 months"), (365, "over a year"), (9_000, "over a year")],
)  # fmt: skip
def test_an_age_is_told_in_words(days, told):
    memories = pl.DataFrame(
        {"visible": [True, False], "happened_at": [START, START], "recalls": [0, 0]}
    )
    found = frames.ages(memories, now=START + timedelta(days=days))
    assert found.rows() == [(told, False, 1)]


def test_recalls_are_counted_in_steps():
    memories = pl.DataFrame(
        {"recalls": [0, 0, 1, 4, 5, 9, 10, 500, 7], "visible": [True] * 8 + [False]}
    )
    assert frames.recalls(memories).rows() == [
        ("never", 2),
        ("once", 1),
        ("2 to 4 times", 1),
        ("5 to 9 times", 2),
        ("10 times or more", 2),
    ]


@pytest.mark.parametrize(
    ("weights", "pixels", "told"),
    [
        ({3: 356, 6: 84, 7: 1, 8: 84, 9: 400, 10: 2}, 100, [3, 6, 7, 8, 9, 10]),
        ({3: 356, 6: 84, 7: 1, 8: 84, 9: 400, 12: 2}, 16, [3, 6, 9, 12]),
        ({3: 356, 6: 84, 7: 1, 8: 84, 9: 400, 12: 2}, 7, [3, 9]),
        ({1: 0, 2: 9, 3: 0}, 5, [2]),
        ({4: 7}, 5, [4]),
        (dict.fromkeys(range(1, 101), 1) | {50: 7}, 100, [1, 2, 3, 4, 5, 6, 7, 50, 100]),
    ],
)
def test_the_labels_of_versions_are_the_ends_and_what_changed_most(weights, pixels, told):
    """Guards: the version that had changed most stood without a label between two that had one."""
    changed = pl.DataFrame({"version": list(weights), "weight": list(weights.values())})
    assert frames.told_apart(changed, pixels=pixels) == told


@given(st.dictionaries(st.integers(1, 500), st.integers(0, 9), min_size=1), st.floats(0.1, 60))
@settings(max_examples=40, deadline=None)
def test_no_two_labels_touch(weights, pixels):
    changed = pl.DataFrame({"version": list(weights), "weight": list(weights.values())})
    told = frames.told_apart(changed, pixels=pixels)
    assert told == sorted(set(told) & weights.keys())
    room = 7 * len(str(max(weights)))
    assert all((b - a) * pixels > room for a, b in pairwise(told))


def test_the_plane_holds_what_differs_most():
    rng = np.random.default_rng(0)
    spread = rng.standard_normal((200, 2)) * [5.0, 2.0]
    basis, _ = np.linalg.qr(rng.standard_normal((16, 16)))
    vectors = (spread @ basis[:2] + rng.standard_normal((200, 16)) * 0.01).astype(np.float32)
    found = report.plane(vectors)
    centred = spread - spread.mean(axis=0)
    assert found.share > 0.999
    assert np.allclose(np.abs(np.corrcoef(found.points[:, 0], centred[:, 0])[0, 1]), 1, atol=1e-2)
    distances = np.linalg.norm(found.points[:50, None] - found.points[None, :50], axis=2)
    assert np.allclose(
        distances, np.linalg.norm(spread[:50, None] - spread[None, :50], axis=2), atol=0.2
    )
    assert np.array_equal(report.plane(vectors).points, found.points)


@pytest.mark.parametrize("vectors", [np.zeros((0, 4)), np.ones((1, 4)), np.ones((5, 4))])
def test_nothing_that_differs_is_one_point(vectors):
    found = report.plane(vectors)
    assert found.points.shape == (len(vectors), 2)
    assert (found.share, np.abs(found.points).sum()) == (0.0, 0.0)


def test_a_version_that_changed_nothing_leaves_empty_frames():
    empty = PAST.head(0)
    for told in (frames.states(empty), frames.flows(empty), frames.written(empty)):
        assert len(told) == 0


def test_marks_of_direction_and_controls_are_written_out():
    assert shown("a\u202eb\x00c\u2066") == "a\\u202eb\\u0000c\\u2066"
    assert shown("  one\n two\t") == "one two"
    assert shown("\U0001f469\u200d\U0001f680 \u7dd1") == "\U0001f469\u200d\U0001f680 \u7dd1"
    assert shown(None) == shown(" ") == "(none)"
    assert len(shown("word " * 99, 40)) <= 40


@pytest.mark.parametrize(
    ("days", "told"),
    [(0, "less than a day"), (1, "1 day"), (13, "1 week"), (65, "2 months"), (800, "2 years")],
)
def test_a_length_of_time_is_told_in_its_largest_unit(days, told):
    assert aged(timedelta(days=days)) == told


def test_the_whole_of_a_real_history_adds_up(made):
    """The frames of a store agree with each other and with what is there."""
    store = made.store
    past = store.history_frame()
    now = frames.states(past).filter(pl.col("version") == past["version"].max())
    counts = {state: number for state, number in now.select("state", "memories").rows() if number}
    assert counts == dict(store.stats().by_state)
    writes = store.versions_frame(upkeep=False).select("version", "inserted", "updated", "deleted")
    told = frames.written(past).select(writes.columns)
    assert_frame_equal(told, writes.filter(pl.col("version").is_in(told["version"].to_list())))
    flows = frames.flows(past).filter(pl.col("state") != "deleted")
    assert flows["memories"].sum() == store.stats().rows
