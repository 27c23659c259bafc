"""Known actors that a question names."""

import time
import unicodedata

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


@pytest.mark.parametrize(
    ("actor", "text", "without"),
    [
        ("민수", "민수는 어디에 갔어?", "어디에 갔어?"),
        ("민수", "어제 민수가 뭐라고 했어?", "어제 뭐라고 했어?"),
        ("지은", "지은이는 어디에 갔어?", "어디에 갔어?"),
        ("지은", "지은 어디에 갔어?", "어디에 갔어?"),
        ("アン", "アンはどこ", "はどこ"),
        ("José", "Where did Jose\u0301 go?", "Where did go?"),
        ("Jose\u0301", "Where did José go?", "Where did go?"),
        ("O'Brien", "Where did O’Brien’s dog go?", "Where did dog go?"),
        ("O’Brien", "Don’t say O'Brien went", "Don’t say went"),
        ("Will", "Where did Will go?", "Where did go?"),
    ],
)
def test_a_name_is_found_however_it_is_spelt(actor, text, without):
    found = Names.of([actor]).mentioned(text)
    assert (found.single, found.without) == (frozenset({actor}), without)


@pytest.mark.parametrize(
    ("actor", "text"),
    [
        ("민수", "국민수는 몇 명이야?"),
        ("수진", "수진동은 어디야?"),
        ("明", "说明书在哪里"),
        ("김", "김치가 맛있어?"),
        ("アン", "アンパンを食べた"),
        ("アン", "ジョアンはどこ"),
    ],
)
def test_a_part_of_a_word_is_no_name(actor, text):
    assert Names.of([actor]).mentioned(text) == Mentions(without=text)


@pytest.mark.parametrize("actor", ["a", "in", "What", "the", "I", "You", "does", "Who"])
def test_ordinary_words_are_no_names(actor):
    text = "What does a fox in the box do? I ask you. Who knows"
    assert Names.of([actor]).mentioned(text) == Mentions(without=text)


def test_names_are_looked_for_in_the_first_4000_characters():
    assert KNOWN.mentioned("x" * 3_985 + " Melanie").single == {"Melanie"}
    assert not KNOWN.mentioned("x" * 4_000 + " Melanie").actors


def test_the_time_to_find_names_does_not_grow_with_the_square_of_their_number():
    start = time.process_time()
    assert KNOWN.mentioned("Melanie, Mark; " * 20_000).actors
    assert time.process_time() - start < 1


@given(st.text(max_size=60))
def test_a_text_without_names_is_left_as_it_was_spelt(text):
    decomposed = unicodedata.normalize("NFD", text)
    assert Names.of(["Zaphod"]).mentioned(decomposed).without == decomposed
