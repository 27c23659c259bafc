from __future__ import annotations

import functools
import operator
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from lance_memory import (
    AmbiguousError,
    InvalidInputError,
    Kind,
    MemoryStore,
    NotFoundError,
    Relationship,
    State,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def contents(memories):
    return [memory.content for memory in memories]


# -- get, find ------------------------------------------------------------------------------


def test_a_memory_is_found_by_id_key_and_unambiguous_beginning(store):
    first = store.add("first", key="the-key")
    store.add("second")
    expected = store.get(first.id)
    assert expected.content == "first"
    assert store.get("the-key") == expected
    assert store.get(first.id[:24]) == expected
    assert store.find(first.id) == expected


@pytest.mark.parametrize("state", State)
def test_an_id_finds_a_memory_in_whatever_state(store, state):
    stored = store.add("a", state=state)
    assert store.get(stored.id).state is state


def test_what_is_not_there_is_not_found(store):
    with pytest.raises(NotFoundError, match=r"no memory 'nope' in \(all\) at version 2.*lmem list"):
        store.get("nope")
    assert store.find("nope") is None


def test_an_ambiguous_beginning_lists_the_candidates(store):
    ids = store.add_many(f"m{i}" for i in range(7)).ids
    with pytest.raises(
        AmbiguousError, match=r"names 7 memories: .*, \.\.\.; give a full id"
    ) as caught:
        store.get("01")
    assert caught.value.candidates == tuple(sorted(ids))
    with pytest.raises(AmbiguousError):
        store.find("01")


@pytest.mark.parametrize("ref", ["", None, 5, b"x"])
def test_a_memory_is_asked_for_by_a_text(store, ref):
    with pytest.raises(InvalidInputError, match="named by its id or key"):
        store.get(ref)


def test_a_whole_id_wins_over_a_key_and_a_key_over_a_beginning(store):
    store.add("by id", id="ab")
    store.add("by longer id", id="abc-longer")
    store.add("by key", key="abc")
    store.add("key like an id", key="ab")
    assert store.get("ab").content == "by id"
    assert store.get("abc").content == "by key"
    assert store.get("abc-").content == "by longer id"


# -- list, iter, count ----------------------------------------------------------------------


def test_a_list_has_the_oldest_event_first(store):
    store.add("now")
    store.add("a year ago", event_at=NOON - timedelta(days=365))
    store.add("long ago", event_at=datetime(1750, 1, 1, tzinfo=UTC))
    store.add("noon", event_at=NOON)
    assert contents(store.list()) == ["long ago", "a year ago", "noon", "now"]


def test_a_list_is_paged_without_gaps_or_repetition(store):
    store.add_many(f"m{i:02}" for i in range(25))
    pages = [contents(store.list(limit=10, offset=o)) for o in (0, 10, 20, 30)]
    assert [len(p) for p in pages] == [10, 10, 5, 0]
    assert functools.reduce(operator.iadd, pages, []) == [f"m{i:02}" for i in range(25)]
    assert store.list(limit=0) == []
    assert contents(store.list(offset=24)) == ["m24"]


def test_the_newest_come_first_where_that_is_asked_for(store):
    store.add_many(f"m{i:02}" for i in range(25))
    assert contents(store.list(newest_first=True)) == contents(store.list())[::-1]
    assert contents(store.list(newest_first=True, limit=2, offset=1)) == ["m23", "m22"]


@pytest.mark.parametrize("paging", [{"limit": -1}, {"offset": -1}], ids=str)
def test_a_page_cannot_be_negative(store, paging):
    with pytest.raises(InvalidInputError, match="neither can be negative"):
        store.list(**paging)


def test_a_long_list_is_whole_and_in_order(store):
    store.add_many(f"m{i:04}" for i in range(2_500))
    assert contents(store.list()) == [f"m{i:04}" for i in range(2_500)]


def test_iter_gives_what_list_gives(store):
    store.add_many(
        [{"content": f"m{i}", "tags": ["even"] if i % 2 == 0 else []} for i in range(25)]
    )
    by_id = {m.id: m for m in store.list(tags="even")}
    assert {m.id: m for m in store.iter(batch_size=7, tags="even")} == by_id
    assert store.count(tags="even") == len(by_id) == 13


def test_iter_keeps_to_the_version_it_began_at(store):
    store.add_many(["a", "b", "c"])
    walk = store.iter(batch_size=1)
    first = next(walk)
    store.delete([m.id for m in store.list()])
    assert contents([first, *walk]) == ["a", "b", "c"]


@pytest.mark.parametrize("size", [0, -1])
def test_iter_needs_a_batch_of_one_or_more(store, size):
    store.add("a")
    with pytest.raises(InvalidInputError, match="batch_size"):
        next(store.iter(batch_size=size))


def test_an_empty_store_answers_every_read(store):
    assert (store.list(), list(store.iter()), store.count(), list(store.search("x"))) == (
        ([], [], 0, [])
    )
    assert store.log() == []
    assert (store.stats().rows, store.to_arrow().num_rows) == (0, 0)
    assert store.to_polars().collect().height == 0
    assert store.sql("SELECT count(*) AS n FROM memories")["n"].to_list() == [0]


def test_listed_memories_come_without_and_named_ones_with_their_embedding(store):
    stored = store.add("a")
    assert store.list()[0].embedding is None
    assert store.get(stored.id).embedding.shape == (16,)


# -- filters --------------------------------------------------------------------------------

MEMORIES = [
    {"content": "plain"},
    {"content": "tenant", "tenant": "t"},
    {"content": "user", "user": "u"},
    {"content": "agent", "agent": "a"},
    {"content": "session", "session": "s"},
    {"content": "run", "run": "r"},
    {"content": "semantic", "kind": "semantic"},
    {"content": "profile", "kind": "profile"},
    {"content": "pending", "state": "pending"},
    {"content": "retired", "state": "retired"},
    {"content": "one tag", "tags": ["x"]},
    {"content": "two tags", "tags": ["x", "y"]},
    {"content": "zero", "metadata": {"n": 0}},
    {"content": "one", "metadata": {"n": 1, "m": 1}},
    {"content": "false", "metadata": {"n": False}},
    {"content": "true", "metadata": {"n": True}},
    {"content": "empty", "metadata": {"n": ""}},
    {"content": "text one", "metadata": {"n": "1"}},
    {"content": "null", "metadata": {"n": None}},
    {"content": "actor", "actor": "bob"},
    {"content": "role", "role": "user"},
    {"content": "source", "source": "imported"},
    {"content": "key", "key": "k"},
    {"content": "old", "event_at": NOON},
    {"content": "older", "event_at": NOON - timedelta(hours=1)},
    {"content": "valid from", "valid_from": datetime(2026, 1, 1, tzinfo=UTC)},
    {"content": "valid to", "valid_to": datetime(2024, 1, 1, tzinfo=UTC)},
    {"content": "valid", "valid_from": NOON, "valid_to": NOON + timedelta(hours=1), "tags": ["v"]},
]


@pytest.fixture(scope="module")
def full(tmp_path_factory, embedder, ticking):
    store = MemoryStore.open(
        tmp_path_factory.mktemp("read") / "store", embedder=embedder, clock=ticking()
    )
    store.add_many(MEMORIES)
    return store


FILTERS = [
    ({"tenant": "t"}, ["tenant"]),
    ({"user": "u"}, ["user"]),
    ({"agent": "a"}, ["agent"]),
    ({"session": "s"}, ["session"]),
    ({"run": "r"}, ["run"]),
    ({"user": "u", "tenant": "t"}, []),
    ({"kinds": "semantic"}, ["semantic"]),
    ({"kinds": [Kind.SEMANTIC, "profile"]}, ["profile", "semantic"]),
    ({"kinds": ["working"]}, []),
    ({"kinds": []}, []),
    ({"states": "pending"}, ["pending"]),
    ({"states": State.RETIRED}, ["retired"]),
    ({"states": ["pending", State.RETIRED]}, ["pending", "retired"]),
    ({"states": []}, []),
    ({"states": "visible", "user": "u"}, ["user"]),
    ({"tags": "x"}, ["one tag", "two tags"]),
    ({"tags": ["x", "y"]}, ["two tags"]),
    ({"tags": ("y", "z")}, []),
    ({"metadata": {"n": 0}}, ["zero"]),
    ({"metadata": {"n": 0.0}}, ["zero"]),
    ({"metadata": {"n": 1}}, ["one"]),
    ({"metadata": {"n": 1.0}}, ["one"]),
    ({"metadata": {"n": 1, "m": 1}}, ["one"]),
    ({"metadata": {"n": 1, "m": 2}}, []),
    ({"metadata": {"n": False}}, ["false"]),
    ({"metadata": {"n": True}}, ["true"]),
    ({"metadata": {"n": ""}}, ["empty"]),
    ({"metadata": {"n": "1"}}, ["text one"]),
    ({"metadata": {"n": None}}, ["null"]),
    ({"metadata": {"absent": None}}, []),
    ({"metadata": {"N": 0}}, []),
    ({"actor": "bob"}, ["actor"]),
    ({"role": "user"}, ["role"]),
    ({"source": "imported"}, ["source"]),
    ({"key": "k"}, ["key"]),
    ({"until": NOON}, ["older"]),
    ({"until": NOON + timedelta(microseconds=1)}, ["old", "older"]),
    ({"since": NOON, "until": NOON + timedelta(seconds=1)}, ["old"]),
    (
        {
            "since": (NOON - timedelta(hours=1)).astimezone(timezone(timedelta(hours=-7))),
            "until": NOON.astimezone(timezone(timedelta(hours=9))),
        },
        ["older"],
    ),
    ({"tags": "v", "valid_at": NOON}, ["valid"]),
    ({"tags": "v", "valid_at": NOON - timedelta(microseconds=1)}, []),
    ({"tags": "v", "valid_at": NOON + timedelta(hours=1)}, []),
    ({"tags": "v", "valid_at": NOON + timedelta(hours=1, microseconds=-1)}, ["valid"]),
]


@pytest.mark.parametrize(("where", "expected"), FILTERS, ids=lambda v: str(v)[:60])
def test_a_filter_passes_exactly_what_it_names(full, where, expected):
    """C14."""
    assert sorted(contents(full.list(**where))) == expected
    assert sorted(contents(full.iter(**where))) == expected
    assert full.count(**where) == len(expected)
    states = where.get("states", "visible")
    arrow = full.to_arrow(columns=["content"], **{**where, "states": states})
    assert sorted(arrow["content"].to_pylist()) == expected
    hits = full.search(vector=[1.0] * 16, k=100, **where)
    assert sorted(h.memory.content for h in hits) == expected


def test_a_least_quality_leaves_out_what_was_rated_lower_or_not_at_all(store):
    """The column has 32 bits: 0.1 is not less than itself."""
    for i in range(11):
        store.add(f"rated {i}", quality=i / 10)
    store.add("not rated")
    for least, passing in ((0, 11), (0.1, 10), (0.3, 8), (0.7, 4), (1, 1), (1e-9, 10)):
        assert store.count(min_quality=least) == passing


def test_a_least_importance_leaves_out_what_matters_less(store):
    """The column has 32 bits: 0.1 is not less than itself."""
    for i in range(11):
        store.add(f"matters {i}", importance=i / 10)
    store.add("not told")  # 0.5
    for least, passing in ((0, 12), (0.1, 11), (0.5, 7), (0.7, 4), (1, 1), (1e-9, 11)):
        assert store.count(min_importance=least) == passing
    found = store.search("matters", k=20, mode="text", min_importance=0.9)
    assert {hit.memory.content for hit in found} == {"matters 9", "matters 10"}


def test_without_a_filter_the_visible_ones_pass_and_with_any_every_one(full):
    everything = sorted(m["content"] for m in MEMORIES)
    assert sorted(contents(full.list(states="any"))) == everything
    assert sorted(contents(full.list())) == sorted(set(everything) - {"pending", "retired"})


def test_an_open_validity_covers_everything(full):
    now = datetime(2025, 6, 1, tzinfo=UTC)
    assert set(contents(full.list())) - set(contents(full.list(valid_at=now))) == {
        "valid from",
        "valid to",
        "valid",
    }


@pytest.mark.parametrize("end", [datetime.min, datetime(1, 1, 2), datetime(999, 1, 1)])
def test_the_beginning_of_time_is_a_time(full, end):
    early = end.replace(tzinfo=UTC)
    assert full.count(since=early) == full.count()
    assert full.count(until=early) == 0
    assert full.count(valid_at=early) > 0


def test_the_end_of_time_is_a_time(full):
    late = datetime.max.replace(tzinfo=UTC)
    assert full.count(until=late) == full.count()
    assert full.count(since=late) == 0


BAD_FILTERS = [
    ({"kinds": "dream"}, r"no kind 'dream'; there are: working, episodic"),
    ({"states": "gone"}, r"no state 'gone'; there are: active, pending"),
    ({"since": datetime(2024, 1, 1)}, r"since=.* has no time zone; give one"),
    ({"until": datetime(2024, 1, 1)}, r"until=.* has no time zone"),
    ({"min_importance": -0.1}, "min_importance=-0.1; it takes a number within 0..1"),
    ({"min_importance": "high"}, "min_importance='high'"),
    ({"min_quality": 1.5}, "min_quality=1.5; it takes a number within 0..1"),
    ({"min_quality": "high"}, "min_quality='high'"),
    ({"min_quality": True}, "min_quality=True"),
    ({"min_quality": float("nan")}, "min_quality=nan"),
    ({"valid_at": datetime(2024, 1, 1)}, r"valid_at=.* has no time zone"),
    ({"since": "2024-01-01"}, "since"),
    ({"since": date(2024, 1, 1)}, "since"),
    ({"metadata": {"n": [1]}}, r"metadata filter 'n' has the value \[1\]; it compares"),
    ({"metadata": {"n": float("nan")}}, "finite number"),
    ({"metadata": "n=1"}, "metadata"),
    ({"actor": None}, "actor"),
    ({"key": 5}, "key"),
    ({"user": 5}, "user"),
    ({"user": None}, "user"),
    ({"tags": [None]}, "tags"),
]


@pytest.mark.parametrize(("where", "message"), BAD_FILTERS, ids=lambda v: str(v)[:50])
def test_a_filter_that_makes_no_sense_says_why(full, where, message):
    for read in (full.list, full.count, full.to_arrow, lambda **w: full.search("x", **w)):
        with pytest.raises(InvalidInputError, match=message):
            read(**where)


@pytest.mark.parametrize("word", ["kind", "tag", "state", "usr", "text"])
def test_a_filter_word_that_does_not_exist_is_refused(full, word):
    for read in (full.list, full.count, full.to_arrow, lambda **w: full.search("x", **w)):
        with pytest.raises((InvalidInputError, TypeError), match=word):
            read(**{word: "semantic"})


def test_an_empty_scope_name_never_shows_what_has_another_name(full):
    """`Where`: "Scope levels match exactly"."""
    try:
        found = contents(full.list(user=""))
    except InvalidInputError:
        return
    assert "user" not in found


# -- related --------------------------------------------------------------------------------


@pytest.fixture
def lineage(store):
    """Two generations: a, b → ab; c, d → cd; ab, cd → all."""
    a, b, c, d = store.add_many(["a", "b", "c", "d"]).ids
    ab = store.supersede([a, b], "a and b").ids[0]
    cd = store.supersede([c, d], "c and d").ids[0]
    return {
        "a": a,
        "b": b,
        "c": c,
        "d": d,
        "ab": ab,
        "cd": cd,
        "all": store.supersede([ab, cd], "a and b and c and d").ids[0],
    }


def reached(store, ref, **options):
    return [
        (r.memory.content, r.relation, r.direction, r.depth) for r in store.related(ref, **options)
    ]


def test_a_walk_goes_down_through_the_generations(store, lineage):
    assert sorted(reached(store, lineage["all"])) == [
        ("a and b", "consolidates", "out", 1),
        ("c and d", "consolidates", "out", 1),
    ]
    assert sorted(reached(store, lineage["all"], depth=2)) == sorted(
        [
            ("a and b", "consolidates", "out", 1),
            ("c and d", "consolidates", "out", 1),
            *((name, "consolidates", "out", 2) for name in "abcd"),
        ]
    )
    depths = [r.depth for r in store.related(lineage["all"], depth=99)]
    assert depths == sorted(depths)
    assert len(depths) == 6


def test_a_walk_goes_up_to_the_newest_and_not_down_again(store, lineage):
    assert reached(store, lineage["a"], depth=9) == [
        ("a and b", "consolidates", "in", 1),
        ("a and b and c and d", "consolidates", "in", 2),
    ]


def test_a_memory_between_shows_both_directions(store, lineage):
    assert reached(store, lineage["ab"]) == [
        ("a", "consolidates", "out", 1),
        ("b", "consolidates", "out", 1),
        ("a and b and c and d", "consolidates", "in", 1),
    ]


def test_a_walk_can_keep_to_one_relation(store):
    a = store.add("a").id
    b = store.add("b", relationships=[Relationship(relation="about", target=a)]).id
    store.add("c", relationships=[Relationship(relation="contradicts", target=b)])
    assert reached(store, b, relation="about") == [("a", "about", "out", 1)]
    assert reached(store, b, relation="contradicts") == [("c", "contradicts", "in", 1)]
    assert reached(store, b, relation="nope") == []


def test_a_successor_that_was_imported_without_an_edge_is_reached(store):
    store.add_many(
        [
            {"content": "new", "id": "n"},
            {"content": "old", "id": "o", "state": "superseded", "superseded_by": "n"},
        ]
    )
    assert reached(store, "o") == [("new", "superseded_by", "out", 1)]
    assert reached(store, "n") == [("old", "superseded_by", "in", 1)]


def test_what_replaced_a_memory_is_found_by_the_relation_superseded_by(store):
    old = store.add("old").id
    store.supersede(old, "new")
    assert [r.memory.content for r in store.related(old, relation="superseded_by")] == ["new"]


def test_cycles_and_edges_to_nothing_end_the_walk(store):
    store.add_many(
        [
            {"content": "a", "id": "a", "relationships": [{"relation": "about", "target": "b"}]},
            {
                "content": "b",
                "id": "b",
                "relationships": [
                    {"relation": "about", "target": "a"},
                    {"relation": "about", "target": "gone"},
                ],
            },
        ]
    )
    assert reached(store, "a", depth=99) == [("b", "about", "out", 1)]


@pytest.mark.parametrize("depth", [0, -1])
def test_a_walk_has_one_step_or_more(store, depth):
    stored = store.add("a")
    with pytest.raises(InvalidInputError, match="one step or more"):
        store.related(stored.id, depth=depth)


def test_the_relations_of_nothing_are_not_found(store):
    with pytest.raises(NotFoundError):
        store.related("nope")


# -- C33 ------------------------------------------------------------------------------------


def test_reading_makes_no_version(store, tmp_path):
    stored = store.add("a thing", user="ana")
    store.tag("t")
    before = sorted(p.name for p in tmp_path.rglob("*.manifest"))
    version = store.version
    store.get(stored.id), store.list(), list(store.iter()), store.count(), store.search("thing")
    store.related(stored.id), store.log(upkeep=True), store.diff(1), store.stats(), store.tags()
    store.branches(), store.to_arrow(), store.to_polars().collect(), store.at("t").list()
    store.sql("SELECT * FROM memories"), store.scoped(user="ana").list(), repr(store)
    store.consolidate(dry_run=True), store.rollback(2, dry_run=True)
    assert (store.version, sorted(p.name for p in tmp_path.rglob("*.manifest"))) == (
        version,
        before,
    )
