"""The files of an export: whole or not there, the same in each type, and readable by all."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.json as pj
import pyarrow.parquet as pq
import pytest

from lance_memory import (
    EmbeddingError,
    Evaluation,
    ExportFormat,
    ExportOptions,
    FunctionEmbedder,
    InvalidInputError,
    StorageError,
)

HOSTILE = [
    'quote " backslash \\ slash / tab \t',
    "two\nlines\r\nand more\n",
    "separators \u2028 and \u2029 and \u0085 and \x1c end",
    "nul \x00 in the middle",
    "emoji 👩‍👩‍👧‍👦 and flags 🇵🇹",
    "right to left \u202e and שלום",
    '{"text": "a JSON line"}\n{"id": 1}',
    "x" * 1_000_000 + " end",
]


def hostile(store):
    kinds = [("question", "user", None), ("answer", "assistant", 0.9), ("worse", "assistant", 0.1)]
    store.add_many(
        {
            "content": f"{kind} {number} {text}",
            "role": role,
            "quality": quality,
            "session": f"s{number}",
            "seq": place,
        }
        for number, text in enumerate(HOSTILE)
        for place, (kind, role, quality) in enumerate(kinds)
    )
    return store


def lines(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def names(directory):
    return sorted(path.name for path in directory.iterdir())


OFF = {"min_similarity": None}


@pytest.mark.parametrize("form", list(ExportFormat))
def test_hostile_texts_come_back_the_same_from_both_types(store, tmp_path, form):
    view = hostile(store).at(store.version)
    view.export(tmp_path / "x.jsonl", ExportOptions(format=form, **OFF))
    view.export(tmp_path / "x.parquet", ExportOptions(format=form, **OFF))
    rows = lines(tmp_path / "x.jsonl")
    assert rows == pq.read_table(tmp_path / "x.parquet").to_pylist()
    told = {
        "plain": lambda row: row["text"],
        "chat": lambda row: row["messages"][0]["content"],
        "preference": lambda row: row["prompt"],
    }[form]
    questions = [text for text in map(told, rows) if text.startswith("question")]
    assert questions == [f"question {n} {text}" for n, text in enumerate(HOSTILE)]


def test_what_is_exported_is_for_its_owner_alone(store, tmp_path):
    hostile(store).export(tmp_path / "made" / "x.jsonl", ExportOptions(**OFF))
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("made/**/*")}
    assert modes == {"x.jsonl": 0o600, "x.jsonl.manifest.json": 0o600}
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o700


def test_no_reader_of_lines_parts_an_example(store, tmp_path):
    """Python's own splitlines parts at more characters than JSON lines do."""
    hostile(store).export(tmp_path / "x.jsonl", ExportOptions(**OFF))
    text = (tmp_path / "x.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 3 * len(HOSTILE)
    assert [json.loads(line) for line in text.splitlines()] == lines(tmp_path / "x.jsonl")


@pytest.mark.parametrize("form", list(ExportFormat))
def test_other_tools_load_the_lines(store, tmp_path, form):
    hostile(store).export(tmp_path / "x.jsonl", ExportOptions(format=form, **OFF))
    path, rows = tmp_path / "x.jsonl", lines(tmp_path / "x.jsonl")
    ids = [row["id"] for row in rows]
    read = pj.read_json(path, read_options=pj.ReadOptions(block_size=8 << 20))
    assert read["id"].to_pylist() == ids
    assert pl.read_ndjson(path)["id"].to_list() == ids
    found = duckdb.sql(f"select id from read_json('{path}', maximum_object_size=20000000)")
    assert [str(row[0]) for row in found.fetchall()] == ids
    if form == "plain":
        assert read["text"].to_pylist() == [row["text"] for row in rows]
        assert pl.read_ndjson(path)["text"].to_list() == [row["text"] for row in rows]


def test_an_empty_export_has_files_and_columns(store, tmp_path):
    options = ExportOptions(file_type="parquet", validation=0.5)
    made = store.export(tmp_path / "out", options)
    assert [file.examples for file in made.files] == [0, 0]
    assert pq.read_table(tmp_path / "out" / "validation.parquet").column_names == [
        "id",
        "text",
        "metadata",
    ]
    assert store.export(tmp_path / "x.jsonl").content_hash == made.content_hash
    assert (tmp_path / "x.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("out", {}, ["manifest.json", "train.jsonl"]),
        ("out", {"validation": 0.5}, ["manifest.json", "train.jsonl", "validation.jsonl"]),
        ("out", {"file_type": "parquet"}, ["manifest.json", "train.parquet"]),
        ("deep/er/out", {}, ["manifest.json", "train.jsonl"]),
        ("v1.2", {}, ["manifest.json", "train.jsonl"]),
    ],
)
def test_a_directory_gets_named_files(store, tmp_path, name, options, expected):
    store.add("one")
    store.export(tmp_path / "here" / name, ExportOptions(**options))
    assert names(tmp_path / "here" / name) == expected


def test_a_file_gets_its_manifest_beside_it(store, tmp_path):
    store.add("one")
    (tmp_path / "here").mkdir()
    store.export(tmp_path / "here" / "x.jsonl")
    store.export(tmp_path / "here" / "x.parquet")
    assert names(tmp_path / "here") == [
        "x.jsonl",
        "x.jsonl.manifest.json",
        "x.parquet",
        "x.parquet.manifest.json",
    ]


def test_what_is_there_is_replaced_only_when_asked(store, tmp_path):
    store.add("one")
    out = tmp_path / "out"
    store.export(out, ExportOptions(validation=0.5, file_type="parquet"))
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    with pytest.raises(InvalidInputError, match=r"has an export already .*train\.parquet"):
        store.export(out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    (out / "notes.txt").write_text("mine")
    store.export(out, ExportOptions(overwrite=True))
    assert names(out) == ["manifest.json", "notes.txt", "train.jsonl"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("file_type", ["jsonl", "parquet"])
def test_an_interrupted_export_leaves_nothing_behind(store, tmp_path, error, file_type):
    store.add_many([{"content": f"note{n} about thing{n}", "session": f"s{n}"} for n in range(900)])
    store.add_many(
        [{"content": "echo echo", "session": "z1"}, {"content": "echo", "session": "z2"}]
    )
    calls = []

    def interrupted(cluster):
        calls.append(names(tmp_path / "here"))
        raise error

    (tmp_path / "here").mkdir()
    options = ExportOptions(file_type=file_type)
    with pytest.raises(error):
        store.export(tmp_path / "here" / "out", options, transform=interrupted)
    assert calls[0] != []  # it was on its way
    assert names(tmp_path / "here") == []


def test_an_embedder_that_fails_midway_leaves_nothing_behind(tmp_path, reopen, embedder):
    store = reopen(tmp_path / "store")
    store.add_many(
        [{"content": "echo echo", "session": "z1"}, {"content": "echo", "session": "z2"}]
    )

    def fails(texts):
        if "merged" in texts:
            raise ConnectionError("the model went away")
        return embedder.embed(texts)

    broken = reopen(
        tmp_path / "store", embedder=FunctionEmbedder(fails, name="words-16", dimension=16)
    )
    options = ExportOptions(evaluation=Evaluation(texts=["something else"], similarity=0.9))
    with pytest.raises(EmbeddingError, match="the model went away"):
        broken.export(tmp_path / "out", options, transform=lambda cluster: "merged")
    assert names(tmp_path) == ["store"]


def test_an_interrupted_overwrite_keeps_what_was_there(store, tmp_path):
    store.add_many(
        [{"content": "echo echo", "session": "z1"}, {"content": "echo", "session": "z2"}]
    )
    store.export(tmp_path / "out")
    before = {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()}

    def interrupted(cluster):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.export(tmp_path / "out", ExportOptions(overwrite=True), transform=interrupted)
    assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == before


def test_a_path_below_a_file_is_a_storage_error(store, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="could not write the export to"):
        store.export(tmp_path / "file" / "out")
    assert names(tmp_path) == ["file", "store"]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.jsonl", {"validation": 0.1}, "a split makes two; give a directory"),
        ("x.jsonl", {"file_type": "parquet"}, "to be parquet, and its suffix says jsonl"),
        ("s3://bucket/x", {}, "no place on this machine"),
        ("nul\0nul", {}, "no place on this machine"),
        ("taken", {}, "'.*taken' is a file"),
        ("folder.jsonl", {"overwrite": True}, "has a directory by the name of"),
    ],
)
def test_a_path_that_makes_no_sense_is_refused(store, tmp_path, name, options, message):
    (tmp_path / "taken").write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    path = name if "://" in name else tmp_path / name
    with pytest.raises(InvalidInputError, match=message):
        store.export(path, ExportOptions(**options))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExportOptions(format="sft"), "there are: plain, chat, preference"),
        (lambda: ExportOptions(file_type="csv"), "there are: jsonl, parquet"),
        (lambda: ExportOptions(group_by="topic"), "there are: tenant, user, agent, session, run"),
        (lambda: ExportOptions(across=("topic",)), "there are: tenant, user, agent, session, run"),
        (lambda: ExportOptions(min_similarity=1.5), "it takes a number within -1..1"),
        (lambda: ExportOptions(validation=1.0), "it takes a number within 0..1, not 1"),
        (lambda: ExportOptions(margin=0), "it takes a number within 0..1, not 0"),
        (lambda: ExportOptions(max_turns=1), "it takes a whole number from 2 on"),
        (lambda: Evaluation(texts=[" "]), "no text that is not blank"),
        (lambda: Evaluation(texts="one text"), "it takes a list of texts"),
        (lambda: Evaluation(texts=["a"], ngram=None), "ngram, similarity or both"),
        (lambda: Evaluation(texts=["a"], ngram=0), "it takes a whole number from 1 on"),
        (lambda: Evaluation(texts=["a"], similarity=2), "it takes a number within -1..1"),
    ],
)
def test_options_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_scoped_handle_exports_its_scope_alone(store, tmp_path):
    for user in ("ann", "bob"):
        store.upsert(f"{user} was here", key="k", user=user, session="s", role="assistant")
        store.upsert(f"{user} is here", key="k", user=user, session="s", role="assistant")
    for form in ExportFormat:
        path = tmp_path / f"{form}.jsonl"
        store.scoped(user="ann").export(path, ExportOptions(format=form))
        assert b"ann is here" in path.read_bytes()
        assert b"bob" not in path.read_bytes()
    assert "bob" not in Path(f"{path}.manifest.json").read_text()
