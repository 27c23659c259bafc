"""The step: what no extractor sees, what a failure becomes, and when memories are read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from extract_kit import NOON, SCOPE, talk

from lance_memory.errors import ExtractionError
from lance_memory.ingest.candidate import Decision
from lance_memory.ingest.extract import Extract
from lance_memory.ingest.steps import Passed, Surroundings


@dataclass
class Asked:
    """What a step asked of the store, and its own answer."""

    scopes: list = field(default_factory=list)

    def __call__(self, scope, number):
        self.scopes.append((scope, number))
        return ()


def around(known=None):
    return Surroundings(
        now=NOON, job="job", embed=lambda texts: np.ones((len(texts), 2), np.float32),
        known=known or Asked(),
    )  # fmt: skip


def lost(conversation, place, reason):
    event = conversation.event(place, job="job")
    return Decision(step="extract", verdict="discarded", reason=reason, event=event)


def told(conversation):
    passed = Extract()([conversation], around())
    return [one.content for one in passed.items], passed.decisions


@pytest.mark.parametrize(
    "text",
    [
        "<memory-ab12 number=1 date=2024>\nI live in Rome.\n</memory-ab12>\nI like tea.",
        "I like tea. <recalled>I live in Rome. I like salt.</recalled>",
        "<memories>\nI live in Rome.</memories>I like tea.<memories>I own a car.",
        "Relevant memories:\n- I live in Rome.\n- I like salt.\n\nI like tea.",
        "Here's what I know about you:\nI live in Rome.\n\nI like tea.",
    ],
)
def test_recalled_text_that_is_fed_back_makes_no_candidate(text):
    conversation = talk(text)
    assert told(conversation) == (["I like tea."], (lost(conversation, 0, "recalled"),))


@pytest.mark.parametrize(
    "text",
    [
        "Off the record: I live in Rome.",
        "I live in Rome. Don't remember this, please.",
        "Please do not save that. I live in Rome.",
        "I live in Rome. Keep this between us.",
    ],
)
def test_a_message_off_the_record_makes_no_candidate(text):
    conversation = talk(text, "I like tea.")
    assert told(conversation) == (["I like tea."], (lost(conversation, 0, "never_store"),))


@pytest.mark.parametrize(
    "text", ["I don't remember that trip, but I like tea.", "My memory is bad, but I like tea."]
)
def test_who_speaks_of_remembering_is_not_off_the_record(text):
    assert told(talk(text))[1] == ()


def test_rules_ask_nothing_of_the_store():
    known = Asked()
    Extract()([talk("I live in Rome.")], around(known))
    assert known.scopes == []


@dataclass
class Failing:
    """Fails on what holds "fail", and reads the user's memories."""

    passing: bool

    def extract(self, conversation, *, reading):
        reading.known()
        if "fail" in conversation.text:
            raise ExtractionError("it failed", reason="unavailable", passing=self.passing)
        return Passed(degraded=("extract: slowly",))


def test_a_conversation_that_fails_for_good_is_counted_and_the_others_go_on():
    known = Asked()
    step = Extract(extractor=Failing(passing=False), known=3)
    passed = step([talk("fail"), talk("a"), talk("b")], around(known))
    assert passed == Passed(
        decisions=(Decision(step="extract", verdict="failed", reason="unavailable"),),
        degraded=("extract: slowly",),
    )
    assert known.scopes == [(SCOPE, 3)] * 3


def test_a_failure_that_may_pass_is_raised_so_that_the_job_is_tried_again():
    with pytest.raises(ExtractionError, match="it failed"):
        Extract(extractor=Failing(passing=True))([talk("a"), talk("fail")], around())
