from __future__ import annotations

import dataclasses
import json
from datetime import timedelta

import pytest

from lance_memory import (
    ClusterBy,
    ConsolidateOptions,
    ConsolidationPlan,
    InvalidInputError,
    TransformError,
)


@pytest.fixture
def plan(store):
    store.add_many(
        [
            {"content": "same words", "role": r, "metadata": {"é": [1, None]}, "tags": ["t"]}
            for r in "ab"
        ]
    )
    store.add_many([{"content": "other thing", "role": r} for r in "ab"])
    return store.consolidate(
        transform=lambda ms: None if ms[0].content == "other thing" else "same words", dry_run=True
    )


def test_a_plan_survives_a_file(plan):
    assert (len(plan.accepted), len(plan.skipped)) == (1, 1)
    assert ConsolidationPlan.from_json(plan.to_json()) == plan


def test_a_plan_that_was_answered_for_no_cluster_is_a_failure_and_says_so_in_a_file(store):
    store.add_many([{"content": "same words", "role": r} for r in "ab"])
    made = store.consolidate(transform=lambda _: 1 / 0, dry_run=True)
    again = ConsolidationPlan.from_json(made.to_json())
    assert (again, again.failures) == (made, "1 of 1 cluster failed")
    told = "^the only cluster failed; nothing was written: it raised ZeroDivisionError"
    with pytest.raises(TransformError, match=told):
        again.refuse_unanswered()
    wrong = store.consolidate(transform=lambda _: 5, dry_run=True)
    assert (wrong.failures, wrong.refuse_unanswered()) == ("1 of 1 cluster failed", None)
    assert str(wrong).startswith(
        "2 memories considered at version 3: 0 clusters, 1 skipped, 0 rows"
    )


def test_the_text_of_a_plan_counts_one_as_one(plan):
    found = "4 memories considered at version 4: 1 cluster, 1 skipped, 1 row saved"
    assert str(plan).splitlines()[0] == found


def test_the_file_of_a_plan_is_readable(plan):
    document = json.loads(plan.to_json())
    assert document["version"] == plan.version
    assert (document["rows_saved"], plan.rows_saved, document["selected"]) == (1, 1, 4)
    assert [c["contents"] for c in document["clusters"]] == [
        ["same words"] * 2,
        ["other thing"] * 2,
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another 9"},
        {"at": "yesterday"},
        {"at": 5},
        {"at": "2025-01-01T00:00:00"},
        {"version": "x"},
        {"version": None},
        {"options": {}},
        {"options": {"by": "similarity"}},
        {"clusters": 5},
        {"clusters": [5]},
        {"clusters": [{}]},
        {"selected": "x"},
        {"op_id": 5},
        {"op_id": ""},
        {"op_id": "x" * 1_000},
    ],
    ids=str,
)
def test_a_damaged_plan_is_refused(plan, change):
    damaged = json.dumps({**json.loads(plan.to_json()), **change})
    with pytest.raises(InvalidInputError, match=r"plan|time"):
        ConsolidationPlan.from_json(damaged)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", "{}", '"text"'])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(
        InvalidInputError, match=r"no saved consolidation plan .*lmem consolidate --dry-run"
    ):
        ConsolidationPlan.from_json(text)


def test_a_truncated_plan_is_refused(plan):
    text = plan.to_json()
    with pytest.raises(InvalidInputError):
        ConsolidationPlan.from_json(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "vibes"}, "there are: similarity, session, run, tenant, prefix, window"),
        ({"method": "dbscan"}, "there are: greedy, components, average"),
        ({"separator": ""}, "separator=''; it takes a text that is not empty"),
        ({"min_similarity": 1.1}, "min_similarity=1.1; it takes a number within -1..1"),
        ({"min_similarity": float("nan")}, "min_similarity=nan; it takes a number within -1..1"),
        ({"min_size": 1}, "min_size=1; it takes a whole number from 2 on"),
        ({"min_size": 5, "max_size": 4}, "max_size=4; it takes a whole number from 5 on"),
        ({"window": timedelta(0)}, "window=0:00:00; it takes a positive timedelta"),
        ({"across": ("team",)}, "across='team'; there are: tenant, user"),
        ({"across": "user"}, "across='user'; it takes a list of texts"),
        ({"max_dropped": 1.5}, "max_dropped=1.5; it takes a number within 0..1"),
    ],
    ids=str,
)
def test_options_that_make_no_sense_say_why(options, message):
    with pytest.raises(InvalidInputError, match=message):
        ConsolidateOptions(**options)


@pytest.mark.parametrize(
    "options",
    [
        ConsolidateOptions(),
        ConsolidateOptions(
            by=ClusterBy.WINDOW,
            window=timedelta(hours=1.5),
            across=("session", "run"),
            max_dropped=1.0,
        ),
    ],
)
def test_options_survive_json(options):
    assert ConsolidateOptions.from_json(json.loads(json.dumps(options.to_json()))) == options


def test_a_cluster_knows_its_size(plan):
    assert [c.size for c in plan.clusters] == [2, 2]
    assert dataclasses.replace(plan.clusters[0], sources={}).size == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("relationships", []), ("user", "bob"), ("embedding", None), ("embedding", [])],
)
def test_a_derived_memory_that_is_not_of_its_sources_is_refused(plan, name, value):
    document = json.loads(plan.to_json())
    document["clusters"][0]["derived"][name] = value
    with pytest.raises(InvalidInputError, match="was the file edited"):
        ConsolidationPlan.from_json(json.dumps(document))


@pytest.mark.parametrize("recalled", [{"probes": "x", "before": 1, "after": 1}, {"probes": 1}, 3])
def test_a_recall_that_is_none_is_refused(plan, recalled):
    document = json.loads(plan.to_json())
    document["clusters"][0]["recalled"] = recalled
    with pytest.raises(InvalidInputError, match="plan"):
        ConsolidationPlan.from_json(json.dumps(document))


def test_a_text_nested_without_end_is_no_plan():
    with pytest.raises(InvalidInputError, match="no saved consolidation plan"):
        ConsolidationPlan.from_json("[" * 200_000)
