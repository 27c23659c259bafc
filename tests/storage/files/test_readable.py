"""A file is called damaged where it is, and not where nothing could read it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lance_memory import StorageError
from lance_memory.storage.files.readable import unreadable


@pytest.mark.parametrize("files", [1, 5_000])
def test_a_reader_that_does_not_start_damages_no_file(store, monkeypatch, files):
    """Also where it ends before it has taken all the names, which is a broken pipe."""
    store.add("sound")
    (file,) = Path(store.uri, "memories.lance", "data").iterdir()
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(StorageError, match="/bin/true does not start"):
        unreadable([str(file)] * files)
