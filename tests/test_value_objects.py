"""Every value object refuses what it cannot mean, in one kind of error and one form of words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lance_memory import (
    Bounds,
    CachedEmbedder,
    CommandTransform,
    ConsolidateOptions,
    Decay,
    Evaluation,
    Execution,
    ExportOptions,
    FunctionEmbedder,
    Guard,
    InvalidInputError,
    LLMTransform,
    OpenAIEmbedder,
    QueryRecording,
    Ranking,
    Recency,
    Retry,
    SentenceTransformerEmbedder,
    Triggers,
)
from lance_memory.index import IvfPqSpec
from lance_memory.record.filters import Filter
from lance_memory.record.memory import Scope
from lance_memory.search.query import Page

NAN, INF = float("nan"), float("inf")
DAY = timedelta(days=1)
NO_NUMBER = ("a", True, [1], 1j, NAN, INF, -INF, Decimal(1))
NO_WHOLE = (*NO_NUMBER, 2.5, 2.0, Fraction(5, 2), np.float32(2))
NO_DURATION = (5, 1.5, "1d", True, timedelta(0), -DAY)
NO_WORD = ("nonsense", 1, None, [], np.zeros(2))
NO_TEXTS = ("user", 1, None, [1], (None,))
NO_FLAG = ("yes", 1, None)

COSINE = (*NO_NUMBER, "0.9", -1.1, 1.1)
SHARE = (*NO_NUMBER, "0.5", -0.1, 1.1)
SECONDS = (*NO_NUMBER, 0, -1, 10**400)
FROM_0 = (*NO_NUMBER, -1, -0.1, 10**400)
FROM_1 = (*NO_WHOLE, 0, -1)


def embed(texts):
    return np.ones((len(texts), 2), np.float32)


def function(**options):
    return FunctionEmbedder(embed, **{"name": "one", "dimension": 2, **options})


def endpoint(**options):
    return OpenAIEmbedder(**{"model": "m", "dimension": 2, **options})


def model(**options):
    return LLMTransform(**{"model": "m", "base_url": "http://localhost", **options})


def program(**options):
    return CommandTransform(["true"], **options)


def page(**options):
    return Page.of(**{"k": 1, "offset": 0, "where": Filter(), "ranking": None, **options})


def where(**options):
    return Filter.of(options, within=Scope())


WRONG = [
    (
        ConsolidateOptions,
        {
            "by": NO_WORD,
            "method": NO_WORD,
            "on_failure": NO_WORD,
            "min_similarity": (*COSINE, None),
            "min_size": (*FROM_1, 1, None),
            "max_size": (*FROM_1, 1, None),
            "window": (*NO_DURATION, None),
            "separator": ("", 5, None),
            "across": (*NO_TEXTS, ("nobody",)),
            "distinct": NO_FLAG,
            "max_dropped": (*SHARE, None),
        },
    ),
    (
        Bounds,
        {
            "before": ("a", 5, (), ("a", "b"), (datetime(2025, 1, 1, tzinfo=UTC), 3)),
            "max_rows": FROM_1,
            "max_clusters": FROM_1,
            "max_seconds": SECONDS,
        },
    ),
    (Guard, {"max_loss": (*SHARE, None), "k": (*FROM_1, None), "probes": (*FROM_1, None)}),
    (
        Execution,
        {
            "workers": (*FROM_1, None),
            "executor": (map, "threads", 1),
            "timeout": SECONDS,
            "retries": (*NO_WHOLE, -1, None),
            "first_wait": (*FROM_0, None),
        },
    ),
    (program, {"batch_size": (*FROM_1, None), "timeout": SECONDS}),
    (
        model,
        {
            "model": ("", " ", 5, None),
            "timeout": (*SECONDS, None),
            "temperature": (*NO_NUMBER, -0.1, 2.1),
            "max_tokens": FROM_1,
        },
    ),
    (
        ExportOptions,
        {
            "format": NO_WORD,
            "file_type": [word for word in NO_WORD if word is not None],
            "group_by": NO_WORD,
            "min_similarity": COSINE,
            "across": (*NO_TEXTS, ("nobody",)),
            "evaluation": ("a", ["a"], 1),
            "validation": (*SHARE, 1, None),
            "seed": (*NO_WHOLE, None),
            "max_turns": (*FROM_1, 1),
            "margin": (*SHARE, 0, None),
            "overwrite": NO_FLAG,
        },
    ),
    (
        lambda **options: Evaluation(**{"texts": ["a"], **options}),
        {
            "texts": ("text", [], [" "], 5, None, [1]),
            "ngram": FROM_1,
            "similarity": COSINE,
        },
    ),
    (
        Triggers,
        {"idle": NO_DURATION, "new_rows": (*FROM_1, 10**10), "cron": (5, "", " ", "never", [])},
    ),
    (
        QueryRecording,
        {
            "max_rows": (*FROM_1, None),
            "batch": (*FROM_1, None),
            "seconds": (*SECONDS, None),
            "redact": ("none", 5, True),
        },
    ),
    (
        lambda **options: Decay(**{"half_life": DAY, **options}),
        {
            "half_life": (*NO_DURATION, None),
            "floor": (*SHARE, None),
            "use": (*NO_NUMBER, -0.1, 4.1, None),
            "evergreen_kinds": (*NO_TEXTS, ("dream",)),
            "evergreen_tags": NO_TEXTS,
        },
    ),
    (
        lambda **options: Recency(**{"half_life": DAY, **options}),
        {"half_life": (*NO_DURATION, None), "floor": (*SHARE, None)},
    ),
    (
        Ranking,
        {
            "fusion": NO_WORD,
            "vector_share": (*SHARE, None),
            "importance": (*SHARE, None),
            "neighbours": (*FROM_0, None),
            "actor_bonus": (*FROM_0, None),
            "period_bonus": (*FROM_0, None),
            "recency": (30, DAY, "new"),
            "decay": (30, DAY, "slow"),
            "reranker": ("late", 5, Recency),
            "rerank_depth": (*FROM_1, None),
        },
    ),
    (
        page,
        {
            "k": (*NO_WHOLE, -1, None),
            "offset": (*NO_WHOLE, -1, None),
            "ranking": ("best", 5, {}),
        },
    ),
    (where, {"min_importance": SHARE, "min_quality": SHARE}),
    (
        Retry,
        {
            "attempts": (*FROM_1, None),
            "first_wait": (*NO_NUMBER, -1, None),
            "longest_wait": (*NO_NUMBER, -1, None),
        },
    ),
    (
        endpoint,
        {
            "model": ("", " ", 5, None),
            "name": ("", " ", 5),
            "dimension": (*FROM_1, None),
            "batch_size": (*FROM_1, None),
            "timeout": (*SECONDS, None),
            "encoding": NO_WORD,
        },
    ),
    (function, {"name": ("", " ", 5, None), "dimension": (*FROM_1, None)}),
    (lambda **options: CachedEmbedder(function(), **options), {"capacity": (*FROM_1, None)}),
    (
        lambda **options: SentenceTransformerEmbedder(**{"model": "m", **options}),
        {"model": ("", " ", 5, None), "name": ("", " ", 5), "batch_size": (*FROM_1, None)},
    ),
    (
        lambda **options: IvfPqSpec(**{"partitions": 1, "sub_vectors": 1, **options}),
        {
            "partitions": (*FROM_1, None),
            "sub_vectors": (*FROM_1, None),
            "iterations": (*FROM_1, None),
            "metric": NO_WORD,
            "seed": (*NO_WHOLE, None),
        },
    ),
]
CASES = [
    pytest.param(make, name, values, id=f"{number}-{name}")
    for number, (make, fields) in enumerate(WRONG)
    for name, values in fields.items()
]


def told(make, name, value):
    """What is said of a wrong value; nothing where it is taken."""
    try:
        make(**{name: value})
    except InvalidInputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("make", "name", "values"), CASES)
def test_what_makes_no_sense_is_refused_by_name(make, name, values):
    answers = {repr(value): told(make, name, value) for value in values}
    assert {v: said for v, said in answers.items() if name not in said or len(said) > 300} == {}


RIGHT = [
    (ConsolidateOptions, {"min_similarity": -1, "min_size": np.int64(2), "separator": " "}),
    (ConsolidateOptions, {"max_dropped": np.float32(1), "across": ["user", "session"]}),
    (Bounds, {"max_rows": 1, "max_clusters": 1, "max_seconds": 0.001}),
    (Bounds, {"before": (datetime(2025, 1, 1, tzinfo=UTC), "id")}),
    (Guard, {"max_loss": 0, "k": 1, "probes": 1}),
    (Execution, {"workers": 1, "retries": 0, "timeout": 0.001, "first_wait": 0}),
    (program, {"batch_size": 1, "timeout": 0.001}),
    (model, {"temperature": 2, "max_tokens": 1}),
    (model, {"temperature": None, "max_tokens": None}),
    (ExportOptions, {"min_similarity": None, "validation": 0, "margin": 1, "seed": -1}),
    (ExportOptions, {"across": (), "max_turns": 2, "file_type": "jsonl"}),
    (Evaluation, {"texts": ("a",), "ngram": None, "similarity": -1}),
    (Triggers, {"idle": timedelta(microseconds=1), "new_rows": 10**9, "cron": "0 3 * * *"}),
    (QueryRecording, {"max_rows": 1, "batch": 1, "seconds": 0.001, "redact": None}),
    (Decay, {"half_life": DAY, "floor": 1, "use": 4, "evergreen_kinds": ["profile"]}),
    (Recency, {"half_life": DAY, "floor": Fraction(1, 2)}),
    (Ranking, {"vector_share": 0, "importance": 1, "neighbours": 10**6, "rerank_depth": 1}),
    (page, {"k": 0, "offset": np.int32(0)}),
    (Retry, {"attempts": 1, "first_wait": 0, "longest_wait": 0}),
]


@pytest.mark.parametrize(("make", "options"), RIGHT)
def test_the_ends_of_every_range_are_taken(make, options):
    made = make(**options)
    for name, value in options.items():
        if hasattr(made, name):
            assert getattr(made, name) == value
