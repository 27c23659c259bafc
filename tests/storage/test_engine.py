"""Every failure of the engine comes out as ours: provoked for real where that is possible."""

from __future__ import annotations

import errno
import os

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError

from lance_memory import (
    ConflictError,
    InvalidInputError,
    LanceMemoryError,
    NotFoundError,
    RejectedError,
    StorageError,
)
from lance_memory.storage.engine import (
    MissingFileError,
    NoSpaceError,
    UnexplainedError,
    translated,
)


def raised(error):
    with pytest.raises(LanceMemoryError) as caught, translated("do it"):
        raise error
    assert caught.value.__cause__ is error
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_is_a_storage_error(code):
    assert raised(OSError(code, os.strerror(code))) == (
        NoSpaceError,
        "could not do it: no space left; nothing was written: free some",
    )


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_no_permission_is_a_storage_error(code):
    kind, message = raised(OSError(code, os.strerror(code)))
    assert (kind, message) == (
        StorageError,
        "could not do it: no permission to write there; nothing was written",
    )
    assert issubclass(kind, OSError)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("LanceError(IO): No space left on device (os error 28)", NoSpaceError),
        ("LanceError(IO): Disk quota exceeded (os error 122)", NoSpaceError),
        ("LanceError(IO): Permission denied (os error 13)", StorageError),
        ("LanceError(IO): Read-only file system (os error 30)", StorageError),
        ("LanceError(IO): Operation not permitted (os error 1)", StorageError),
        ("LanceError(IO): Input/output error (os error 5)", UnexplainedError),
        ("LanceError(IO): Too many open files (os error 24)", UnexplainedError),
        ("Ref not found error: tag x", NotFoundError),
        ("Not found: /x/_versions/3.manifest", MissingFileError),
        ("Ref conflict error: tag x", ConflictError),
        ("Dataset already exists: /x", ConflictError),
        ("Ref is invalid: a b", InvalidInputError),
        ("something quite new", UnexplainedError),
    ],
)
def test_the_engines_words_are_told_apart(text, kind):
    for error in (OSError(text), ValueError(text), RuntimeError(text)):
        found, message = raised(error)
        assert found is kind
        assert message.startswith("could not do it: ")


def test_the_place_in_the_engines_source_is_left_out():
    _, message = raised(OSError("it broke, /home/runner/work/lance/rust/x.rs:1:2"))
    assert message == "could not do it: the engine says: it broke"


@pytest.mark.parametrize("source", ["/rustc/48a2/library/ops.rs:250:5", "/root/.cargo/x.rs:1:2"])
def test_the_places_in_other_sources_are_left_out_too(source):
    _, message = raised(OSError(f"it broke, {source}"))
    assert message == "could not do it: the engine says: it broke"


@pytest.mark.parametrize(
    "place", ["data/01ab.lance", "_indices/f8bc24bf-38/page_data.lance", "tree/side/data/01.lance"]
)
def test_a_missing_file_is_named_from_the_stores_directory_on(place):
    kind, message = raised(OSError(f"LanceError(IO): Not found: /x/y z/memories.lance/{place}, at"))
    assert kind is MissingFileError
    assert message.endswith(f"or the store is damaged (memories.lance/{place})")


class PanicException(BaseException):
    """Like pyo3's, which cannot be imported; real ones: tests/proof/test_damage.py."""


def test_a_panic_of_the_engine_is_a_storage_error():
    kind, message = raised(PanicException("called `unwrap()` on an `Err` value"))
    assert kind is UnexplainedError
    assert message == "could not do it: the engine gave up: called `unwrap()` on an `Err` value"


@pytest.mark.parametrize("error", [pa.ArrowInvalid("bad"), NotImplementedError("not yet")], ids=str)
def test_arrow_and_missing_features_are_translated(error):
    kind, message = raised(error)
    assert issubclass(kind, LanceMemoryError)
    assert str(error) in message


@pytest.mark.parametrize(
    "error", [RejectedError("ours"), KeyError("not the engine's"), KeyboardInterrupt()], ids=repr
)
def test_what_is_ours_or_nobodys_passes_through(error):
    with pytest.raises(type(error)) as caught, translated("do it"):
        raise error
    assert caught.value is error


def test_a_lost_race_passes_through_for_the_commit_loop():
    error = CommitConflictError("overtaken")
    with pytest.raises(CommitConflictError) as caught, translated("do it"):
        raise error
    assert caught.value is error


def test_nothing_happens_when_nothing_fails():
    with translated("do it"):
        pass


def test_real_failures_are_translated(tmp_path):
    with (
        pytest.raises(NotFoundError, match="could not open"),
        translated("open", absent=NotFoundError),
    ):
        lance.dataset(str(tmp_path / "nowhere"))
    lance.write_dataset(pa.table({"a": [1]}), tmp_path / "table")
    dataset = lance.dataset(tmp_path / "table")
    with pytest.raises(ConflictError, match="it is there already"), translated("create"):
        lance.write_dataset(pa.table({"a": [1]}), tmp_path / "table", mode="create")
    with pytest.raises(NotFoundError), translated("open version 9", absent=NotFoundError):
        dataset.checkout_version(9)
    dataset.tags.create("t", 1)
    with pytest.raises(ConflictError), translated("tag"):
        dataset.tags.create("t", 1)
    with pytest.raises(InvalidInputError), translated("tag"):
        dataset.tags.create("a b", 1)
    with pytest.raises(NotFoundError), translated("untag"):
        dataset.tags.delete("nope")
    with pytest.raises(LanceMemoryError), translated("read"):
        dataset.to_table(filter="nope = 1")


def test_no_message_shows_the_engines_source(store):
    store.add("a")
    messages = []
    for act in (
        lambda: store.at(99),
        lambda: store.tag("a b"),
        lambda: store.untag("x"),
        lambda: store.to_arrow(columns=["nope"]),
        lambda: store.branch("a b"),
    ):
        with pytest.raises(LanceMemoryError) as caught:
            act()
        messages.append(str(caught.value))
    assert [m for m in messages if ".rs:" in m] == []
