"""The small files beside a table, on a disk and through the engine's own file access."""

from __future__ import annotations

import pytest

from lance_memory import NotFoundError
from lance_memory.storage.place import Place


@pytest.fixture(params=["", "file://"])
def place(request, tmp_path):
    return Place(f"{request.param}{tmp_path}")


def test_a_file_is_written_read_listed_and_removed(place):
    place.write("a/b.json", b"\x00one")
    place.write("a/b.json", b"two")
    place.write("c.json", b"")
    assert place.names() == ["a/b.json", "c.json"]
    assert place.names("a") == ["a/b.json"]
    assert (place.read("a/b.json"), place.read("c.json")) == (b"two", b"")
    place.remove("a/b.json")
    place.remove("a/b.json")
    assert place.names() == ["c.json"]


def test_what_is_not_there_is_not_found(place):
    assert place.names("nowhere") == []
    with pytest.raises(NotFoundError, match="not found"):
        place.read("nowhere.json")
