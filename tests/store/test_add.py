from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from lance_memory import (
    AddManyResult,
    AddResult,
    ConflictError,
    FunctionEmbedder,
    InvalidInputError,
    Kind,
    Memory,
    Outcome,
    RejectedError,
    Relationship,
    State,
)

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_everything_that_is_said_of_a_memory_is_kept(store):
    said = {
        "key": "k1",
        "tenant": "acme",
        "user": "ana",
        "agent": "cook",
        "session": "s1",
        "run": "r1",
        "kind": Kind.SEMANTIC,
        "role": "assistant",
        "actor": "bob",
        "metadata": {"city": "Zürich", "n": 0, "deep": {"a": [1, None, False, ""]}},
        "tags": ("tea", "kitchen"),
        "importance": 0.25,
        "confidence": 0.5,
        "quality": 0.75,
        "event_at": NOON,
        "valid_from": NOON - timedelta(days=1),
        "valid_to": NOON + timedelta(days=1),
        "expires_at": NOON + timedelta(days=999),
        "seq": 7,
        "relationships": (Relationship(relation="about", target="x", note="why"),),
        "source": "imported",
        "source_ref": "file:1",
    }
    result = store.add("Tea is at four.", **said)
    memory = store.get(result.id)
    assert memory == Memory(
        id=result.id,
        revision=1,
        content="Tea is at four.",
        content_hash=memory.content_hash,
        created_at=memory.created_at,
        updated_at=memory.created_at,
        state_at=memory.created_at,
        **said,
    )
    assert memory.created_at.tzinfo is not None
    assert result == AddResult(
        uri=store.uri, version=store.version, id=result.id, outcome=Outcome.STORED
    )


def test_a_memory_of_which_nothing_is_said_has_the_defaults(store):
    memory = store.get(store.add("Bare.").id)
    assert memory == Memory(
        id=memory.id,
        revision=1,
        content="Bare.",
        content_hash=memory.content_hash,
        created_at=memory.created_at,
        updated_at=memory.created_at,
        state_at=memory.created_at,
    )


def test_the_embedding_is_made_from_the_content_or_kept_as_given(store, embedder):
    made = store.get(store.add("green tea").id).embedding
    given = store.get(store.add("black tea", embedding=np.arange(1, 17)).id).embedding
    np.testing.assert_array_equal(made, embedder.embed(["green tea"])[0])
    np.testing.assert_array_equal(given, np.arange(1, 17, dtype=np.float32))
    assert made.dtype == given.dtype == np.float32


def test_a_pending_memory_says_so_and_is_not_recalled(store):
    result = store.add("Maybe.", state="pending")
    assert result.outcome is Outcome.PENDING
    assert store.list() == []
    assert [m.id for m in store.list(states="pending")] == [result.id]


ROWS = [
    {"content": "one", "user": "ana", "tags": ["a"], "event_at": NOON, "metadata": {"n": 1}},
    {"content": "two", "user": "bob", "tags": [], "event_at": NOON, "metadata": {"n": 2}},
]


def _arrow():
    return pa.table(
        {
            "content": ["one", "two"],
            "user": ["ana", "bob"],
            "tags": [["a"], []],
            "event_at": pa.array([NOON, NOON], pa.timestamp("us", "UTC")),
            "metadata": ['{"n": 1}', '{"n": 2}'],
        }
    )


def _several_chunks():
    return pa.concat_tables([_arrow().slice(0, 1), _arrow().slice(1)])


FORMS = {
    "list": lambda: ROWS,
    "tuple": lambda: tuple(ROWS),
    "generator": lambda: (row for row in ROWS),
    "table": _arrow,
    "chunks": _several_chunks,
    "record batch": lambda: _arrow().to_batches()[0],
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.DataFrame(ROWS).lazy(),
    "times as text": lambda: [{**row, "event_at": NOON.isoformat()} for row in ROWS],
    "another zone": lambda: [
        {**row, "event_at": NOON.astimezone(timezone(timedelta(hours=9)))} for row in ROWS
    ],
    "dictionary": lambda: _arrow().set_column(1, "user", _arrow()["user"].dictionary_encode()),
    "large": lambda: _arrow().set_column(1, "user", _arrow()["user"].cast(pa.large_string())),
    "seconds": lambda: _arrow().set_column(
        3, "event_at", pa.array([NOON, NOON], pa.timestamp("s", "Asia/Tokyo"))
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_means_the_same_in_every_form(store, form):
    result = store.add_many(FORMS[form]())
    plain = [
        (m.id, m.content, m.user, m.tags, m.event_at, m.metadata)
        for m in map(store.get, result.ids)
    ]
    assert plain == [
        (result.ids[0], "one", "ana", ("a",), NOON, {"n": 1}),
        (result.ids[1], "two", "bob", (), NOON, {"n": 2}),
    ]
    assert result == AddManyResult(uri=store.uri, version=store.version, ids=result.ids, stored=2)


def test_texts_alone_are_a_batch(store):
    store.add_many(["one", "two"])
    assert [m.content for m in store.list()] == ["one", "two"]


def test_a_batch_is_one_version(store):
    before = store.version
    result = store.add_many([f"memory {i}" for i in range(50)])
    assert (result.version, store.version, store.count()) == (before + 1, before + 1, 50)


@pytest.mark.parametrize(
    "empty",
    [
        [],
        iter(()),
        pa.table({"content": pa.array([], pa.string())}),
        pa.schema([("content", pa.string())]).empty_table(),
        pl.DataFrame({"content": []}, schema={"content": pl.String}),
        pl.DataFrame(),
        pa.table({}),
    ],
    ids=["list", "iterator", "no rows", "no chunks", "polars", "polars bare", "no columns"],
)
def test_an_empty_batch_stores_nothing_and_makes_no_version(store, empty):
    before = store.version
    result = store.add_many(empty)
    assert result == AddManyResult(uri=store.uri, version=before, ids=(), stored=0)


@pytest.mark.parametrize("batch", ["a text", b"bytes", {"content": "a"}, 5, None])
def test_what_is_no_batch_is_refused(store, batch):
    with pytest.raises(InvalidInputError, match="a batch is an iterable of memories or a table"):
        store.add_many(batch)


def test_a_batch_of_given_missing_and_null_vectors_ends_with_all_embedded(store, embedder):
    given = np.arange(1, 17, dtype=np.float32)
    result = store.add_many(
        [
            {"content": "given", "embedding": given},
            {"content": "missing"},
            {"content": "null", "embedding": None},
        ]
    )
    expected = np.vstack([given, embedder.embed(["missing", "null"])])
    found = np.stack([store.get(i).embedding for i in result.ids])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32(), 16),
        pa.list_(pa.float64(), 16),
        pa.list_(pa.float32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.int64()),
    ],
    ids=str,
)
def test_vectors_come_in_any_arrow_list_of_numbers(store, embedder, kind):
    rows = pa.table({"content": ["a", "b"], "embedding": pa.array([[*range(1, 17)], None], kind)})
    result = store.add_many(rows)
    found = np.stack([store.get(i).embedding for i in result.ids])
    np.testing.assert_array_equal(
        found, np.vstack([np.arange(1, 17, dtype=np.float32), embedder.embed(["b"])])
    )


def test_vectors_of_a_polars_array_are_kept(store):
    frame = pl.DataFrame(
        {"content": ["a"], "embedding": [[1.0] * 16]},
        schema={"content": pl.String, "embedding": pl.Array(pl.Float64, 16)},
    )
    result = store.add_many(frame)
    assert store.get(result.ids[0]).embedding.tolist() == [1.0] * 16


def test_nulls_in_a_table_mean_the_default(store):
    relationships = store.to_arrow().schema.field("relationships").type
    result = store.add_many(
        pa.table(
            {
                "content": ["a", "b"],
                "user": pa.array([None, "ana"]),
                "tags": pa.array([None, ["t"]]),
                "metadata": pa.array([None, '{"a": 0}']),
                "relationships": pa.array([None, []], relationships),
                "importance": pa.array([None, 1], pa.int64()),
                "created_at": pa.array([None, NOON], pa.timestamp("us", "UTC")),
                "id": pa.array([None, "mine"]),
            }
        )
    )
    first, second = map(store.get, result.ids)
    assert (first.user, first.tags, first.metadata, first.relationships, first.importance) == (
        ("", (), {}, (), 0.5)
    )
    assert (second.id, second.user, second.tags, second.metadata, second.importance) == (
        ("mine", "ana", ("t",), {"a": 0}, 1.0)
    )
    assert second.created_at == NOON
    assert first.created_at == first.updated_at


def test_finer_times_than_microseconds_are_cut(store):
    nanos = pa.array([1_714_564_800_123_456_789], pa.timestamp("ns", "UTC"))
    result = store.add_many(pa.table({"content": ["a"], "event_at": nanos}))
    assert store.get(result.ids[0]).event_at == NOON.replace(microsecond=123_456)


def test_progress_counts_what_is_embedded(store):
    seen = []
    store.add_many(
        [{"content": "has one", "embedding": [1.0] * 16}, *(f"text {i}" for i in range(300))],
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(256, 300), (300, 300)]


# -- C01: the same memory added twice is one memory ----------------------------------------


def test_the_same_content_in_the_same_scope_is_one_memory(store):
    first = store.add("Tea at four.", user="ana")
    before = store.version
    again = store.add("Tea at four.", user="ana")
    assert again == AddResult(
        uri=store.uri,
        version=before,
        id=first.id,
        outcome=Outcome.ALREADY_THERE,
        reason=again.reason,
    )
    assert again.reason
    assert (store.version, store.count()) == (before, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"user": "bob"},
        {"session": "s"},
        {"actor": "bob"},
        {"role": "user"},
        {"event_at": NOON},
        {"key": "k"},
    ],
    ids=str,
)
def test_the_same_words_in_another_scope_voice_time_or_key_are_another_memory(store, other):
    store.add("Tea at four.")
    assert store.add("Tea at four.", **other).outcome is Outcome.STORED
    assert store.count() == 2


def test_the_same_key_in_the_same_scope_is_one_memory(store):
    first = store.add("Tea at four.", key="tea", user="ana")
    again = store.add("Tea at five.", key="tea", user="ana")
    other = store.add("Tea at six.", key="tea", user="bob")
    assert (again.id, again.outcome) == (first.id, Outcome.ALREADY_THERE)
    assert other.outcome is Outcome.STORED
    assert [m.content for m in store.list()] == ["Tea at four.", "Tea at six."]


def test_repetitions_inside_a_batch_are_one_memory(store):
    result = store.add_many(
        ["a", "b", "a", {"content": "c", "key": "k"}, {"content": "d", "key": "k"}]
    )
    assert result.ids == (result.ids[0], result.ids[1], result.ids[0], result.ids[3], result.ids[3])
    assert (result.stored, sorted(result.already_there)) == (3, [2, 4])
    assert [m.content for m in store.list()] == ["a", "b", "c"]


@pytest.mark.parametrize("size", [1, 250])
def test_a_batch_that_is_imported_again_stores_nothing(store, size):
    batch = [{"content": f"said {i}", "event_at": NOON} for i in range(size)]
    first = store.add_many(batch)
    before = store.version
    again = store.add_many(batch)
    assert (again.ids, again.stored, again.version) == (first.ids, 0, before)
    assert sorted(again.already_there) == list(range(size))


def test_an_event_stays_known_after_it_was_consolidated_away(store):
    batch = [{"content": f"said {i}", "event_at": NOON} for i in range(2)]
    first = store.add_many(batch)
    store.supersede(first.ids, "said 0 and 1")
    assert store.add_many(batch).stored == 0
    assert [m.content for m in store.list()] == ["said 0 and 1"]


def test_what_was_retired_deleted_or_has_expired_can_be_said_again(store, clock):
    retired = store.add("retired")
    deleted = store.add("deleted")
    store.add("expired", expires_at=clock.now + timedelta(minutes=1))
    store.retire(retired.id)
    store.delete(deleted.id)
    clock.forward(minutes=2)
    result = store.add_many(["retired", "deleted", "expired"])
    assert result.stored == 3
    assert [m.content for m in store.list()] == ["retired", "deleted", "expired"]


@pytest.mark.parametrize("writer", ["this handle", "another handle"])
def test_many_adds_in_a_row_still_know_what_is_there(store, reopen, writer):
    for i in range(8):
        store.add(f"memory {i}")
    other = store if writer == "this handle" else reopen(store.uri)
    other.add("the new one")
    assert store.add("the new one").outcome is Outcome.ALREADY_THERE
    assert store.add("memory 3").outcome is Outcome.ALREADY_THERE
    assert store.count() == 9


def test_what_was_there_before_everything_was_deleted_is_known_from_the_new_rows(store, reopen):
    for i in range(8):
        store.add(f"memory {i}")
    other = reopen(store.uri)
    other.delete([m.id for m in other.list()])
    other.add("fresh")
    assert store.add("fresh").outcome is Outcome.ALREADY_THERE
    assert store.add("memory 0").outcome is Outcome.STORED


def test_all_that_is_stored_is_embedded_also_when_a_twin_goes_meanwhile(store, reopen, embedder):
    twin = store.add("the twin")

    def slow(texts):
        if "new" in texts:
            store.delete(twin.id)
        return embedder.embed(texts)

    other = reopen(store.uri, embedder=FunctionEmbedder(slow, name="words-16", dimension=16))
    other.add_many(["the twin", "new"])
    assert store.stats().without_embedding == 0


# -- ids ------------------------------------------------------------------------------------


def test_ids_sort_by_time_then_by_place_in_the_batch(store):
    ids = [*store.add_many(f"first {i}" for i in range(20)).ids, store.add("second").id]
    assert ids == sorted(ids)
    assert len(set(ids)) == 21


def test_an_id_of_the_callers_own_is_kept_and_said_twice_is_one_memory(store):
    first = store.add("mine", id="my-id")
    again = store.add("mine", id="my-id")
    assert (first.id, again.id, again.outcome) == ("my-id", "my-id", Outcome.ALREADY_THERE)
    assert store.count() == 1


def test_an_id_that_is_taken_by_another_content_is_a_conflict(store):
    store.add("mine", id="my-id")
    with pytest.raises(ConflictError, match=r"'my-id' is taken .*update\(\)") as caught:
        store.add_many(["other", {"content": "not mine", "id": "my-id"}])
    assert caught.value.ids == ("my-id",)
    assert [m.content for m in store.list(states="any")] == ["mine"]


def test_an_id_that_is_taken_in_another_scope_is_a_conflict_not_already_there(store):
    store.add("the same words", id="my-id", user="ana")
    with pytest.raises(ConflictError):
        store.scoped(user="bob").add("the same words", id="my-id")


def test_an_id_that_stands_twice_in_a_batch_is_refused(store):
    with pytest.raises(
        RejectedError, match=r"row 2: id='x' stands twice .*first in row 0"
    ) as caught:
        store.add_many([{"content": c, "id": i} for c, i in [("a", "x"), ("b", "y"), ("a", "x")]])
    assert caught.value.rows == (2,)
    assert store.count() == 0


# -- what is malformed ----------------------------------------------------------------------

CYCLE: dict = {}
CYCLE["self"] = CYCLE

BAD = {
    "content None": ({"content": None}, "content"),
    "content empty": ({"content": ""}, "blank"),
    "content blank": ({"content": " \n\t"}, "blank"),
    "content number": ({"content": 5}, "content is 5"),
    "content bytes": ({"content": b"x"}, "content"),
    "content surrogate": ({"content": "a\ud800"}, "lone surrogate"),
    "unknown column": ({"content": "x", "colour": "red"}, r"no column 'colour'.*metadata"),
    "kind": ({"content": "x", "kind": "dream"}, r"'dream' is not known; there are: working"),
    "state": ({"content": "x", "state": "gone"}, r"'gone' is not known; there are: active"),
    "id blank": ({"content": "x", "id": " "}, "id"),
    "id number": ({"content": "x", "id": 5}, "id is 5"),
    "key blank": ({"content": "x", "key": ""}, "key"),
    "key number": ({"content": "x", "key": 5}, "key is 5"),
    "user number": ({"content": "x", "user": 5}, "user is 5"),
    "user surrogate": ({"content": "x", "user": "\udfff"}, "lone surrogate"),
    "naive time": ({"content": "x", "event_at": datetime(2024, 1, 1)}, "no time zone"),
    "naive text": ({"content": "x", "event_at": "2024-01-01T00:00:00"}, "no time zone"),
    "no time": ({"content": "x", "event_at": "yesterday"}, "ISO 8601"),
    "time number": ({"content": "x", "expires_at": 5}, "expires_at"),
    "interval": (
        {"content": "x", "valid_from": NOON, "valid_to": NOON - timedelta(seconds=1)},
        "comes before valid_from",
    ),
    "importance": ({"content": "x", "importance": 1.5}, r"not within 0..1"),
    "importance whole": ({"content": "x", "importance": 7}, r"importance=7 is not within 0..1"),
    "confidence": ({"content": "x", "confidence": -0.1}, r"not within 0..1"),
    "quality": ({"content": "x", "quality": float("nan")}, r"not within 0..1"),
    "importance text": ({"content": "x", "importance": "high"}, "importance is 'high'"),
    "seq": ({"content": "x", "seq": 2**70}, "seq"),
    "metadata set": ({"content": "x", "metadata": {"a": {1}}}, "cannot be written as JSON"),
    "metadata NaN": ({"content": "x", "metadata": {"a": float("nan")}}, "JSON"),
    "metadata list": ({"content": "x", "metadata": [1]}, "mapping with text keys"),
    "metadata keys": ({"content": "x", "metadata": {1: 2}}, "mapping with text keys"),
    "metadata text": ({"content": "x", "metadata": "city=Rome"}, "not JSON"),
    "metadata surrogate": ({"content": "x", "metadata": {"a": "\ud800"}}, "metadata"),
    "metadata cycle": ({"content": "x", "metadata": CYCLE}, "metadata"),
    "tags text": ({"content": "x", "tags": "tea"}, "tags is 'tea'"),
    "tags empty": ({"content": "x", "tags": [""]}, "tags"),
    "tags number": ({"content": "x", "tags": [1]}, "tags"),
    "tags dict": ({"content": "x", "tags": [{}]}, "tags"),
    "tags int": ({"content": "x", "tags": 5}, "tags"),
    "edges": ({"content": "x", "relationships": ["x"]}, "Relationship"),
    "one edge": (
        {"content": "x", "relationships": Relationship(relation="a", target="b")},
        "Relationship",
    ),
    "edge target": ({"content": "x", "relationships": [{"relation": "a", "target": ""}]}, "relat"),
    "edge number": ({"content": "x", "relationships": [{"relation": "a", "target": 5}]}, "relat"),
    "short vector": ({"content": "x", "embedding": [1.0] * 15}, "15.*16"),
    "long vector": ({"content": "x", "embedding": [1.0] * 17}, "17.*16"),
    "empty vector": ({"content": "x", "embedding": []}, "embedding"),
    "matrix": ({"content": "x", "embedding": [[1.0] * 16]}, "embedding"),
    "text vector": ({"content": "x", "embedding": ["a"] * 16}, "embedding"),
    "NaN vector": ({"content": "x", "embedding": [float("nan")] * 16}, "NaN or infinity.*16"),
    "one NaN": ({"content": "x", "embedding": [1.0] * 15 + [float("nan")]}, "NaN or infinity.*16"),
    "inf vector": ({"content": "x", "embedding": [float("-inf")] * 16}, "NaN or infinity.*16"),
    "zero vector": ({"content": "x", "embedding": [0.0] * 16}, "all zero.*16"),
    "huge vector": ({"content": "x", "embedding": [1e300] * 16}, "embedding"),
    "null in vector": ({"content": "x", "embedding": [None] + [1.0] * 15}, "embedding"),
    "item number": (5, "row 3 is a int; a memory is a text or a mapping"),
    "item empty": ({}, "content"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_malformed_row_is_named_and_none_of_its_batch_is_stored(store, case):
    bad, message = BAD[case]
    good = [{"content": f"good {i}"} for i in range(4)]
    before = store.version
    with pytest.raises(RejectedError, match=f"(?s){message}") as caught:
        store.add_many([*good[:3], bad, good[3]])
    assert caught.value.rows == (3,)
    assert (store.version, store.count(states="any")) == (before, 0)


def test_a_batch_of_nothing_but_empty_mappings_is_refused(store):
    with pytest.raises(RejectedError, match="content"):
        store.add_many([{}])


@pytest.mark.parametrize("exponent", [-30, 30])
def test_a_vector_is_refused_or_found_by_itself_whatever_its_length(store, exponent):
    vector = np.full(16, 10.0**exponent)
    try:
        stored = store.add("tiny or huge", embedding=vector)
    except RejectedError:
        return
    store.add("something else entirely")
    best = store.search(vector=np.ones(16), k=1)[0]
    assert (best.memory.id, best.similarity) == (stored.id, pytest.approx(1.0, abs=1e-3))


def test_several_bad_rows_are_all_named(store):
    with pytest.raises(RejectedError) as caught:
        store.add_many([{"content": "a", "kind": k} for k in ("x", "semantic", "y")])
    assert caught.value.rows == (0, 2)


TABLE_BAD = {
    "blank content": ({"content": ["a", " "]}, (1,)),
    "null content": ({"content": ["a", None]}, (1,)),
    "naive times": (
        {"content": ["a", "b"], "event_at": pa.array([0, 0], pa.timestamp("us"))},
        (0, 1),
    ),
    "empty tag": ({"content": ["a", "b"], "tags": [["t"], [""]]}, (1,)),
    "null tag": ({"content": ["a", "b"], "tags": [["t"], [None]]}, (1,)),
    "numbers as user": ({"content": ["a", "b"], "user": [1, 2]}, (0,)),
    "no JSON": ({"content": ["a", "b"], "metadata": ["{}", "{"]}, (1,)),
    "NaN": (
        {
            "content": ["a", "b"],
            "embedding": pa.array([None, [float("nan")] * 16], pa.list_(pa.float32(), 16)),
        },
        (1,),
    ),
    "null number": (
        {
            "content": ["a", "b"],
            "embedding": pa.array([None, [None] * 16], pa.list_(pa.float32(), 16)),
        },
        (1,),
    ),
    "short": (
        {"content": ["a", "b"], "embedding": pa.array([None, [1.0] * 4], pa.list_(pa.float32()))},
        (1,),
    ),
    "score": ({"content": ["a", "b"], "importance": [0.5, 2.0]}, (1,)),
    "kind": ({"content": ["a", "b"], "kind": ["semantic", "x"]}, (1,)),
}


@pytest.mark.parametrize("case", TABLE_BAD)
def test_a_table_is_checked_like_mappings(store, case):
    columns, rows = TABLE_BAD[case]
    with pytest.raises(RejectedError) as caught:
        store.add_many(pa.table(columns))
    assert caught.value.rows == rows
    assert store.count(states="any") == 0


def test_a_table_without_content_names_every_row(store):
    with pytest.raises(RejectedError, match="rows 0, 1, 2, 3, 4 and 2 more") as caught:
        store.add_many(pa.table({"user": ["a"] * 7}))
    assert caught.value.rows == tuple(range(7))


def test_a_table_with_a_column_that_is_not_there_says_which_there_are(store):
    with pytest.raises(RejectedError, match=r"no column 'colour'; a memory has: id, revision"):
        store.add_many(pa.table({"content": ["a"], "colour": ["red"]}))


def test_an_iterable_that_fails_midway_stores_nothing(store):
    def failing():
        yield "one"
        raise KeyError("the source failed")

    with pytest.raises(KeyError, match="the source failed"):
        store.add_many(failing())
    assert store.count() == 0


def test_falsy_metadata_survives(store):
    metadata = {"zero": 0, "no": False, "empty": "", "null": None, "list": [], "dict": {}}
    memory = store.get(store.add("falsy", metadata=metadata).id)
    assert memory.metadata == metadata
    assert [type(value) for value in memory.metadata.values()] == [
        type(metadata[name]) for name in memory.metadata
    ]


def test_none_is_never_stored_as_a_text(store):
    memory = store.get(store.add("text", key=None, user=None, event_at=None, quality=None).id)
    assert (memory.key, memory.user, memory.event_at, memory.quality) == (None, "", None, None)


def test_states_and_successors_can_be_imported(store):
    store.add("new", id="n")
    store.add("old", id="o", state=State.SUPERSEDED)
    assert (store.get("o").state, store.count()) == (State.SUPERSEDED, 1)
