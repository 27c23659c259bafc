"""Copies of the committed stores, and processes to work on them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from forked import Forked

HERE = Path(__file__).parent
if str(HERE) not in sys.path:  # for the plain modules of this folder
    sys.path.append(str(HERE))

from migrate_kit import STORES, words_8  # noqa: E402

from lance_memory import MemoryStore, migrate_store  # noqa: E402


@pytest.fixture
def earlier(tmp_path):
    """The path of a copy of the store of schema 1."""
    return Path(shutil.copytree(STORES / "schema-1", tmp_path / "store"))


@pytest.fixture
def place(earlier):
    """The same, brought up to date."""
    migrate_store(earlier)
    return earlier


@pytest.fixture
def store(place):
    return MemoryStore.open(place, embedder=words_8())


@pytest.fixture
def child():
    """Starts a process of `migrate_child`."""

    def start(*words):
        return Forked(HERE / "migrate_child.py", *words)

    return start
