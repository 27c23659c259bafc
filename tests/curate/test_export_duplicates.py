"""Near-duplicates: the best one stays, or one text that a transform makes of them."""

from __future__ import annotations

import json

import pytest

from lance_memory import Derived, ExportOptions, InvalidInputError, extractive


def exported(view, tmp_path, transform=None, **options):
    asked = ExportOptions(overwrite=True, **options)
    made = view.export(tmp_path / "x.jsonl", asked, transform=transform)
    lines = (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    return made, [json.loads(line) for line in lines]


def texts(view, tmp_path, **options):
    return [row["text"] for row in exported(view, tmp_path, **options)[1]]


SAME = ["kettle is on the stove", "on the stove is kettle", "the kettle is on stove"]


def add(store, *qualities, **where):
    for n, (content, quality) in enumerate(zip(SAME, qualities, strict=True)):
        store.add(content, session=f"s{n}", quality=quality, **where)


@pytest.mark.parametrize(
    ("qualities", "kept"),
    [
        ((0.2, 0.9, 0.5), 1),
        ((0.2, None, None), 0),
        ((0.0, None, None), 0),
        ((None, None, None), 2),
        ((0.7, 0.7, 0.1), 1),
    ],
)
def test_the_best_rated_stays_else_the_newest(store, tmp_path, qualities, kept):
    add(store, *qualities)
    store.add("something else entirely", session="s0")
    assert sorted(texts(store, tmp_path)) == sorted([SAME[kept], "something else entirely"])


def test_the_floor_and_the_scope_decide_what_is_near(store, tmp_path):
    add(store, 0.1, 0.2, 0.3)
    assert texts(store, tmp_path) == SAME[2:]
    assert texts(store, tmp_path, min_similarity=None) == SAME
    assert texts(store, tmp_path, across=("user",)) == SAME
    assert texts(store, tmp_path, across=("session",)) == SAME[2:]
    store.add("kettle stove", session="s9")
    assert texts(store, tmp_path) == [SAME[2], "kettle stove"]


def test_the_same_text_is_one_whoever_said_it(store, tmp_path):
    for n, actor in enumerate(["Ann", "Bob", ""]):
        kind = "semantic" if actor else "episodic"
        store.add("thank you", actor=actor, kind=kind, session=f"s{n}", role="user")
    assert texts(store, tmp_path) == ["thank you"]
    assert texts(store, tmp_path, across=()) == ["thank you"] * 3


def test_more_copies_than_a_cluster_of_consolidation_holds_leave_one(store, tmp_path):
    words = SAME[0].split()
    store.add_many(
        {"content": " ".join(words[n % 5 :] + words[: n % 5]) + " " * (n // 5), "session": f"s{n}"}
        for n in range(60)
    )
    made, rows = exported(store, tmp_path)
    assert (len(rows), made.counts.near_duplicates, made.counts.found) == (1, 59, 60)


def test_what_differs_in_a_number_or_a_negation_is_no_duplicate(store, tmp_path):
    facts = ["the train leaves at 9", "the train leaves at 10", "the train leaves not at 9"]
    for n, fact in enumerate(facts):
        store.add(fact, session=f"s{n}")
    assert texts(store, tmp_path, min_similarity=0.5) == facts


def test_conversations_are_duplicates_turn_for_turn(store, tmp_path):
    """One shared turn does not take a conversation apart."""
    talks = {
        "a": [("user", "where is the kettle"), ("assistant", "on the stove"), ("user", "thanks")],
        "b": [("user", "kettle the is where"), ("assistant", "the stove on"), ("user", "thanks")],
        "c": [
            ("user", "where is the kettle"),
            ("assistant", "behind that door"),
            ("user", "thanks"),
        ],
        "d": [("user", "where is the kettle"), ("assistant", "on the stove")],
    }
    for session, turns in talks.items():
        store.add_many(
            {"content": c, "role": r, "session": session, "seq": n}
            for n, (r, c) in enumerate(turns)
        )
    made, rows = exported(store, tmp_path, format="chat")
    assert [row["metadata"]["session"] for row in rows] == ["b", "c", "d"]
    assert len(rows[0]["metadata"]["sources"]) == 3
    assert made.counts.near_duplicates == 1


def test_a_transform_makes_one_example_of_a_cluster_with_all_its_sources(store, tmp_path):
    add(store, 0.1, 0.9, 0.2, user="ann")
    lonely = store.add("something else entirely", session="s7").id
    seen = []

    def joins(cluster):
        seen.append([memory.content for memory in cluster])
        return Derived(content=" | ".join(memory.content for memory in cluster))

    made, rows = exported(store, tmp_path, transform=joins)
    assert seen == [SAME]
    ids = {m.content: m.id for m in store.list()}
    assert [(row["text"], row["metadata"]["sources"]) for row in rows] == [
        (" | ".join(SAME), [ids[text] for text in SAME]),
        ("something else entirely", [lonely]),
    ]
    assert (rows[0]["metadata"]["user"], rows[0]["metadata"]["session"]) == ("ann", "")
    assert (made.counts.merged, made.counts.declined) == (1, 0)
    assert made.source_ids == tuple(sorted(ids.values()))


def raises(cluster):
    raise RuntimeError("no")


@pytest.mark.parametrize(
    "transform", [raises, lambda c: None, lambda c: " ", lambda c: "nothing of it"]
)
def test_a_transform_that_fails_or_loses_facts_leaves_the_best(store, tmp_path, transform):
    for n in range(2):
        store.add("Nora met Oscar and Paula in Quito in 1998" + " " * n, session=f"s{n}")
    made, rows = exported(store, tmp_path, transform=transform)
    assert [row["text"] for row in rows] == ["Nora met Oscar and Paula in Quito in 1998 "]
    assert len(rows[0]["metadata"]["sources"]) == 1
    assert (made.counts.merged, made.counts.declined) == (0, 1)


def test_a_transform_joins_nothing_across_the_split(store, tmp_path):
    for n in range(30):
        store.add(f"{SAME[n % 3]}{' ' * (n // 3)}", session=f"s{n}")
    options = ExportOptions(validation=0.5)
    store.export(tmp_path / "out", options, transform=extractive)
    (line,) = [
        line
        for name in ("train", "validation")
        for line in (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()
    ]
    assert 2 < len(json.loads(line)["metadata"]["sources"]) < 28


@pytest.mark.parametrize("options", [{"format": "chat"}, {"min_similarity": None}])
def test_a_transform_without_clusters_of_texts_is_refused(store, tmp_path, options):
    with pytest.raises(InvalidInputError, match="makes one text of near-duplicates"):
        exported(store, tmp_path, transform=extractive, **options)
