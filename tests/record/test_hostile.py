"""C13: a hostile value, in any place, is stored, is found by exactly itself, and matches nothing else."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore

HOSTILE = {
    "injection": "x' OR '1'='1",
    "closing": "') OR 1=1 --",
    "quote": "'",
    "double quote": '"',
    "backtick": "`",
    "percent": "%",
    "underscore": "_",
    "star": "*",
    "newline": "a\nb",
    "return": "a\rb",
    "NUL": "nul\0here",
    "controls": "\b\f\x1b\x7fx",
    "comment": "--",
    "drop": ";DROP TABLE memories",
    "emoji": "👩‍👩‍👧 😀",
    "right to left": "שלום \u202eevil",
    "backslash": "\\",
    "escape": "\\' OR 1=1",
    "path": "$.a[0]",
    "number": "0",
    "true": "true",
    "null": "null",
    "combined": "e\u0301",
    "composed": "\u00e9",
    "separator": "a\u2028b",
    "spaces": " x ",
    "long": "x" * 1_000_000,
}
COLUMNS = ("tenant", "user", "agent", "session", "run", "actor", "role", "source", "key")
OTHERS = ("source_ref",)


def _rows():
    for name, value in HOSTILE.items():
        for column in (*COLUMNS, *OTHERS):
            yield {"content": f"{column} {name}", column: value}
        yield {"content": f"tag {name}", "tags": [value]}
        yield {"content": f"metadata key {name}", "metadata": {value: 1}}
        yield {"content": f"metadata value {name}", "metadata": {"k": value}}
        yield {"content": f"id {name}", "id": value}
        yield {
            "content": f"target {name}",
            "relationships": [{"relation": value, "target": value, "note": value}],
        }
        yield {"content": value, "actor": "content"}


@pytest.fixture(scope="module", params=["plain", "indexed"])
def hostile(request, tmp_path_factory, embedder, ticking):
    path = tmp_path_factory.mktemp("hostile") / "store"
    store = MemoryStore.open(path, embedder=embedder, clock=ticking())
    store.add_many([{**row, "embedding": [1.0] * 16} for row in _rows()])
    if request.param == "indexed":
        store.optimize()
    return store


def contents(memories):
    return [memory.content for memory in memories]


@pytest.mark.parametrize("name", HOSTILE)
def test_every_filter_finds_exactly_itself(hostile, name):
    value = HOSTILE[name]
    for column in COLUMNS:
        assert contents(hostile.list(**{column: value})) == [f"{column} {name}"]
    assert contents(hostile.list(tags=value)) == [f"tag {name}"]
    assert contents(hostile.list(metadata={value: 1})) == [f"metadata key {name}"]
    assert contents(hostile.list(metadata={"k": value})) == [f"metadata value {name}"]
    assert hostile.scoped(user=value).count() == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_every_name_finds_exactly_itself(hostile, name):
    value = HOSTILE[name]
    assert hostile.get(value).content == f"id {name}"
    inside = hostile.scoped(user=value).find(value)  # "0" begins the id of what is inside
    assert inside is None or inside.content == f"user {name}"
    assert [r.memory.content for r in hostile.related(value, relation=value)] == [f"target {name}"]


def test_every_text_comes_back_as_it_was(hostile):
    said = sorted((m.content for m in hostile.list(actor="content")), key=str)
    assert said == sorted(HOSTILE.values(), key=str)
    by_content = {m.content: m for m in hostile.iter()}
    for name, value in HOSTILE.items():
        for column in (*COLUMNS, *OTHERS):
            assert getattr(by_content[f"{column} {name}"], column) == value
        assert by_content[f"tag {name}"].tags == (value,)
        assert by_content[f"metadata key {name}"].metadata == {value: 1}
        assert by_content[f"metadata value {name}"].metadata == {"k": value}
        (edge,) = by_content[f"target {name}"].relationships
        assert (edge.relation, edge.target, edge.note) == (value, value, value)


def test_a_beginning_is_taken_letter_by_letter(store):
    store.add_many([{"content": i, "id": i} for i in ("100%a", "100xb", "a_c", "abd", "q'r")])
    assert store.get("100%").id == "100%a"
    assert store.get("a_").id == "a_c"
    assert store.get("q'").id == "q'r"
    assert store.find("1%") is None


@pytest.mark.parametrize("name", [n for n in HOSTILE if n != "long"])
def test_every_write_verb_touches_exactly_what_a_hostile_name_names(store, name):
    value = HOSTILE[name]
    store.add_many(
        [{"content": "target", "key": value, "user": value}, {"content": "bystander", "user": "u"}]
    )
    store.update(value, importance=1, reason=value)
    store.upsert("target 2", key=value, user=value)
    assert store.retire(user=value, reason=value).updated == 1
    assert store.delete(user=value, states="any").deleted == 2
    assert [e.reason for e in store.log(limit=3)][1] == value
    assert contents(store.list(states="any")) == ["bystander"]
    assert store.list()[0].revision == 1
