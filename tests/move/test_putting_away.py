"""archive: old memories go to a file, then they are retired, and both can be undone."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest
from move_kit import modes

from lance_memory import ConflictError, InvalidInputError, ScopeError

NAMES = ["old.jsonl", "old.parquet", "old.zip", "old"]
ANN = {"user": "ann", "until": datetime(2030, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize("name", NAMES)
def test_memories_are_in_the_file_and_retired_in_one_version(name, full, tmp_path):
    before = full.version
    planned = full.archive(tmp_path / name, dry_run=True, **ANN)
    assert (planned.memories, planned.retired, full.version) == (2, 0, before)
    done = full.archive(tmp_path / name, reason="old", **ANN)
    assert (done.memories, done.retired, done.version) == (2, 2, before + 1)
    assert (full.count(user="ann"), full.get("c").state_reason) == (0, "old")
    entry = full.log(limit=1)[0]
    assert (entry.operation, entry.manifest) == ("archive", {"archive": name})
    assert modes(tmp_path / name)[0] == {"0o600"}
    full.revert(done.version)
    assert full.count(user="ann") == 2


def test_a_line_has_every_column_and_can_be_imported(full, other, tmp_path):
    rows = {row["id"]: row for row in full.to_arrow(user="ann", states="active").to_pylist()}
    full.archive(tmp_path / "old.jsonl", **ANN)
    lines = [json.loads(line) for line in (tmp_path / "old.jsonl").read_text().splitlines()]
    assert {line["id"]: set(line) for line in lines} == {i: set(row) for i, row in rows.items()}
    assert {line["id"]: line["embedding"] for line in lines} == {
        i: row["embedding"] for i, row in rows.items()
    }
    names = ("id", "content", "key", "user", "created_at", "embedding", "metadata")
    other.add_many([{name: line[name] for name in names} for line in lines])
    assert other.get("c").created_at == full.get("c").created_at


def test_a_table_has_every_column(full, tmp_path):
    before = full.to_arrow(user="ann", states="active")
    full.archive(tmp_path / "old.parquet", **ANN)
    table = pq.read_table(tmp_path / "old.parquet")
    assert table.column_names == before.column_names
    assert table.sort_by("id").equals(before.combine_chunks().sort_by("id").cast(table.schema))


def test_an_archive_comes_back_as_it_was(full, other, tmp_path):
    full.archive(tmp_path / "old.zip", **ANN)
    other.import_store(tmp_path / "old.zip")
    assert {m.content for m in other.list()} == {"train at nine", "the old red kettle"}


@pytest.mark.parametrize("name", NAMES)
def test_after_a_crash_the_same_call_goes_on(name, full, tmp_path):
    """The file is there, and nothing is retired."""
    done = full.archive(tmp_path / name, **ANN)
    full.rollback(done.version - 1)
    again = full.archive(tmp_path / name, **ANN)
    assert (again.memories, again.retired, full.count(user="ann")) == (2, 2, 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_other_memories_is_left_alone(name, full, tmp_path):
    full.archive(tmp_path / name, user="ann", key="train")
    files = [p for p in [tmp_path / name, *(tmp_path / name).rglob("*")] if p.is_file()]
    before = {file: file.read_bytes() for file in files}
    with pytest.raises(InvalidInputError, match="something else is at"):
        full.archive(tmp_path / name, **ANN)
    assert {file: file.read_bytes() for file in files} == before
    assert full.count(user="ann") == 1


def test_a_file_that_was_cut_short_is_not_trusted(full, tmp_path):
    done = full.archive(tmp_path / "old.jsonl", **ANN)
    full.rollback(done.version - 1)
    text = (tmp_path / "old.jsonl").read_text()
    (tmp_path / "old.jsonl").write_text(text.replace("train at nine", "train at ten!"))
    with pytest.raises(InvalidInputError, match="something else is at"):
        full.archive(tmp_path / "old.jsonl", **ANN)


def test_nothing_to_archive_makes_no_file_and_no_version(full, tmp_path):
    before = full.version
    done = full.archive(tmp_path / "old.jsonl", user="nobody")
    assert (done.memories, done.version) == (0, before)
    assert not (tmp_path / "old.jsonl").exists()


def test_a_scope_is_needed_and_superseded_memories_stay(full, tmp_path):
    with pytest.raises(ScopeError):
        full.archive(tmp_path / "old.jsonl", until=ANN["until"])
    told = r"old\.jsonl is written and whole, and no memory was retired: .*superseded"
    with pytest.raises(ConflictError, match=told):
        full.archive(tmp_path / "old.jsonl", user="ann", states="superseded")
    assert full.get("a").state == "superseded"


def test_an_ending_of_another_kind_is_refused_and_capitals_are_none(full, tmp_path):
    for name in ("a.csv", "a.parquet.gz"):
        for dry_run in (True, False):
            with pytest.raises(InvalidInputError, match=r"in \.jsonl or \.parquet or \.zip, or a"):
                full.archive(tmp_path / name, dry_run=dry_run, **ANN)
    full.archive(tmp_path / "old.JSONL", **ANN)
    assert len((tmp_path / "old.JSONL").read_text().splitlines()) == 2
