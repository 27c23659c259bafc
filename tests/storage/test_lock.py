"""One process at a time, also where its user has no name, and errors of the package."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading

import pytest

from lance_memory import ConflictError, StorageError
from lance_memory.storage.lock import held


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The directory for temporary files."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_one_holds_it_and_the_others_are_told(tmp_path):
    path = tmp_path / "x.lock"
    with (
        held(path, wait=0.0),
        pytest.raises(ConflictError, match=r"another process holds .*x\.lock.*try again"),
        held(path, wait=0.01),
    ):
        pass
    with held(path, wait=0.0):
        pass


def test_whoever_waits_gets_it_next(tmp_path):
    path, order = tmp_path / "x.lock", []

    def wait():
        with held(path, wait=None):
            order.append("second")

    with held(path, wait=0.0):
        other = threading.Thread(target=wait)
        other.start()
        other.join(0.1)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_it_ends_with_a_block_that_raises(tmp_path):
    path = tmp_path / "x.lock"
    with pytest.raises(KeyError), held(path, wait=0.0):
        raise KeyError
    with held(path, wait=0.0):
        pass


def test_a_file_that_cannot_be_locked_is_a_storage_error(tmp_path):
    (tmp_path / "x.lock").mkdir()
    with (
        pytest.raises(StorageError, match=r"x\.lock cannot be locked"),
        held(tmp_path / "x.lock", wait=0.0),
    ):
        pass


def test_a_user_without_a_name_makes_a_store(tmp_path, temporary, reopen, monkeypatch):
    """As in a container that is given a number alone."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567_890)
    store = reopen(tmp_path / "store")
    assert store.add("a").version == store.version
    assert [file.name for file in temporary.iterdir()] == ["lance-memory-1234567890.lock"]


def test_a_lock_that_cannot_be_had_is_a_storage_error_of_making_a_store(
    tmp_path, temporary, reopen
):
    (temporary / f"lance-memory-{os.getuid()}.lock").mkdir()
    with pytest.raises(StorageError, match="cannot be locked"):
        reopen(tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_no_directory_for_temporary_files_is_a_storage_error(tmp_path, reopen, monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(StorageError, match=r"cannot be made: .*set TMPDIR"):
        reopen(tmp_path / "store")


def test_a_store_that_is_there_is_opened_without_a_lock(store):
    code = (
        "import sys; from lance_memory import MemoryStore; "
        "MemoryStore.open(sys.argv[1], create=False); print('filelock' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, store.uri], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
