"""A journal is bounded, forgets for good, and is shared by processes."""

from __future__ import annotations

import time
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from filelock import FileLock
from forked import Forked

from lance_memory import ConflictError, StorageError
from lance_memory.storage import journal as journals
from lance_memory.storage.journal import Journal

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string()),
        pa.field("user", pa.string()),
    ]
)
CHILD = Path(__file__).with_name("journal_child.py")


def rows(start, count=5, text="said", user="ann"):
    numbers = range(start, start + count)
    return pa.table(
        {
            "id": [f"{n:06d}" for n in numbers],
            "text": [f"{text} {n}" for n in numbers],
            "user": [user] * count,
        },
        schema=SCHEMA,
    )


def holding(text):
    return lambda found: np.array([text in one for one in found["text"].to_pylist()], np.bool_)


def files_with(path, text):
    return [f for f in path.rglob("*") if f.is_file() and text.encode() in f.read_bytes()]


def ids(journal):
    return sorted(journal.scan(columns=["id"])["id"].to_pylist())


def size(path):
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


@pytest.fixture
def journal(tmp_path):
    return Journal(str(tmp_path), "notes", schema=SCHEMA)


def appender(path, name, count, keep=10**6):
    process = Forked(CHILD, path, name, count, keep)
    while not Path(path, f"ready-{name}").exists():
        assert process.poll() is None
        time.sleep(0.01)
    return process


def test_a_journal_is_made_by_its_first_append_and_not_before(journal, tmp_path):
    assert (journal.version, journal.count(), journal.scan()) == (0, 0, SCHEMA.empty_table())
    assert journal.delete(holding(""), columns=["text"]) == 0
    journal.upkeep(keep=1)
    assert list(tmp_path.iterdir()) == []
    journal.append(rows(0))
    assert [p.name for p in tmp_path.iterdir()] == ["notes.lance"]
    assert journal.scan() == rows(0)


def test_a_predicate_and_columns_choose_what_is_read(journal):
    journal.append(rows(0))
    journal.append(rows(5, user="bob"))
    assert journal.scan("user = 'bob'", columns=["id"]) == rows(5).select(["id"])


def test_another_handle_sees_what_was_appended(journal, tmp_path):
    other = Journal(str(tmp_path), "notes", schema=SCHEMA)
    assert other.count() == 0
    journal.append(rows(0))
    assert (other.count(), other.version) == (5, journal.version)
    other.append(rows(5))
    assert (journal.count(), journal.version) == (10, other.version)


def test_lancedb_opens_it(journal, tmp_path):
    journal.append(rows(0))
    table = lancedb.connect(tmp_path).open_table("notes")
    assert table.to_arrow() == rows(0)


@pytest.mark.parametrize("text", ["whisper 3", "whisper"], ids=["part of a batch", "a batch"])
def test_what_is_deleted_is_in_no_file(journal, tmp_path, text):
    journal.append(rows(0))
    journal.append(rows(3, text="whisper"))
    assert files_with(tmp_path, text)
    gone = journal.delete(holding(text), columns=["text"], predicate="user = 'ann'")
    assert (gone, journal.count()) == ((1, 9) if text == "whisper 3" else (5, 5))
    assert files_with(tmp_path, text) == []
    assert files_with(tmp_path, "said 0")


def test_a_deletion_keeps_to_its_predicate_and_writes_nothing_of_it(journal, tmp_path):
    journal.append(rows(0))
    journal.append(rows(5, user="hidden-name"))
    gone = journal.delete(holding("said"), columns=["text"], predicate="user = 'hidden-name'")
    assert (gone, ids(journal)) == (5, [f"{n:06d}" for n in range(5)])
    assert files_with(tmp_path, "hidden-name") == []


def test_upkeep_keeps_the_newest_rows(journal):
    journal.append(rows(3, 4))
    journal.append(rows(0, 3))
    journal.append(rows(7, 3))
    journal.upkeep(keep=5)
    assert ids(journal) == [f"{n:06d}" for n in range(5, 10)]
    journal.upkeep(keep=5)
    assert journal.version == 5  # made, three appends, one deletion; nothing to do made none


def test_upkeep_waits_until_there_is_a_surplus_of_five_percent(journal):
    for n in range(20):
        journal.append(rows(5 * n))
    journal.append(rows(100))
    version = journal.version
    journal.upkeep(keep=100)
    assert (journal.version, journal.count()) == (version, 105)
    journal.append(rows(105, 1))
    journal.upkeep(keep=100)
    assert (journal.version, ids(journal)) == (version + 2, [f"{n:06d}" for n in range(6, 106)])


def hammered(journal, path, appends, keep):
    sizes, most = [], keep + keep // 20
    for n in range(appends):
        journal.append(rows(n * 2, 2))
        journal.upkeep(keep=keep)
        assert min(keep, 2 * n + 2) <= journal.count() <= most
        sizes.append((len(list(path.rglob("*"))), size(path)))
    assert ids(journal) == [f"{n:06d}" for n in range(2 * appends - journal.count(), 2 * appends)]
    return sizes


def test_files_do_not_grow_with_the_appends(journal, tmp_path):
    sizes = hammered(journal, tmp_path, appends=100, keep=20)
    early, late = sizes[:50], sizes[50:]
    assert max(count for count, _ in late) <= 1.2 * max(count for count, _ in early)
    assert max(total for _, total in late) <= 1.2 * max(total for _, total in early)


@pytest.mark.parametrize(
    "keep", [pytest.param(150, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.soak)]
)
def test_files_stay_bounded_over_many_times_what_is_kept(journal, tmp_path, keep):
    sizes = hammered(journal, tmp_path, appends=6 * keep, keep=keep)
    early, late = sizes[: 6 * keep // 5], sizes[6 * keep // 5 :]
    assert max(count for count, _ in late) <= 1.2 * max(count for count, _ in early)
    assert max(total for _, total in late) <= 1.2 * max(total for _, total in early)


def test_processes_that_append_at_once_lose_nothing(journal, tmp_path):
    """Two of them make the table, and merge its files, at the same time."""
    count = 60
    names = ("ann", "bob")
    processes = [appender(tmp_path, name, count) for name in names]
    (tmp_path / "go").touch()
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert ids(journal) == sorted(f"{n:06d}-{name}" for n in range(count) for name in names)


@pytest.mark.slow
def test_processes_that_make_a_journal_at_once_lose_nothing(tmp_path):
    """Again and again, a first row each."""
    for turn in range(10):
        path = tmp_path / str(turn)
        path.mkdir()
        processes = [appender(path, name, 2) for name in "abc"]
        (path / "go").touch()
        assert [p.communicate(timeout=60) and p.returncode for p in processes] == [0, 0, 0]
        assert Journal(str(path), "notes", schema=SCHEMA).count() == 6


def test_deletions_while_another_process_appends_take_what_was_there(journal, tmp_path):
    journal.append(rows(0, 200, text="whisper"))
    process = appender(tmp_path, "bob", 60)
    (tmp_path / "go").touch()
    gone = sum(journal.delete(holding(f"whisper {n}"), columns=["text"]) for n in range(1, 10))
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert journal.count() == 200 - gone + 60
    assert files_with(tmp_path, "whisper 9") == []


def test_a_killed_appender_leaves_what_it_had_said_was_durable(journal, tmp_path):
    process = appender(tmp_path, "ann", 10_000, keep=50)
    (tmp_path / "go").touch()
    first = process.stdout.readline()
    time.sleep(0.3)
    process.kill()
    told = [first, *process.communicate()[0].splitlines()]
    last = int(told[-1])
    found = ids(journal)
    assert f"{last:06d}-ann" in found
    journal.append(rows(20_000))
    journal.upkeep(keep=10)
    assert (journal.count(), ids(journal)[-1]) == (10, "020004")


def test_upkeep_leaves_it_to_another_process_that_is_at_it(journal, tmp_path):
    journal.append(rows(0))
    with FileLock(tmp_path / "notes.lock"):
        journal.upkeep(keep=2)
        assert journal.count() == 5
    journal.upkeep(keep=2)
    assert journal.count() == 2


def test_a_deletion_that_has_to_wait_too_long_says_so(journal, tmp_path, monkeypatch):
    monkeypatch.setattr(journals, "_PATIENCE", 0.05)
    journal.append(rows(0))
    with FileLock(tmp_path / "notes.lock"), pytest.raises(ConflictError, match="try again"):
        journal.delete(holding(""), columns=["text"])
    assert journal.delete(holding(""), columns=["text"]) == 5


def test_what_cannot_be_written_is_an_error_of_the_package(journal, tmp_path):
    lancedb.connect(tmp_path).create_table("notes", [{"other": 1}])
    with pytest.raises(StorageError, match="could not append to the journal notes"):
        journal.append(rows(0))
