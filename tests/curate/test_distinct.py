"""The guard, rule by rule, and on labelled paraphrases with distractors, by the default embedder.

`paraphrases.json` has three sets. The rules were made on `develop`; `held_out` was written before
them and not looked at; `later` was written afterwards to find what they miss.
"""

from __future__ import annotations

import json
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import MiniLM
from lance_memory.curate.cluster.distinct import Apart, Facts, conflict, facts
from lance_memory.curate.cluster.groups import near_duplicates
from lance_memory.curate.options import ClusterMethod

SETS = json.loads((Path(__file__).parent / "paraphrases.json").read_text(encoding="utf-8"))
FLOOR = 0.75


def why(one, other, *beside):
    """The conflict of two texts, judged with those beside them as evidence."""
    a, b, *_ = facts([one, other, *beside])
    assert (conflict(a, b) is None) == (conflict(b, a) is None)
    return conflict(a, b)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("paid 5 for it", "paid 6 for it", "number 5 against 6"),
        ("we have two cats", "we have three cats", "number 2 against 3"),
        ("leaves at 9 am", "leaves at 9 pm", "number 9:00 against 21:00"),
        ("room 12B", "room 12C", "number 12b against 12c"),
        ("met Ana in Rome", "met Ana in Oslo", "name rome against oslo"),
        ("NASA did it", "ESA did it", "name nasa against esa"),
        ("Kemal came", "Aylin came", "name kemal against aylin"),
        ("due in March", "due in April", "month 3 against 4"),
        ("on Monday", "on Tuesday", "weekday 1 against 2"),
        ("he eats fish", "he does not eat fish", "a negation against none"),
        ("he eats fish", "he no longer eats fish", "a negation against none"),
        ("he eats fish", "he stopped eating fish", "a negation against none"),
        ("he eats fish", "he rarely eats fish", "a negation against none"),
        ("it is reproducible", "it is unreproducible", "a negation against none"),
        ("a Ana come peixe", "a Ana não come peixe", "a negation against none"),
        ("我喝茶", "我不喝茶", "a negation against none"),
        ("三只猫", "两只猫", "number 3 against 2"),
        ("张伟是我的同事", "李娜是我的同事", "name 张伟 against 李娜"),
        ("she likes it", "she hates it", "taste for against against"),
        ("before lunch", "after lunch", "order before against after"),
        ("turn it on", "turn it off", "switch on against off"),
        ("my sister came", "my brother came", "kin sister against brother"),
        ("kept for a week", "kept for two weeks", "number 1 against 2"),
    ],
)
def test_texts_that_differ_in_a_fact_conflict(one, other, reason):
    assert why(one, other) == reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("we have two cats", "we have 2 cats"),
        ("leaves at 9 am", "leaves at 9:00"),
        ("due on 5 March 2025", "due on 2025-03-05"),
        ("due in March", "due on March 5"),
        ("paid 1,200", "paid 1200.00"),
        ("twenty-five people", "25 people"),
        ("twice a day", "two times a day"),
        ("She met Ana", "Ana met her in Rome"),
        ("he stopped eating meat", "he doesn't eat meat"),
        ("he can't", "he cannot"),
        ("às 9h30", "às 9:30"),
        ("no domingo é tarde", "domingo é tarde"),
        ("下午三点", "下午3点"),
        ("会说一点法语", "会说法语"),
        ("", "anything at all, 5 times"),
    ],
)
def test_texts_that_say_the_same_or_simply_more_do_not_conflict(one, other):
    assert why(one, other) is None


def test_the_other_texts_show_whether_a_first_word_is_a_name():
    assert why("Zorb is slow", "Speed of it is low") == "name zorb against speed"
    assert why("Zorb is slow", "Speed of it is low", "the speed was low") is None
    assert why("Violet came", "Iris came", "a violet", "an iris") is None
    seen = ("a violet", "an iris", "for Violet", "for Iris")
    assert why("Violet came", "Iris came", *seen) == "name violet against iris"


VALUES = st.dictionaries(
    st.sampled_from(["name", "number"]),
    st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=12))
def test_arrays_of_pairs_are_judged_as_one_by_one(drawn):
    found = [Facts(values=values, negated=no) for values, no in drawn]
    at = np.arange(1, len(found) + 1)
    apart = Apart(found, at=at, of=len(found) + 1)
    expected = [[conflict(a, b) is None for b in found] for a in found]
    assert apart.allowed(at, at).tolist() == expected
    a, b = (x.ravel() for x in np.meshgrid(at, at, indexing="ij"))
    assert apart.pairs(a, b).tolist() == [may for line in expected for may in line]
    assert [[apart.conflict(i, j) is None for j in at] for i in at] == expected


@pytest.fixture(scope="module")
def embedder():
    return MiniLM()


def labelled(name, embedder):
    """Texts in a shuffled order, their vectors, the pairs that belong and those that must not."""
    texts = [text for group in SETS[name] for text in (*group["same"], *group["other"])]
    texts = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
    place = {text: i for i, text in enumerate(texts)}
    same = {
        tuple(sorted((place[a], place[b])))
        for group in SETS[name]
        for a, b in combinations(group["same"], 2)
    }
    apart = {
        tuple(sorted((place[a], place[b])))
        for group in SETS[name]
        for a, b in product(group["same"], group["other"])
    }
    return texts, embedder.embed(texts), same, apart


def merged(texts, vectors, method, *, guard):
    clusters = near_duplicates(
        vectors,
        floor=FLOOR,
        max_size=20,
        method=method,
        facts=(lambda at: facts([texts[i] for i in at])) if guard else None,
    )
    return {pair for members in clusters for pair in combinations(members, 2)}


@pytest.mark.parametrize("name", ["develop", "held_out"])
def test_no_distractor_is_merged_and_paraphrases_are_found(name, embedder):
    """Without the guard more than half of the distractors of a group land in it."""
    texts, vectors, same, apart = labelled(name, embedder)
    for method in ClusterMethod:
        found = merged(texts, vectors, method, guard=True)
        assert found & apart == set()
        assert len(found & same) / len(same) >= 0.98
    assert len(merged(texts, vectors, "greedy", guard=False) & apart) > 60


def test_what_the_rules_miss_is_known(embedder):
    """Names in lower case, who is what to whom, words for numbers that no list has."""
    missed = []
    for group in SETS["later"]:
        known = dict(
            zip(
                [*group["same"], *group["other"]],
                facts([*group["same"], *group["other"]]),
                strict=True,
            )
        )
        missed += [
            (one, other)
            for one, other in product(group["same"], group["other"])
            if conflict(known[one], known[other]) is None
        ]
    assert len(missed) == 10
    assert sorted({other for _, other in missed}) == [
        "He has experience with Kubernetes",
        "Mark is taller than Sofia",
        "The deadline was extended by three weeks",
        "The recall rate went from 90 to 80 percent",
        "emma moved to oslo",
        "lisa moved to bergen",
    ]
