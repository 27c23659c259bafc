"""Random hostile text, in every place that takes text: it matches only itself, and fails in our words."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import LanceMemoryError, MemoryStore

PIECES = [
    "'", '"', "''", "\\", "\\'", "`", "%", "_", "*", "--", "/*", "*/", ";", "(", ")", "{", "}", "[",
    "]", "$", "$.a", "@", "#", "?", "\0", "\n", "\r", "\t", "\x1b[31m", "\u202e", "\u2028", "\ufeff",
    "\ud800", "e\u0301", "👩‍👩‍👧", "NULL", "true", "1", "0", "-1", "1e999", "a" * 300, " ", "%s", "{0}",
    "' OR '1'='1", "') OR 1=1 --", "; DROP TABLE memories", " UNION SELECT * FROM memories",
    "../../etc/passwd", "file:///etc/passwd", "s3://other/bucket", "=cmd|' /C calc'!A0", "\\u0027",
    "id", "memories", "state", "any", "lmem-hold", "main", "Ａ", "ſ", "İ",
]  # fmt: skip
HOSTILE = st.one_of(
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join),
)
COLUMNS = ("user", "session", "actor", "role", "source", "key")
FEW = settings(
    derandomize=True,
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory, embedder, ticking, place, access):
    """A store with memories that nothing here is about, and what they are."""
    path = place(tmp_path_factory.mktemp("injection") / "store")
    store = MemoryStore.open(path, embedder=embedder, clock=ticking(), **access)
    store.add_many(
        {
            "content": f"a bystander, number {n}",
            **{column: f"{column} of bystander {n}" for column in COLUMNS},
            "tags": [f"tag of bystander {n}"],
            "metadata": {"bystander": n},
            "embedding": [1.0] * 16,
        }
        for n in range(5)
    )
    return store, rows(store)


def rows(store):
    return {row["id"]: row for row in store.to_arrow().to_pylist()}


def ours(act):
    """What the call gives, or the failure, which must be one of ours."""
    try:
        return act()
    except LanceMemoryError as error:
        return error


def is_text(value):
    return value.isascii() or "\ud800" not in value


def ids(memories):
    return [memory.id for memory in memories]


def check_reads(store, value, stored, before):
    for column in COLUMNS:
        assert ids(store.list(**{column: value})) == [stored], column
    assert ids(store.list(tags=value)) == [stored]
    assert ids(store.list(metadata={value: value})) == [stored]
    assert store.get(value).id == stored
    assert store.scoped(user=value).count() == 1
    assert set(store.scoped(user=value).sql("SELECT id FROM memories")["id"]) == {stored}
    for act in (
        lambda: store.search(value, mode="text"),
        lambda: store.search("bystander", mode="text", user=value),
        lambda: store.sql(value),
        lambda: store.sql(f"SELECT id FROM memories WHERE user = '{value}'"),
        lambda: store.at(value),
        lambda: store.diff(value),
        lambda: store.related(value, relation=value),
        lambda: store.lineage(value),
        lambda: store.list(kinds=value),
        lambda: store.list(states=value),
        lambda: store.rollback(value, dry_run=True),
        lambda: value.isdecimal() or store.revert(value),
        lambda: store.queries(text=value),
    ):
        ours(act)
    check_names(store, value)
    assert rows(store) == before


def check_names(store, value):
    """A tag and a branch have exactly the name that was given, or there is none."""
    version = store.version
    if not isinstance(ours(lambda: store.tag(value, version)), LanceMemoryError):
        assert store.tags() == {value: version}
        store.untag(value)
    if not isinstance(ours(lambda: store.branch(value)), LanceMemoryError):
        assert [branch.name for branch in store.branches()] == [value]
        store.delete_branch(value)
    assert (store.tags(), store.branches()) == ({}, [])


def live_with(store, bystanders, value):
    """A memory that is hostile in every place comes, is found, is changed, and goes."""
    version = store.version
    stored = ours(
        lambda: store.add(
            value,
            **dict.fromkeys(COLUMNS, value),
            source_ref=value,
            tags=[value],
            metadata={value: value},
            relationships=[{"relation": value, "target": value, "note": value}],
            embedding=[1.0] * 16,
        )
    )
    if isinstance(stored, LanceMemoryError):  # blank, or no text
        assert (store.version, rows(store)) == (version, bystanders)
        for column in COLUMNS:
            found = ours(lambda name=column: store.list(**{name: value}))
            assert isinstance(found, LanceMemoryError) or found == []
        return
    memory = store.get(stored.id)
    assert (memory.content, memory.source_ref, memory.metadata) == (value, value, {value: value})
    check_reads(store, value, stored.id, rows(store))
    assert store.update(value, importance=0.9, reason=value).ids == (stored.id,)
    assert store.log(limit=1)[0].reason == value
    assert store.retire(user=value, reason=value).ids == (stored.id,)
    assert store.delete(user=value, states="any", reason=value).deleted == 1
    assert rows(store) == bystanders


@FEW
@given(value=HOSTILE)
def test_hostile_text_matches_only_itself_and_touches_nothing_else(crowd, value):
    live_with(*crowd, value)


@pytest.mark.slow
@settings(FEW, max_examples=25)
@given(value=HOSTILE)
def test_much_hostile_text_matches_only_itself(crowd, value):
    live_with(*crowd, value)


@FEW
@given(value=HOSTILE)
def test_hostile_ids_authors_and_names_of_branches_are_themselves(crowd, value, reopen):
    store, bystanders = crowd
    signed = ours(lambda: reopen(store.uri, author=value))
    if isinstance(signed, LanceMemoryError):
        assert not is_text(value)
        return
    stored = ours(lambda: signed.add("by its id", id=value, embedding=[1.0] * 16))
    if not isinstance(stored, LanceMemoryError):
        assert signed.log(limit=1)[0].actor == value
        assert signed.get(value).id == stored.id == value
        assert signed.delete(value).ids == (value,)
    ours(lambda: reopen(store.uri, branch=value))
    assert rows(store) == bystanders
