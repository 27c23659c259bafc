"""Preference pairs: corrections, and answers that were rated differently."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from lance_memory import ExportOptions, Relationship


def pairs(view, tmp_path, **options):
    """(prompt, chosen, rejected, origin) of each pair."""
    path = tmp_path / "x.jsonl"
    asked = ExportOptions(format="preference", overwrite=True, **options)
    view.export(path, asked)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(r["prompt"], r["chosen"], r["rejected"], r["metadata"]["origin"]) for r in rows]


def answers(store, *rated, session="s", prompt="where is the kettle"):
    store.add(prompt, role="user", session=session)
    for text, quality in rated:
        store.add(text, role="assistant", quality=quality, session=session)


def test_a_correction_prefers_what_stands_to_what_it_replaced(store, tmp_path):
    where = {"session": "s", "role": "assistant", "key": "kettle"}
    store.add("where is the kettle", role="user", session="s")
    store.upsert("on the stove", **where)
    store.upsert("in the cupboard", **where)
    store.add("thank you so much", role="user", session="s")
    store.upsert("on the shelf", **where)
    assert pairs(store, tmp_path) == [
        ("where is the kettle", "on the shelf", "on the stove", "correction"),
        ("where is the kettle", "on the shelf", "in the cupboard", "correction"),
    ]


def test_without_an_earlier_turn_the_key_is_the_prompt(store, tmp_path):
    store.upsert("lives in Porto", key="home", user="ann")
    store.upsert("lives in Lisbon", key="home", user="ann")
    old = store.add("bob likes pears").id
    store.supersede(old, "bob likes apples", relation="updates")
    assert pairs(store, tmp_path) == [
        ("home", "lives in Lisbon", "lives in Porto", "correction"),
        ("", "bob likes apples", "bob likes pears", "correction"),
    ]


def test_a_contradicted_memory_is_rejected_for_what_contradicts_it(store, tmp_path):
    old = store.add("the shop opens at eight", state="contradicted").id
    store.add(
        "the shop opens at nine", relationships=[Relationship(relation="contradicts", target=old)]
    )
    assert pairs(store, tmp_path) == [
        ("", "the shop opens at nine", "the shop opens at eight", "correction"),
    ]


def test_what_does_not_correct_is_no_pair(store, tmp_path, clock):
    """Consolidated, retired, expired and reworded-in-place memories, and both sides alive."""
    one, two, three = (store.add(f"note{n} of thing{n}").id for n in range(3))
    store.supersede([one, two], "notes of things")
    store.retire(three, reason="wrong")
    store.add("other", relationships=[Relationship(relation="updates", target=three)])
    alive = store.add("alive still").id
    store.add("contrary", relationships=[Relationship(relation="contradicts", target=alive)])
    store.update(alive, content="alive reworded")
    store.upsert("same text", key="k", importance=0.1)
    store.upsert("same text", key="k", importance=0.9)
    store.upsert("soon gone", key="e", expires_at=clock.now + timedelta(hours=1))
    store.upsert("stays", key="e")
    clock.forward(hours=2)
    assert pairs(store, tmp_path) == []


def test_a_correction_that_was_retired_itself_teaches_nothing(store, tmp_path):
    store.upsert("first wording", key="k")
    store.upsert("second wording", key="k")
    store.retire("k", reason="nonsense")
    assert pairs(store, tmp_path) == []


def test_relations_in_a_circle_end(store, tmp_path):
    ids = [f"0000000{n}-0000-7000-8000-000000000000" for n in range(2)]
    store.add_many(
        {
            "id": ids[n], "content": f"round{n} and round{n}", "state": "contradicted",
            "relationships": [Relationship(relation="contradicts", target=ids[1 - n])],
        }
        for n in range(2)
    )  # fmt: skip
    assert pairs(store, tmp_path) == []


def test_the_best_rated_answer_is_preferred_to_each_worse_one(store, tmp_path):
    answers(store, ("no idea", 0.1), ("on the stove", 0.9), ("in a box", 0.5), ("unrated", None))
    assert pairs(store, tmp_path) == [
        ("where is the kettle", "on the stove", "no idea", "rating"),
        ("where is the kettle", "on the stove", "in a box", "rating"),
    ]


@pytest.mark.parametrize(("margin", "count"), [(0.1, 1), (0.3, 1), (0.300001, 0)])
def test_ratings_within_the_margin_are_no_preference(store, tmp_path, margin, count):
    answers(store, ("on the stove", 0.9), ("in a box", 0.6))
    assert len(pairs(store, tmp_path, margin=margin)) == count


def test_answers_compare_where_the_prompt_is_the_same_in_one_session(store, tmp_path):
    answers(store, ("on the stove", 0.9))
    answers(store, ("in a box", 0.2))
    answers(store, ("by the door", 0.3), prompt="where is the broom")
    answers(store, ("elsewhere entirely", 0.1), session="t")
    assert pairs(store, tmp_path) == [
        ("where is the kettle", "on the stove", "in a box", "rating"),
    ]


def test_what_a_user_says_and_what_nobody_asked_is_not_rated(store, tmp_path):
    store.add("answer one", role="assistant", quality=0.9, session="s")
    store.add("answer two", role="assistant", quality=0.1, session="s")
    store.add("question one", role="user", quality=0.9, session="s")
    store.add("question two", role="user", quality=0.1, session="s")
    assert pairs(store, tmp_path) == []


def test_the_filter_is_about_the_chosen_side(store, tmp_path):
    for topic in ("tea", "milk"):
        store.upsert(f"old {topic}", key=topic, tags=["draft"], quality=0.1)
        store.upsert(
            f"new {topic}", key=topic, tags=[topic], quality=0.8 if topic == "tea" else 0.2
        )
    path = tmp_path / "t.jsonl"
    options = ExportOptions(format="preference")
    made = store.export(path, options, tags="tea")
    assert [json.loads(line)["rejected"] for line in path.read_text().splitlines()] == ["old tea"]
    assert made.filter == {"states": "visible", "tags": ("tea",)}
    good = store.export(tmp_path / "g.jsonl", options, min_quality=0.5)
    assert (good.counts.found, good.counts.low_quality, good.counts.examples) == (2, 1, 1)
