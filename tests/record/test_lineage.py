"""The tree of successors and sources, and the edges that a walk goes over."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConsolidateOptions,
    InvalidInputError,
    NotFoundError,
    Relationship,
    State,
)
from lance_memory.record.lineage import Edge, edges, edges_near, walk
from lance_memory.record.schema import StoreFormat, arrow_schema


def told(nodes):
    """What each node says, nested."""
    found = []
    for n in nodes:
        mark = {"repeated": True} if n.repeated else {"more": True} if n.more else {}
        found.append((n.memory.id, n.relation, n.generation, told(n.nodes), mark))
    return found


def leaf(name, generation, relation="consolidates", **mark):
    return (name, relation, generation, [], mark)


def made_of(*sources):
    return [Relationship(relation="consolidates", target=source) for source in sources]


@pytest.fixture
def family(store):
    """Two generations: a, b → ab; c, d → cd; ab, cd → all."""
    parents = {"a": "ab", "b": "ab", "c": "cd", "d": "cd", "ab": "all", "cd": "all", "all": None}
    store.add_many(
        [
            {
                "id": name,
                "content": f"the memory {name}",
                "relationships": made_of(*(c for c, p in parents.items() if p == name)),
                "superseded_by": parent,
                "state": "superseded" if parent else "active",
            }
            for name, parent in parents.items()
        ]
    )
    return store


def test_sources_hang_below_the_generation_that_they_became(family):
    found = family.lineage("all")
    assert (found.memory.id, found.successors) == ("all", ())
    assert told(found.sources) == [
        ("ab", "consolidates", -1, [leaf("a", -2), leaf("b", -2)], {}),
        ("cd", "consolidates", -1, [leaf("c", -2), leaf("d", -2)], {}),
    ]


def test_successors_hang_on_what_they_replaced_and_do_not_come_down_again(family):
    found = family.lineage("a")
    assert told(found.successors) == [("ab", "consolidates", 1, [leaf("all", 2)], {})]
    assert found.sources == ()


def test_a_memory_between_has_both(family):
    found = family.lineage("ab")
    assert told(found.successors) == [leaf("all", 1)]
    assert told(found.sources) == [leaf("a", -1), leaf("b", -1)]
    assert [(n.memory.id, n.generation) for n in found] == [("all", 1), ("a", -1), ("b", -1)]


def test_a_tree_that_is_cut_says_where(family):
    assert told(family.lineage("all", depth=1).sources) == [
        leaf("ab", -1, more=True),
        leaf("cd", -1, more=True),
    ]
    assert told(family.lineage("a", depth=1).successors) == [leaf("ab", 1, more=True)]
    assert not any(n.more for n in family.lineage("all", depth=2))


def test_a_source_of_two_is_shown_twice_and_its_own_sources_once(store):
    """A diamond: top → left, right → both → below."""
    store.add_many(
        [
            {"id": "1 below", "content": "below"},
            {"id": "2 both", "content": "both", "relationships": made_of("1 below")},
            {"id": "3 left", "content": "left", "relationships": made_of("2 both")},
            {"id": "4 right", "content": "right", "relationships": made_of("2 both")},
            {"id": "5 top", "content": "top", "relationships": made_of("3 left", "4 right")},
        ]
    )
    both = ("2 both", "consolidates", -2, [leaf("1 below", -3)], {})
    assert told(store.lineage("5 top").sources) == [
        ("3 left", "consolidates", -1, [both], {}),
        ("4 right", "consolidates", -1, [leaf("2 both", -2, repeated=True)], {}),
    ]
    assert told(store.lineage("1 below").successors) == [
        (
            "2 both",
            "consolidates",
            1,
            [
                ("3 left", "consolidates", 2, [leaf("5 top", 3)], {}),
                ("4 right", "consolidates", 2, [leaf("5 top", 3, repeated=True)], {}),
            ],
            {},
        )
    ]


def test_what_was_cut_where_it_stood_first_is_shown_where_there_is_room(store):
    """far → near → shared → end; the start names `far` and `shared`."""
    store.add_many(
        [
            {"id": "1 far", "content": "far", "relationships": made_of("3 shared")},
            {"id": "2 end", "content": "end"},
            {"id": "3 shared", "content": "shared", "relationships": made_of("2 end")},
            {"id": "start", "content": "start", "relationships": made_of("1 far", "3 shared")},
        ]
    )
    assert told(store.lineage("start", depth=2).sources) == [
        ("1 far", "consolidates", -1, [leaf("3 shared", -2, more=True)], {}),
        ("3 shared", "consolidates", -1, [leaf("2 end", -2)], {}),
    ]


def test_a_cycle_ends_where_it_comes_round(store):
    store.add_many(
        [
            {"id": "a", "content": "a", "relationships": made_of("b")},
            {"id": "b", "content": "b", "relationships": made_of("a", "gone")},
        ]
    )
    found = store.lineage("a", depth=100)
    around = leaf("a", -2, repeated=True)
    assert told(found.sources) == [("b", "consolidates", -1, [around], {})]
    assert told(found.successors) == [("b", "consolidates", 1, [leaf("a", 2, repeated=True)], {})]


def test_other_relations_are_no_lineage(store):
    old = store.add("old", key="k").id
    store.add("aside", relationships=[Relationship(relation="contradicts", target=old)])
    new = store.upsert("new", key="k").id
    found = store.lineage(old)
    assert told(found.successors) == [leaf(new, 1, "updates")]
    assert told(store.lineage("k").sources) == [leaf(old, -1, "updates")]


def test_a_successor_without_an_edge_of_its_own_is_told(store):
    store.add_many(
        [
            {"id": "new", "content": "new"},
            {"id": "old", "content": "old", "state": "superseded", "superseded_by": "new"},
        ]
    )
    assert told(store.lineage("old").successors) == [leaf("new", 1, "superseded_by")]
    assert told(store.lineage("new").sources) == [leaf("old", -1, "superseded_by")]


def test_a_deleted_source_is_left_out_and_stands_in_the_past(family):
    before = family.version
    family.delete("ab")
    assert told(family.lineage("all").sources) == [
        ("cd", "consolidates", -1, [leaf("c", -2), leaf("d", -2)], {}),
    ]
    assert [n.memory.id for n in family.at(before).lineage("all")] == [
        "ab",
        "a",
        "b",
        "cd",
        "c",
        "d",
    ]


def test_a_scope_shows_its_own_generations_only(store):
    store.add_many(
        [
            {"id": "ann", "content": "of ann", "user": "ann"},
            {"id": "bob", "content": "of bob", "user": "bob"},
            {
                "id": "two",
                "content": "of both",
                "user": "ann",
                "relationships": made_of("ann", "bob"),
            },
        ]
    )
    assert [n.memory.id for n in store.lineage("two")] == ["ann", "bob"]
    assert [n.memory.id for n in store.scoped(user="ann").lineage("two")] == ["ann"]
    assert list(store.scoped(user="bob").lineage("bob")) == []
    with pytest.raises(NotFoundError):
        store.scoped(user="bob").lineage("two")


@pytest.mark.parametrize("depth", [0, -1, 101])
def test_a_lineage_has_1_to_100_generations(store, depth):
    stored = store.add("a")
    with pytest.raises(InvalidInputError, match=f"depth={depth}; a lineage shows 1 to 100"):
        store.lineage(stored.id, depth=depth)


def test_three_passes_keep_the_full_lineage(store):
    """Summaries of summaries of summaries: every turn is reached from the last one."""
    turns = store.add_many([f"turn {n} of the long talk" for n in range(8)]).ids
    everything = ConsolidateOptions(
        min_similarity=-1.0, max_size=2, max_dropped=1.0, distinct=False
    )
    counts = []
    for number in range(3):
        store.consolidate(
            everything, lambda members, n=number: f"pass {n}: {members[0].content}", guard=None
        )
        counts.append(store.count())
    assert counts == [4, 2, 1]
    (last,) = store.list()
    found = store.lineage(last.id)
    by_generation = {g: [n.memory.id for n in found if n.generation == -g] for g in (1, 2, 3)}
    assert [len(ids) for ids in by_generation.values()] == [2, 4, 8]
    assert sorted(by_generation[3]) == sorted(turns)
    assert {n.memory.state for n in found} == {State.SUPERSEDED}
    assert {r.memory.id for r in store.related(last.id, depth=3)} == {n.memory.id for n in found}
    (up,) = [store.lineage(turn) for turn in turns[:1]]
    assert [n.generation for n in up] == [1, 2, 3]
    assert [*up][-1].memory.id == last.id


# -- the edges of a walk --------------------------------------------------------------------


SCHEMA = pa.schema(
    [arrow_schema(StoreFormat(embedding_model="x", dimension=1)).field(n)
     for n in ("id", "superseded_by", "relationships")]
)  # fmt: skip
NAMES = list("abcdef")
LINKS = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["about", "consolidates", "updates", "superseded_by"]),
        st.sampled_from([*NAMES, "gone"]),
    ),
    max_size=14,
)


def rows_of(links):
    """Rows of a table: the edges as relationships, the last `superseded_by` in its column."""
    following = {s: t for s, relation, t in links if relation == "superseded_by"}
    listed = [
        {
            "id": name,
            "superseded_by": following.get(name),
            "relationships": [
                {"relation": r, "target": t, "note": ""}
                for s, r, t in links
                if s == name and r != "superseded_by"
            ],
        }
        for name in NAMES
    ]
    return pa.Table.from_pylist(listed, SCHEMA)


@settings(max_examples=200, deadline=None)
@given(links=LINKS, depth=st.integers(1, 7), relation=st.sampled_from([None, "consolidates"]))
def test_a_walk_over_the_near_edges_is_a_walk_over_all(links, depth, relation):
    for start in NAMES:
        rows = rows_of(links)
        near = edges_near(rows, start, depth=depth)
        assert walk(near, start, relation=relation, depth=depth) == walk(
            edges(rows), start, relation=relation, depth=depth
        )


def test_every_edge_of_the_rows_is_told():
    links = [("a", "about", "b"), ("b", "superseded_by", "c"), ("b", "updates", "gone")]
    assert edges(rows_of(links)) == [
        Edge(start="a", relation="about", target="b"),
        Edge(start="b", relation="updates", target="gone"),
        Edge(start="b", relation="superseded_by", target="c"),
    ]
    assert edges(SCHEMA.empty_table()) == []


def test_a_walk_from_where_nobody_is_goes_over_nothing():
    assert edges_near(rows_of([("a", "about", "b")]), "nobody", depth=3) == []
    assert edges_near(rows_of([]), "a", depth=3) == []
    assert edges_near(SCHEMA.empty_table(), "a", depth=3) == []


@pytest.mark.slow
def test_a_lineage_among_100_000_memories_is_found_at_once():
    """0.3 s of processor time are far more than it takes: 0.05 s."""
    parents = range(100_000)
    rows = pa.table(
        {
            "id": [f"memory-{n:08d}" for n in parents],
            "superseded_by": [f"memory-{n + 1:08d}" if n % 10 != 9 else None for n in parents],
            "relationships": [
                [{"relation": "consolidates", "target": f"memory-{n - 1:08d}", "note": ""}]
                if n
                else []
                for n in parents
            ],
        },
        schema=SCHEMA,
    )
    began = time.process_time()
    found = edges_near(rows, "memory-00050000", depth=11)
    took = time.process_time() - began
    assert {e.target for e in found if e.relation == "consolidates"} >= {
        f"memory-{n:08d}" for n in range(49_990, 50_000)
    }
    assert took < 0.3
