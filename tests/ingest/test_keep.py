"""What is worth keeping: bounds, reasons, and a decision for every candidate."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.candidate import Candidate, Category, Decision
from lance_memory.ingest.keep import OBJECTIONS, Keep, KeepPolicy, Objection
from lance_memory.ingest.message import Role
from lance_memory.ingest.steps import Passed, Surroundings
from lance_memory.record.memory import Scope

NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
GOOD = Candidate(
    content="I live in Lisbon.",
    category=Category.IDENTITY,
    importance=7.0,
    confidence=0.9,
    scope=Scope(user="u"),
    event="e",
    event_at=NOON,
)


def decision(verdict, reason="", confidence=0.9, importance=7.0):
    figures = {"confidence": confidence, "importance": importance}
    return Decision(step="keep", verdict=verdict, reason=reason, event="e", figures=figures)


def kept(*candidates, step=None):
    around = Surroundings(
        now=NOON, job="job", embed=lambda texts: np.ones((len(texts), 2), np.float32),
        known=lambda *_: (),
    )  # fmt: skip
    return (step or Keep())(candidates, around)


def reasons(*contents, **fields):
    passed = kept(*(replace(GOOD, content=content, **fields) for content in contents))
    return [one.reason for one in passed.decisions]


def test_a_good_candidate_is_kept_as_it_is():
    assert kept(GOOD) == Passed(items=(GOOD,), decisions=(decision("kept"),))


@pytest.mark.parametrize(
    ("confidence", "verdict", "reason", "pending"),
    [
        (0.65, "kept", "", [""]),
        (0.649, "pending", "confidence", ["confidence 0.65"]),
        (0.52, "pending", "confidence", ["confidence 0.52"]),
        (0.45, "pending", "confidence", ["confidence 0.45"]),
        (0.449, "discarded", "low_confidence", []),
    ],
)
def test_confidence_keeps_lets_wait_or_discards(confidence, verdict, reason, pending):
    passed = kept(replace(GOOD, confidence=confidence))
    assert passed.decisions == (decision(verdict, reason, confidence),)
    assert [one.pending for one in passed.items] == pending


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"importance": 1.9}, "low_importance"),
        ({"importance": 2.0}, ""),
        ({"category": "mood"}, "unknown_category"),
        ({"content": "I live in"}, "length"),
        ({"content": "I live in "}, "length"),
        ({"content": "I live in."}, ""),
        ({"content": "I" * 500}, ""),
        ({"content": "I" * 501}, "length"),
        ({"role": Role.ASSISTANT}, "recalled"),
        ({"role": Role.TOOL}, "recalled"),
        ({"role": Role.SYSTEM}, "recalled"),
        ({"role": Role.TOOL, "source": "billing"}, ""),
        ({"content": "<memory-ab12 number=1> I live in Lisbon."}, "recalled"),
    ],
)
def test_each_bound_has_its_reason(fields, reason):
    assert [one.reason for one in kept(replace(GOOD, **fields)).decisions] == [reason]


def test_what_holds_for_this_conversation_alone_is_temporary():
    told = ["I'm on my way home.", "I'm so tired.", "I'm working on it right now.", "I got to go!"]
    assert reasons(*told) == ["temporary"] * 4
    assert reasons("I moved to the right side of town.", "I am busy with a new job.") == ["", ""]


def test_what_must_never_be_stored_is_not():
    told = [
        "My password is [secret]",
        "The API key for the server is abc",
        "My card is [card].",
        "I live in Lisbon, off the record.",
        "[email] [phone-2] is, 12",
    ]
    assert reasons(*told) == ["never_store"] * 5
    assert reasons("My work e-mail is [email].", "I forgot my password manager's name.") == ["", ""]


def test_filters_can_be_added_and_left_out():
    step = Keep(
        objections=(*OBJECTIONS[1:], Objection("lisbon", lambda one, _: "Lisbon" in one.content))
    )
    passed = kept(GOOD, replace(GOOD, content="I live in Rome.", role=Role.TOOL), step=step)
    assert [one.reason for one in passed.decisions] == ["lisbon", ""]


def test_bounds_can_be_moved():
    policy = KeepPolicy(confidence=0.95, importance=8, categories=frozenset({Category.GOAL}))
    step = Keep(policy=policy)
    goal = replace(GOOD, category=Category.GOAL, importance=8.0)
    told = kept(GOOD, goal, replace(goal, importance=7.5), step=step)
    assert [one.reason for one in told.decisions] == [
        "unknown_category", "confidence", "low_importance",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 1.1},
        {"pending": 0.7},
        {"importance": 11},
        {"shortest": 0},
        {"shortest": 501},
        {"longest": 0.5},
    ],
)
def test_bounds_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidInputError):
        KeepPolicy(**options)
