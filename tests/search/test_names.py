"""Known actors that a question names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_memory.search.names import Mentions, Names

KNOWN = Names.of(
    ["Caroline", "Melanie", "Mark", "user", "Jon Snow", "小明", "alice@example.com", "John", "bo"]
)


@pytest.mark.parametrize(
    ("text", "actors", "without"),
    [
        ("When did Caroline's sister run?", ["Caroline"], "When did sister run?"),
        ("when did melanie run", ["Melanie"], "when did run"),
        ("did CAROLINE run", ["Caroline"], "did run"),
        ("John’s dog", ["John"], "dog"),
        ("What did Jon Snow say", ["Jon Snow"], "What did say"),
        ("Where was Snow", ["Jon Snow"], "Where was"),
        ("小明昨天吃了什么", ["小明"], "昨天吃了什么"),
        ("what did alice@example.com send?", ["alice@example.com"], "what did send?"),
        ("did Bo see it", ["bo"], "did see it"),
    ],
)
def test_a_named_actor_is_found_and_leaves_the_text(text, actors, without):
    found = KNOWN.mentioned(text)
    assert [sorted(meant) for meant in found.actors] == [actors]
    assert (found.without, found.single) == (without, frozenset(actors))


@pytest.mark.parametrize(
    "text",
    [
        "Which user did it?",
        "What did Carol do",
        "Johnny and the Marks brothers",
        "the Carolines",
        "How will you mark it, Anna?",
        "",
    ],
)
def test_what_is_no_name_stays(text):
    assert KNOWN.mentioned(text) == Mentions(without=text)


def test_of_two_names_none_is_the_single_one():
    found = KNOWN.mentioned("What did Caroline tell Melanie?")
    assert (found.without, found.single, len(found.actors)) == ("What did tell ?", frozenset(), 2)


def test_a_name_said_twice_is_one_name():
    assert KNOWN.mentioned("Caroline, oh Caroline, why").single == {"Caroline"}


def test_a_text_of_nothing_but_names_keeps_them():
    found = KNOWN.mentioned("Caroline?")
    assert (found.without, found.single) == ("Caroline?", {"Caroline"})


def test_a_shared_first_name_means_both():
    known = Names.of(["David Lee", "David Kim"])
    assert known.mentioned("What did David eat?").single == {"David Lee", "David Kim"}
    assert known.mentioned("What did David Kim eat?").single == {"David Kim"}


@given(st.lists(st.text(max_size=12), max_size=5), st.text(max_size=60))
def test_any_text_and_any_names_are_read(actors, text):
    found = Names.of(actors).mentioned(text)
    assert {name for meant in found.actors for name in meant} <= set(actors)
    assert found.actors or found.without == text
