"""lineage: the tree that a person sees, and what a program gets."""

from __future__ import annotations

import json

import pytest

from lance_memory import EmbeddingError, MemoryStore

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


def test_history_tells_every_change_with_who_and_why(lmem, store, ids):
    lmem("update", "k0", "the kettle is fixed", "--reason", "it was mended", "--author", "bo")
    lmem("retire", "k0", "--yes", "--reason", "gone")
    told = lmem("history", ids[0], "--format", "jsonl").lines
    assert [(c["operation"], c["actor"], c["reason"]) for c in told][-2:] == [
        ("update", "bo", "it was mended"),
        ("retire", "", "gone"),
    ]
    assert told[-2]["before"]["content"] == "the red kettle is broken"
    assert told[-2]["after"]["content"] == "the kettle is fixed"
    human = lmem("history", ids[0]).out
    assert max(map(len, human.splitlines())) <= 80
    assert "because: it was" in " ".join(human.split())
    assert lmem("history", "nothing").code == 3


def test_a_vector_that_is_missing_is_named_by_the_doctor_and_made(lmem, store):
    """An embedder that failed left the memory without one; words find it meanwhile."""

    class Broken:
        name, dimension = MemoryStore.open(store).embedder.name, 384

        def embed(self, texts):
            raise EmbeddingError("the model is not there")

    with MemoryStore.open(store, embedder=Broken()) as opened:
        said = opened.ingest("I was born in Porto, and I work as a nurse.", user="eve")
    assert len(said.ids) >= 1
    found = {f["code"]: f for f in lmem("doctor", "--format", "json").json["findings"]}
    assert found["no_vector"]["count"] == len(said.ids)
    assert "lmem embed-missing" in found["no_vector"]["advice"]
    one = lmem("embed-missing", "--user", "eve", "--format", "json").json
    assert (one["embedded"], one["left"]) == (len(said.ids), 0)
    codes = [f["code"] for f in lmem("doctor", "--format", "json").json["findings"]]
    assert "no_vector" not in codes
