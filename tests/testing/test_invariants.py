"""The invariants hold of stores that the verbs made, and each is told when it is broken."""

from __future__ import annotations

import pytest

from lance_memory.record.rows import changed, patched, repeated
from lance_memory.storage import Audit, ChangeSet
from lance_memory.testing import check, violations


@pytest.fixture
def worked(store):
    """Memories that went through every verb."""
    store.add_many(
        [
            {"id": f"m{n}", "content": f"memory number {n}", "key": f"k{n}", "user": "ann"}
            for n in range(8)
        ]
    )
    store.supersede(["m0", "m1"], "two of them")
    store.update("m2", content="changed")
    store.retire(["m3"], reason="old")
    store.optimize(vector_index_from=4)
    store.upsert("said again", key="k4", user="ann")
    store.revert(store.version)
    store.rollback(store.version - 2)
    return store


def written(store, identifier, *, grown=True, **values):
    """What no verb would do: these columns of the row, as another program writes them."""
    rows = store._table.latest().by_ids([identifier], columns=store._table.schema.names)
    schema = store._table.schema
    columns = {n: repeated(v, schema.field(n).type, 1) for n, v in values.items()}
    now = store.log(limit=1)[0].at
    updates = changed(rows, columns, now=now) if grown else patched(rows, columns)
    audit = Audit(operation="tampered", at=now)
    store._table.commit(lambda _: ChangeSet(audit=audit, updates=updates))


def test_they_hold_of_every_version_that_the_verbs_make(worked):
    assert violations(worked) == []
    check(worked)


@pytest.mark.parametrize(
    ("identifier", "values", "told"),
    [
        ("m2", {"content_hash": "0" * 32}, "a content is not the one hashed: m2"),
        ("m2", {"state": "superseded"}, "state and successor disagree: m2"),
        ("m0", {"superseded_by": "m2"}, "a successor does not name its source: m0"),
        ("m5", {"key": "k6"}, "live memories of a scope have the same key: m5, m6"),
        ("m5", {"user": "bob"}, "the user of a memory changed: m5"),
        (
            "m5",
            {"state": "retired", "grown": False},
            "a memory changed, and its revision or its time did not grow: m5",
        ),
    ],
)
def test_a_broken_one_is_told_with_its_version_and_ids(worked, identifier, values, told):
    written(worked, identifier, **values)
    expected = f"version {worked.version}: {told}"
    assert violations(worked) == [expected]
    with pytest.raises(AssertionError, match="breaks 1 invariant") as caught:
        check(worked)
    assert expected in str(caught.value)
    assert violations(worked, history=False) == ([] if "changed" in told else [expected])
