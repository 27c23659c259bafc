"""lineage: the tree that a person sees, and what a program gets."""

from __future__ import annotations

import json

import pytest

OLD, NEWER, NEWEST = (f"{n:08d}-0000-7000-8000-000000000000" for n in (50, 51, 52))


def made(identifier, content, *sources, day=1, **fields):
    edges = [{"relation": "consolidates", "target": s, "note": ""} for s in sources]
    return {
        "id": identifier,
        "content": content,
        "user": "ann",
        "event_at": f"2025-03-{day:02d}T08:00:00+00:00",
        "relationships": edges,
        **fields,
    }


@pytest.fixture
def family(lmem, store):
    """Two of the small store's memories → OLD → NEWEST, NEWER → NEWEST; NEWER comes from OLD too."""
    memories = [
        made(OLD, "the kettle is broken for good", *ids_of(store)[:2], state="superseded"),
        made(NEWER, "the kettle was bought in Lisbon", OLD, day=2, state="superseded"),
        made(NEWEST, "a new kettle is needed " * 9, OLD, NEWER, day=3),
    ]
    done = lmem("import", "-", stdin="\n".join(map(json.dumps, memories)))
    assert done.code == 0, done.err


def ids_of(store):
    from lance_memory import MemoryStore

    return [m.id for m in MemoryStore.open(store, create=False).list(states="any")]


def test_a_person_sees_a_tree(lmem, family):
    done = lmem("lineage", NEWEST)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "00000052  active  2025-03-03  a new kettle is needed a new kettle is needed a n…",
        "├── ↓ 00000050  superseded  2025-03-01  the kettle is broken for good",
        "│   ├── ↓ k0  active  2025-01-01  the red kettle is broken",
        "│   └── ↓ k1  active  2025-01-02  the red kettle is really broken",
        "└── ↓ 00000051  superseded  2025-03-02  the kettle was bought in Lisbon",
        "    └── ↓ 00000050  (see above)",
    ]


def test_successors_point_up(lmem, family):
    assert lmem("lineage", "k1").out.splitlines() == [
        "k1  active  2025-01-02  the red kettle is really broken",
        "└── ↑ 00000050  superseded  2025-03-01  the kettle is broken for good",
        "    ├── ↑ 00000051  superseded  2025-03-02  the kettle was bought in Lisbon",
        "    │   └── ↑ 00000052  active  2025-03-03  a new kettle is needed a new kettle…",
        "    └── ↑ 00000052  (see above)",
    ]


def test_another_relation_than_consolidates_is_named(lmem, store):
    new = lmem(
        "upsert", "the kettle is new", "--key", "k0", "--user", "ann", "--format", "quiet"
    ).out
    assert lmem("lineage", new.strip()).out.splitlines()[1] == (
        "└── ↓ updates  00000000  superseded  2025-01-01  the red kettle is broken"
    )


def test_a_program_gets_the_tree_nested(lmem, family):
    found = lmem("lineage", NEWEST, "--format", "json").json
    assert (found["memory"]["id"], found["successors"]) == (NEWEST, [])
    old, newer = found["sources"]
    assert [n["memory"]["key"] for n in old["nodes"]] == ["k0", "k1"]
    assert (newer["nodes"][0]["repeated"], newer["nodes"][0]["nodes"]) == (True, [])
    assert "embedding" not in old["memory"]


def test_lines_are_flat(lmem, family, ids):
    lines = lmem("lineage", NEWEST, "--format", "jsonl").lines
    assert [(n["memory"]["id"], n["generation"]) for n in lines] == [
        (OLD, -1), (ids[0], -2), (ids[1], -2), (NEWER, -1), (OLD, -2),
    ]  # fmt: skip
    assert {tuple(sorted(line)) for line in lines} == {
        ("generation", "memory", "more", "relation", "repeated")
    }
    quiet = lmem("lineage", NEWEST, "--format", "quiet").out.split()
    assert quiet == [OLD, ids[0], ids[1], NEWER]


def test_a_tree_that_is_cut_says_so(lmem, family):
    done = lmem("lineage", NEWEST, "--depth", "1")
    assert done.out.splitlines()[1:3] == [
        "├── ↓ 00000050  superseded  2025-03-01  the kettle is broken for good",
        "│   └── ... (--depth N)",
    ]
    assert done.err == "note: there are more than 1 generations; --depth N shows more\n"


def test_a_memory_without_lineage_says_so(lmem, store):
    done = lmem("lineage", "k4")
    assert done.out == "k4  active  2025-01-05  bob likes pears\n"
    assert done.err == "nothing took its place, and it was made from nothing else\n"


def test_the_past_has_the_lineage_of_then(lmem, family):
    assert lmem("lineage", "k1", "--at", "3", "--format", "jsonl").lines == []


def test_a_scope_keeps_to_itself(lmem, family):
    assert lmem("lineage", NEWEST, "--user", "bob").code == 3


@pytest.mark.parametrize("depth", ["0", "101"])
def test_a_depth_out_of_bounds_is_a_usage_error(lmem, store, depth):
    assert lmem("lineage", "k0", "--depth", depth).code == 2


def test_a_hundred_generations_are_drawn_as_far_as_they_fit_and_written_whole(lmem, store):
    names = [f"{n:08d}-1111-7000-8000-000000000000" for n in range(120)]
    chain = [made(name, f"link {n}", *names[n - 1 : n]) for n, name in enumerate(names)]
    assert lmem("import", "-", stdin="\n".join(map(json.dumps, chain))).code == 0
    drawn = lmem("lineage", names[-1], "--depth", "100").out.splitlines()
    assert max(map(len, drawn)) <= 80
    assert drawn[-1].strip() == "└── ... (--format json)"
    assert "↓ 00000107" in drawn[-2]
    found, depth = lmem("lineage", names[-1], "--depth", "100", "--format", "json").json, 0
    nodes = found["sources"]
    while nodes:
        (node,), depth = nodes, depth + 1
        nodes = node["nodes"]
    assert (depth, node["more"], node["memory"]["content"]) == (100, True, "link 19")


def test_what_steers_a_terminal_is_written_out(lmem, store):
    lmem("add", "old \x1b[31mred\nline", "--id", "o")
    lmem("supersede", "o", "--with", "new")
    drawn = lmem("lineage", "o").out
    assert "old \\x1b[31mred line" in drawn
    assert "\x1b" not in drawn
