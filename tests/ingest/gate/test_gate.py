"""The gate answers, in order and for each conversation, whatever becomes of its layers."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from gate_kit import Gate
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory.errors import EmbeddingError, InvalidInputError, StorageError
from lance_memory.ingest.gate import Budget, GatePolicy
from lance_memory.ingest.gate import Gate as Asked
from lance_memory.ledger import open_ledger

TEXTS = [
    "hi",
    "I live in Rome.",
    "i live in ROME.",
    "I live in Oslo.",
    "Where is the station?",
    "is where the station?",
    "Where is the second station?",
    "93",
    "I took the SAT and then I went home and slept.",
]
STRICT = GatePolicy(
    per_minute=6,
    last=3,
    budget=Budget(calls=5),
    budgets={"rich": Budget(tokens=60)},
    events={"exams"},
)


@st.composite
def said(draw):
    """Which text, whose, and from where."""
    return (
        draw(st.sampled_from(TEXTS)),
        draw(st.sampled_from(["ana", "eva", ""])),
        draw(st.sampled_from(["acme", "rich"])),
        draw(st.sampled_from(["", "", "", "exams"])),
    )


def conversations(talk, told):
    return [
        talk(text, user=user, tenant=tenant, source=source, ref=f"event-{place}")
        for place, (text, user, tenant, source) in enumerate(told)
    ]


def plain(passed):
    """What the gate answered, but for the wait, which is in real time."""
    return (
        passed.items,
        [(d.verdict, d.reason, d.event, {**d.figures, "wait": 0}) for d in passed.decisions],
        passed.degraded,
    )


@settings(max_examples=60, deadline=None)
@given(told=st.lists(said(), max_size=14), cuts=st.sets(st.integers(1, 13)))
def test_a_batch_is_judged_as_if_it_came_one_by_one(told, cuts, talk, around):
    batch = conversations(talk, told)
    ends = [0, *sorted(cut for cut in cuts if cut < len(batch)), len(batch)]
    parts = [batch[start:end] for start, end in pairwise(ends)]
    answers = []
    for calls in ([batch], [[one] for one in batch], parts):
        gate, ledger = Gate(STRICT), open_ledger(":memory:")
        passed = [gate(call, around(ledger=ledger)) for call in calls]
        answers.append(
            (
                [item for one in passed for item in one.items],
                [decision for one in passed for decision in plain(one)[1]],
                [said for one in passed for said in one.degraded],
            )
        )
        ledger.close()
    assert answers[1:] == answers[:1] * 2
    assert len(answers[0][0]) + len(answers[0][1]) == len(batch)


@settings(max_examples=40, deadline=None)
@given(before=st.lists(said(), max_size=6), told=st.lists(said(), max_size=5))
def test_a_job_that_is_run_again_has_the_same_answer(before, told, talk, around):
    policy = GatePolicy(budget=Budget(calls=6, tokens=60), events={"exams"})
    gate, ledger = Gate(policy), open_ledger(":memory:")
    gate(conversations(talk, before), around(ledger=ledger))
    batch = conversations(talk, told)
    first = gate(batch, around(ledger=ledger, job="j"))
    again = gate(batch, around(ledger=ledger, job="j"))
    assert again.items == first.items
    assert [(d.verdict, d.event) for d in again.decisions] == [
        (d.verdict, d.event) for d in first.decisions
    ]
    ledger.close()


def test_each_layer_blocks_for_its_own_reason_in_order(talk, around, ledger):
    gate = Gate(GatePolicy(per_minute=5, budget=Budget(calls=2)))
    texts = ["hi", "I live in Rome.", "i live in ROME.", "I like tea.", "I like coffee.", "I run."]
    batch = [talk(text, ref=text) for text in texts]
    passed = gate(batch, around(ledger=ledger))
    assert passed.items == (batch[1], batch[3])
    assert [(d.step, d.verdict, d.reason, d.event) for d in passed.decisions] == [
        ("gate", "L2", "low_quality", "hi"),
        ("gate", "L3", "duplicate_query", "i live in ROME."),
        ("gate", "L4", "budget_exhausted", "I like coffee."),
        ("gate", "L1", "rate_limit_exceeded", "I run."),
    ]


def test_nothing_gives_nothing(around, ledger):
    passed = Gate(STRICT)([], around(ledger=ledger))
    assert (passed.items, passed.decisions, passed.degraded) == ((), (), ())


def test_a_conversation_without_messages_is_blocked_without_an_event(talk, around, ledger):
    assert [(d.verdict, d.event) for d in Gate()([talk()], around(ledger=ledger)).decisions] == [
        ("L2", "")
    ]


def test_the_layers_are_visible_in_order_and_can_be_replaced(talk, around):
    gate = Gate()
    assert [(layer.code, layer.reason) for layer in gate.layers] == [
        ("L1", "rate_limit_exceeded"),
        ("L2", "low_quality"),
        ("L3", "duplicate_query"),
        ("L4", "budget_exhausted"),
    ]
    hello = talk("hi")
    assert Gate(layers=()).__call__([hello], around()).items == (hello,)
    assert Gate(layers=gate.layers[1:2])([hello], around()).items == ()


TWICE = ["I live in Rome.", "i live in ROME."]


@pytest.mark.parametrize("error", [StorageError, OSError, InvalidInputError])
@pytest.mark.parametrize("after", range(14))
def test_no_failure_of_the_counters_stops_the_caller(after, error, talk, around, ledger, broken):
    """Whichever of the ledger's calls is the first that fails."""
    gate = Asked(GatePolicy(budget=Budget(calls=5)))
    batch = [talk(text) for text in TWICE]
    store, job = broken(ledger, after=after, error=error), around()
    passed = gate(batch, replace(job, ledger=store))
    failed = store._left < 0
    gate.settled(job.job, safe=True)
    assert batch[0] in passed.items
    assert len(passed.items) + len(passed.decisions) == 2
    told = [said.partition(":")[0] for said in passed.degraded]
    assert set(told) <= {"gate.L3", "gate.L4"}
    assert len(told) == len(set(told))
    assert bool(told) == failed


def test_a_ledger_that_cannot_be_opened_is_said_and_blocks_nothing(talk, around, tmp_path):
    gate = Gate(GatePolicy(budget=Budget(calls=0)))
    batch = [talk(text) for text in TWICE]
    passed = gate(batch, around(ledger=open_ledger(tmp_path)))
    assert passed.items == tuple(batch)
    assert [said.partition(":")[0] for said in passed.degraded] == ["gate.L3", "gate.L4"]
    assert all("2 conversations went unjudged" in said for said in passed.degraded)


def test_without_a_ledger_it_says_what_is_not_known(talk, around):
    passed = Gate(GatePolicy(budget=Budget(calls=1)))([talk(TWICE[0])], around())
    assert passed.items == (talk(TWICE[0]),)
    assert passed.degraded == (
        "gate.L3: there is no ledger to ask; 1 conversation went unjudged",
        "gate.L4: there is no ledger to ask; 1 conversation went unjudged",
    )


def test_an_embedder_that_fails_skips_l3_alone(talk, around, ledger):
    def embed(_texts):
        raise EmbeddingError("the model is gone")

    gate = Gate(GatePolicy(budget=Budget(calls=3)))
    batch = [talk("hi"), *(talk(text) for text in [*TWICE, *TWICE])]
    passed = gate(batch, around(ledger=ledger, embed=embed))
    assert [d.verdict for d in passed.decisions] == ["L2", "L4"]
    assert passed.degraded == ("gate.L3: EmbeddingError; 4 conversations went unjudged",)


def test_a_layer_that_keeps_failing_is_left_alone_and_asked_again_later(talk, around, ledger):
    calls, up = [], []

    def embed(texts):
        calls.append(len(texts))
        if not up:
            raise EmbeddingError("the model is gone")
        return np.ones((len(texts), 4), np.float32)

    gate = Gate(GatePolicy(failures=2, rest=60.0))
    told = [gate([talk(TWICE[0])], around(ledger=ledger, embed=embed)).degraded for _ in range(4)]
    gone = ("gate.L3: EmbeddingError; 1 conversation went unjudged",)
    alone = ("gate.L3: left alone after failures; 1 conversation went unjudged",)
    assert (told, calls) == ([gone, gone, alone, alone], [1, 1])

    up.append(True)
    gate = Gate(GatePolicy(failures=1, rest=0.001))
    answers = [gate([talk(TWICE[0])], around(ledger=ledger, embed=embed)) for _ in range(2)]
    assert [one.degraded for one in answers] == [(), ()]
    assert [len(one.items) for one in answers] == [1, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"per_minute": 0},
        {"per_minute": 1.5},
        {"least_quality": 1.1},
        {"most_alike": float("nan")},
        {"last": -1},
        {"remembered": 5},
        {"budget": 5},
        {"budgets": {"acme": 5}},
        {"failures": 0},
        {"rest": 0},
        {"rest": 10**6},
        {"rates": " "},
    ],
)
def test_a_policy_refuses_what_it_cannot_mean(options):
    with pytest.raises(InvalidInputError, match="it takes"):
        GatePolicy(**options)
