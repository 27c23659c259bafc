"""A pass tells what it saved, and whether that is still so."""

from datetime import UTC, datetime

import polars as pl
import pytest

from lance_memory import report
from lance_memory.record.memory import Scope
from lance_memory.storage import LogEntry

START = datetime(2025, 1, 1, tzinfo=UTC)
ANN, BOB = Scope(user="ann"), Scope(user="bob")
MADE = {"clusters": 1, "sources": ["a", "b", "c"], "derived": ["d"], "skipped": []}


def test_a_pass_tells_what_it_saved_and_what_recall_it_kept():
    told = {"clusters": 1, "sources": ["a", "b", "c"], "derived": ["d"], "skipped": []}
    measured = {"probes": 9, "before": 8, "after": 6}
    log = [
        LogEntry(
            version=4, at=START, operation="consolidate", manifest={**told, "recalled": measured}
        ),
        LogEntry(version=3, at=START, operation="consolidate", manifest={**told, "recalled": None}),
        LogEntry(version=2, at=START, operation="consolidate", manifest=None),
        LogEntry(version=1, at=START, operation="add", scopes=(Scope(user="a"),)),
    ]
    columns = ["version", "sources", "derived", "saved", "probes", "kept"]
    assert report.passes_frame(log).select(columns).rows() == [
        (3, 3, 1, 2, None, None),
        (4, 3, 1, 2, 9, 0.75),
    ]
    assert len(report.passes_frame([])) == 0


def entry(version, operation, target=None, scopes=(ANN,)):
    manifest = MADE if operation == "consolidate" else target and {"target": target}
    return LogEntry(
        version=version, at=START, operation=operation, manifest=manifest, scopes=scopes
    )


PAST = {
    "a pass that nobody undid": ([], "yes"),
    "its revert": ([(6, "revert", 5)], "reverted"),
    "the revert of another version": ([(6, "add"), (7, "revert", 6)], "yes"),
    "the revert of its revert": ([(6, "revert", 5), (8, "revert", 6)], "yes"),
    "and the revert of that": (
        [(6, "revert", 5), (8, "revert", 6), (9, "revert", 8)],
        "reverted",
    ),
    "a rollback to before it": ([(6, "add"), (7, "rollback", 4)], "reverted"),
    "a rollback to it": ([(6, "add"), (7, "rollback", 5)], "yes"),
    "a rollback to when it was reverted": (
        [(6, "revert", 5), (7, "revert", 6), (8, "rollback", 6)],
        "reverted",
    ),
    "the revert of a rollback": ([(6, "rollback", 3), (7, "revert", 6)], "yes"),
    "a rollback of another scope": ([(6, "rollback", 3, (BOB,))], "yes"),
    "a rollback of too many scopes to list": ([(6, "rollback", 3, None)], "reverted"),
    "something undone that is not told": ([(6, "rollback", None, ())], "maybe reverted"),
}


@pytest.mark.parametrize("name", PAST)
def test_a_pass_holds_until_it_is_undone(name):
    later, told = PAST[name]
    log = [entry(2, "add"), entry(5, "consolidate"), *(entry(*one) for one in later)]
    assert report.passes_frame(log[::-1])["holds"].to_list() == [told]


def test_a_pass_of_two_scopes_is_partly_reverted_where_one_went_back():
    log = [
        entry(5, "consolidate", scopes=(ANN, BOB)),
        entry(6, "rollback", 3, (BOB,)),
        entry(7, "revert", 5, (ANN,)),
    ]
    assert report.passes_frame(log[1::-1])["holds"].to_list() == ["partly reverted"]
    assert report.passes_frame(log[::-1])["holds"].to_list() == ["reverted"]


def test_what_holds_is_what_the_store_says(store):
    """Passes of a real store, reverted, brought back, and rolled back within a scope."""
    for user in ("ann", "bob"):
        texts = [f"The bridge over the river is closed{'!' * i}" for i in range(3)]
        store.add_many([{"content": text, "user": user} for text in texts])
    start = store.version

    def told():
        found = report.passes_frame(store.log(), store.history_frame())
        return found.select("holds", "active_before", "active_after").rows()

    done = store.consolidate()
    assert store.count() == 2
    assert told() == [("yes", 6, 2)]
    undone = store.revert(done.version)
    assert told() == [("reverted", 6, 2)]
    store.revert(undone.version)
    assert told() == [("yes", 6, 2)]
    store.scoped(user="bob").rollback(start)
    assert store.count() == 4
    assert told() == [("partly reverted", 6, 2)]
    bob = store.scoped(user="bob")
    assert report.passes_frame(bob.log()).height == 0  # it touched others too
    store.rollback(start)
    assert told() == [("reverted", 6, 2)]


def test_a_pass_of_versions_that_are_gone_has_no_count_of_active_memories():
    log = [entry(5, "consolidate")]
    history = pl.DataFrame(
        [(7, None, "active")], schema=["version", "state_before", "state_after"], orient="row"
    )
    told = report.passes_frame(log, history)
    assert told.select("active_before", "active_after").rows() == [(None, None)]
