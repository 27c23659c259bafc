"""The default assessor of importance: what it finds, and what that is worth."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import Heuristic, InvalidInputError, Message
from lance_memory.agent.importance import Signals

WORTH = Heuristic()


def user(text):
    return Message(content=text)


def bot(text, role="assistant"):
    return Message(content=text, role=role)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Thanks!", 0.0, 0.1),
        ("ok, got it", 0.0, 0.1),
        ("What time is it?", 0.1, 0.2),
        ("The kettle is red.", 0.25, 0.3),
        ("I live in Porto.", 0.45, 0.6),
        ("We decided to use Postgres.", 0.45, 0.6),
        ("The nightly build failed again.", 0.35, 0.5),
        ("Remember: the key is under the mat.", 0.6, 0.75),
        ("Never deploy on a Friday, I am on call.", 0.85, 1.0),
        ("I promise to send Maria the 3 contracts by 12:30 on 2025-03-01. Remember it!", 0.95, 1.0),
    ],
)
def test_what_matters_more_is_worth_more(text, least, most):
    assert least <= WORTH([user(text)]) <= most


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([user("Remember the milk.")], {"asked": 1}),
        ([user("Don’t forget the milk.")], {"asked": 1}),
        ([user("Do you remember the milk?")], {"question": 1}),
        ([user("We agreed.")], {"decided": 1}),
        ([user("Go."), bot("Then we'll go with plan b.")], {"decided": 1}),
        ([user("Go."), bot("Traceback (most recent call last)", "tool")], {"failed": 1}),
        ([user("My sister has a dog.")], {"personal": 1}),
        ([user("I don't like milk.")], {"personal": 1}),
        ([user("Where do I live?")], {"question": 1}),
        ([user("Go."), bot("I am a model, and my name is Bot. Always.")], {}),
        ([user("It cost 5 euro. Really?")], {"specific": 0.25, "question": 0.5}),
        ([user("They saw Maria, Maria and Joao in 2024, or 2025, or 2026.")], {"specific": 1}),
        ([user("hello there"), bot("Hi! How can I help you with the report?")], {"idle": 1}),
        ([bot("The 3 files are in Porto.")], {"specific": 0.5}),
        ([user("Добрый день?")], {"question": 1}),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_each_signal_is_found_where_it_is_looked_for(messages, found):
    signals = WORTH.signals(messages)
    names = [name for name in Signals.__annotations__ if name != "length"]
    told = {name: getattr(signals, name) for name in names if getattr(signals, name)}
    assert told == found


def test_the_formula_is_the_sum_of_the_weights(monkeypatch):
    said = [user("Remember, I live in Porto since 2020.")]
    found = WORTH.signals(said)
    assert found == Signals(asked=1, personal=1, specific=0.5, length=pytest.approx(7 / 60))
    assert WORTH(said) == pytest.approx(0.25 + 0.4 + 0.2 + 0.2 * 0.5 + 0.1 * 7 / 60)
    other = Heuristic(base=0, asked=0.5, personal=0, specific=0, length=0)
    assert other(said) == 0.5


def test_nothing_said_matters_nothing():
    assert [WORTH(messages) for messages in ([], [user("")], [user(" \n")])] == [0, 0, 0]


@pytest.mark.parametrize(
    "given_", [{"base": -0.1}, {"asked": 2}, {"idle": "low"}, {"length": None}]
)
def test_a_weight_is_a_number_within_bounds(given_):
    with pytest.raises(InvalidInputError, match=next(iter(given_))):
        Heuristic(**given_)


TEXTS = st.text(max_size=40) | st.sampled_from(["remember", "I am", "error?", "7 Oct.", "thanks"])


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.tuples(TEXTS, st.sampled_from(["user", "assistant", "tool"])), max_size=4))
def test_it_is_a_share_and_always_the_same(texts):
    messages = [bot(text, role) for text, role in texts]
    found = WORTH(messages)
    assert 0 <= found <= 1
    assert WORTH(messages) == found


def test_a_long_text_is_looked_at_in_time_that_grows_with_it():
    """Guards against a pattern that tries every way of parting a text."""
    for piece in ("my ", "I don't ", "a" * 50, "1.", "x-'"):
        assert 0 <= WORTH([user(piece * (50_000 // len(piece)))]) <= 1
