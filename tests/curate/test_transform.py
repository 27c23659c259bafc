from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import Memory
from lance_memory.curate.transform.builtin import TRANSFORMS, extractive, latest, merge_lines
from lance_memory.facts import dropped, sentences

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def cluster(*texts, embedded=True):
    """Memories, oldest first."""
    return [
        Memory(
            id=f"m{i:03}",
            revision=1,
            content=text,
            content_hash="",
            created_at=NOON + timedelta(minutes=i),
            updated_at=NOON,
            state_at=NOON,
            embedding=np.eye(4, dtype=np.float32)[i % 4] + 0.1 if embedded else None,
        )
        for i, text in enumerate(texts)
    ]


def derived(*texts, **options):
    return extractive(cluster(*texts, **options)).content


WORDS = st.sampled_from(
    [
        "tea",
        "rome",
        "paid",
        "50",
        "10:30",
        "not",
        "Maria",
        "Pedro",
        "likes",
        "green",
        "NASA",
        "the",
        "at",
        "never",
        "não",
        "茶",
        "1,000",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(lambda ws: " ".join(ws) + ".")
TEXTS = st.lists(SENTENCES, min_size=1, max_size=3).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.booleans())
def test_it_invents_nothing_and_keeps_every_number_name_and_negation(texts, embedded):
    result = derived(*texts, embedded=embedded)
    said = {s for text in texts for s in sentences(text)}
    assert set(sentences(result)) <= said
    assert dropped(texts, result).missing == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6))
def test_it_begins_with_the_newest_and_says_nothing_twice(texts):
    result = derived(*texts)
    assert result.startswith(" ".join(sentences(texts[-1])))
    once = list(dict.fromkeys(sentences(result)))
    assert len(sentences(result)) <= len(once) + len(sentences(texts[-1]))


def test_the_latest_word_comes_first_and_repetitions_go():
    assert derived("Ana likes tea.", "Ana likes tea.") == "Ana likes tea."
    assert derived("Eats at two.", "Eats at 2.") == "Eats at 2."
    assert derived("I am allergic to nuts.", "Remember: I'm allergic to nuts!") == (
        "Remember: I'm allergic to nuts!"
    )
    assert derived("I wake at 9 am.", "I wake at 9 pm.") == "I wake at 9 pm. I wake at 9 am."
    assert derived("Ana likes tea.", "She lives in Rome now.") == (
        "She lives in Rome now. Ana likes tea."
    )


@pytest.mark.parametrize(
    ("texts", "must"),
    [
        (("Paid 50 for it.", "Paid 60 for it."), ["50", "60"]),
        (("We met Maria there.", "We met Pedro there."), ["Maria", "Pedro"]),
        (
            ("Pedro likes tea very much today.", "Maria likes tea very much today."),
            ["Maria", "Pedro"],
        ),
        (("Pedro likes green tea.", "Maria likes green tea."), ["Maria", "Pedro"]),
        (
            ("I do not live in Rome.", "I live in Rome."),
            ["I do not live in Rome.", "I live in Rome."],
        ),
        (("Ana does not eat fish.", "Ana does not eat pork."), ["fish", "pork"]),
        (("A Ana não come peixe.", "A Ana não come carne."), ["peixe", "carne"]),
        (("It is 5 degrees.", "It is -5 degrees."), ["It is 5 degrees.", "It is -5 degrees."]),
        (("O João mora aqui.", "O José mora aqui."), ["João", "José"]),
        (("我不喝茶。", "我喝茶。"), ["我不喝茶。", "我喝茶。"]),
        (("Dr. Smith called today.", "Dr. Jones called today."), ["Smith", "Jones"]),
        (("Eats at nine am.", "Eats at 9 pm."), ["nine am", "9 pm"]),
    ],
)
def test_what_differs_in_a_fact_is_kept(texts, must):
    result = derived(*texts)
    assert [m for m in must if m not in result] == []


def test_sentences_without_an_end_do_not_run_into_each_other():
    texts = ("I drink cold coffee at work", "I like tea")
    assert sorted(sentences(derived(*texts))) == sorted(texts)


def test_one_memory_stays_what_it_says():
    assert derived("Only this. And that.") == "Only this. And that."


def test_memories_without_vectors_are_kept_distinct_too():
    assert "Rome" in derived("Lives in Rome now.", "Drinks tea every morning.", embedded=False)


def test_the_latest_is_the_newest_statement_and_nothing_else():
    assert latest(cluster("Lives in Rome.", "Likes tea.", "Lives in Pisa.")).content == (
        "Lives in Pisa."
    )


def merged(*texts):
    return merge_lines(cluster(*texts)).content


LINES = st.sampled_from(
    ["tea", "- Tea", "* tea.", "2. milk", "  two  words", "5 km", "-5 km", "#x", "a:"]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(LINES, min_size=1, max_size=5).map("\n".join), min_size=1, max_size=4))
def test_merged_lines_are_lines_of_the_sources_and_merging_again_changes_nothing(texts):
    result = merged(*texts)
    said = {line.strip() for text in texts for line in text.splitlines()}
    assert {line.strip() for line in result.splitlines()} <= said
    assert dropped(texts, result).missing == ()
    assert merged(result) == result
    assert merged(*texts, *texts) == result


@pytest.mark.parametrize(
    ("texts", "result"),
    [
        (("Buy tea", "buy  TEA.", "Buy milk"), "Buy tea\nBuy milk"),
        (("- tea\n- milk", "* Milk\n* bread"), "- tea\n- milk\n* bread"),
        (("1. milk\n2. bread", "1. bread\n2. eggs"), "1. milk\n2. bread\n2. eggs"),
        (("Café\n\n\nthé", "Cafe\u0301"), "Café\nthé"),
        (("", "tea"), "tea"),
        # What only looks like the same line stays.
        (("10. August", "3. August"), "10. August\n3. August"),
        (("It is -5", "It is 5"), "It is -5\nIt is 5"),
        (("Call 5. now", "Call now"), "Call 5. now\nCall now"),
        (("Ana likes tea?", "Ana likes tea."), "Ana likes tea?\nAna likes tea."),
        (("Likes:\n- tea", "Dislikes:\n- tea"), "Likes:\n- tea\nDislikes:\n- tea"),
        (("# Likes\ntea", "# Dislikes\ntea"), "# Likes\ntea\n# Dislikes\ntea"),
        (
            ("- Rome\n  - on Monday", "- Pisa\n  - on Monday"),
            "- Rome\n  - on Monday\n- Pisa\n  - on Monday",
        ),
        (("Likes:\n- tea", "likes:\n* Tea."), "Likes:\n- tea"),
        # Nothing comes to stand under another memory's heading.
        (("Never buy:\n- tea", "- milk"), "- milk\nNever buy:\n- tea"),
        (
            ("# Never\nbuy tea", "A list:\n- x", "buy milk"),
            "buy milk\nA list:\n- x\n# Never\nbuy tea",
        ),
    ],
)
def test_distinct_lines_are_kept_as_they_were_first_written(texts, result):
    assert merged(*texts) == result


def test_the_transforms_without_a_model_have_names():
    assert dict(TRANSFORMS) == {
        "extractive": extractive,
        "latest": latest,
        "merge-lines": merge_lines,
    }
