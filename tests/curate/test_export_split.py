"""The split: by group, stable, and nothing of one side on the other."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import ExportOptions, Relationship
from lance_memory.curate.export.split import is_validation


def sides(view, **options):
    """Split name → the examples of its file."""
    with tempfile.TemporaryDirectory() as place:
        view.export(Path(place) / "out", ExportOptions(**{"validation": 0.4, **options}))
        return {
            name: [json.loads(line) for line in _lines(Path(place) / "out" / f"{name}.jsonl")]
            for name in ("train", "validation")
        }


def _lines(path):
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line]


def groups(examples, level="session"):
    return {(e["metadata"]["user"], e["metadata"][level]) for e in examples}


NAMES = st.sampled_from(["", "s1", "s2", "s3", "s4", "s5", "ä/b", '["s1"]'])
USERS = st.sampled_from(["", "ann", "bob"])
WORDS = st.lists(
    st.sampled_from(["red", "blue", "kettle", "train", "nine", "ten", "not", "Porto"]),
    min_size=1,
    max_size=5,
).map(" ".join)
ROWS = st.lists(
    st.tuples(USERS, NAMES, st.sampled_from(["user", "assistant"]), WORDS), min_size=1, max_size=25
)
FORMS = st.sampled_from(["plain", "chat", "preference"])


def fill(store, rows, first=0):
    store.add_many(
        [
            {"content": f"{text}", "user": user, "session": session, "role": role, "seq": seq,
             "quality": seq % 10 / 10}
            for seq, (user, session, role, text) in enumerate(rows, start=first)
        ]
    )  # fmt: skip


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=ROWS, form=FORMS, seed=st.integers(0, 3), floor=st.sampled_from([None, 0.9]))
def test_no_group_is_on_both_sides(rows, form, seed, floor, tmp_path_factory, reopen):
    store = reopen(tmp_path_factory.mktemp("split") / "store")
    fill(store, rows)
    found = sides(store, format=form, seed=seed, min_similarity=floor)
    ids = {
        name: {i for e in rows for i in e["metadata"]["sources"]} for name, rows in found.items()
    }
    assert not ids["train"] & ids["validation"]
    session = {m.id: (m.user, m.session) for m in store.list(states="any") if m.session}
    named = {name: {session[i] for i in some if i in session} for name, some in ids.items()}
    assert not named["train"] & named["validation"]
    texts = {name: {e.get("text") for e in rows if "text" in e} for name, rows in found.items()}
    assert not texts["train"] & texts["validation"]


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(before=ROWS, after=ROWS)
def test_other_sessions_move_no_group_to_the_other_side(before, after, tmp_path_factory, reopen):
    store = reopen(tmp_path_factory.mktemp("split") / "store")
    fill(store, before)
    first = sides(store, min_similarity=None)
    fill(store, [(user, f"new {name}", role, text) for user, name, role, text in after], first=50)
    more = sides(store, min_similarity=None)
    kept = [m.id for m in store.list() if m.seq < 50 and m.seq % 2]
    store.delete(kept) if kept else None
    fewer = sides(store, min_similarity=None)
    train = groups(first["train"]) | groups(more["train"]) | groups(fewer["train"])
    held = groups(first["validation"]) | groups(more["validation"]) | groups(fewer["validation"])
    assert not {pair for pair in train & held if pair[1]}


def test_the_share_is_met_on_average_and_the_seed_draws_others():
    drawn = [
        [is_validation(("", "ann", "", f"s{n}", ""), share=0.1, seed=seed) for n in range(5_000)]
        for seed in (0, 1)
    ]
    assert [abs(sum(one) / 5_000 - 0.1) < 0.02 for one in drawn] == [True, True]
    assert sum(a and b for a, b in zip(*drawn, strict=True)) < 120
    nested = [is_validation((f"s{n}",), share=0.3, seed=0) for n in range(500)]
    assert all(nested[n] for n in range(500) if is_validation((f"s{n}",), share=0.1, seed=0))


def test_names_that_look_alike_when_joined_are_other_groups():
    pairs = [(("a/b", "c"), ("a", "b/c")), (("a", ""), ("", "a")), (('a","b',), ("a", "b"))]
    for one, other in pairs:
        drawn = [
            [is_validation(name, share=0.5, seed=seed) for seed in range(64)]
            for name in (one, other)
        ]
        assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("level", "same"),
    [
        ("session", False),
        ("user", True),
        ("tenant", False),
        ("run", False),
    ],
)
def test_a_group_is_a_scope_level_and_those_above_it(store, level, same):
    """Without a tenant or a run, each memory is a group of its own."""
    store.add_many(
        [
            {"content": f"note{n} thing{n}", "user": "ann", "session": f"s{n}"}
            for n in range(40)
        ]
    )  # fmt: skip
    found = sides(store, group_by=level, validation=0.5, min_similarity=None)
    counts = sorted(len(examples) for examples in found.values())
    assert (counts == [0, 40]) is same
    assert sum(counts) == 40


def test_a_session_of_two_users_is_two_groups(store):
    for n in range(12):
        store.add_many(
            [{"content": f"{user} {n}", "user": user, "session": f"s{n}"} for user in "ab"]
        )
    found = sides(store, min_similarity=None, validation=0.5)
    train, held = groups(found["train"]), groups(found["validation"])
    assert not train & held
    assert {s for _, s in train} & {s for _, s in held}


SAYINGS = [f"saying{n} of thing{n} at place{n}" for n in range(30)]


def twins(store):
    """Every saying in a session of ann's and one of bob's."""
    store.add_many(
        {"content": text, "user": user, "session": f"{user} {n}", "role": "assistant"}
        for user in ("ann", "bob")
        for n, text in enumerate(SAYINGS)
    )


def test_near_duplicates_are_removed_over_every_scope(store):
    twins(store)
    found = sides(store)
    texts = [e["text"] for examples in found.values() for e in examples]
    assert sorted(texts) == sorted(SAYINGS)


@pytest.mark.parametrize("options", [{"across": ()}, {"min_similarity": None}])
def test_training_leaves_out_what_validation_has(store, tmp_path, options):
    """Where duplicates may stay, the ones across the split still go."""
    twins(store)
    found = sides(store, **options)
    train, held = ({e["text"] for e in found[name]} for name in ("train", "validation"))
    assert not train & held
    assert train | held == set(SAYINGS)
    asked = ExportOptions(validation=0.4, **options)
    counts = store.export(tmp_path / "out", asked, dry_run=True).counts
    assert counts.leaking == 60 - counts.examples > 0


@pytest.mark.parametrize(("shared", "leaks"), [(1, False), (2, True), (3, True)])
def test_a_conversation_leaks_when_half_of_it_is_in_validation(store, tmp_path, shared, leaks):
    """A word of thanks is in many conversations; a copied conversation is not."""
    names = [f"s{n}" for n in range(40)]
    held = [n for n in names if is_validation(("", "", "", n, ""), share=0.4, seed=0)]
    train = [n for n in names if n not in held]
    for session, turns in ((held[0], range(4)), (train[0], range(4 - shared, 8 - shared))):
        store.add_many(
            {
                "content": f"thing{turn} is at place{turn} since day{turn}",
                "role": "user" if turn % 2 == 0 else "assistant",
                "session": session,
                "seq": turn,
            }
            for turn in turns
        )
    options = ExportOptions(format="chat", validation=0.4)
    counts = store.export(tmp_path / "out", options).counts
    assert (counts.found, counts.leaking) == (2, int(leaks))


def test_a_pair_of_two_groups_is_left_out_where_the_split_parts_them(store, tmp_path):
    names = [f"s{n}" for n in range(40)]
    held = next(n for n in names if is_validation(("", "", "", n, ""), share=0.4, seed=0))
    train = next(n for n in names if not is_validation(("", "", "", n, ""), share=0.4, seed=0))
    old = store.add("the shop opens at eight", session=held).id
    store.supersede(old, "the shop opens early", relation="consolidates")
    edge = Relationship(relation="contradicts", target=old)
    store.add("the shop opens at ten", session=train, relationships=[edge])
    whole = store.export(tmp_path / "a", ExportOptions(format="preference")).counts
    assert (whole.found, whole.across_sides, whole.examples) == (1, 0, 1)
    split = ExportOptions(format="preference", validation=0.4)
    parted = store.export(tmp_path / "b", split).counts
    assert (parted.found, parted.across_sides, parted.examples) == (1, 1, 0)
