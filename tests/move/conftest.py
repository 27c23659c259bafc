"""A store with every state, an empty one, and the plain modules of this folder importable."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from lance_memory import MemoryStore

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)


@pytest.fixture(scope="session")
def templates(tmp_path_factory, embedder, ticking):
    """Stores that tests take a copy of: making one takes longer than most of them."""
    folder = tmp_path_factory.mktemp("templates")
    store = MemoryStore.open(folder / "store", embedder=embedder, clock=ticking())
    store.add_many(
        [
            {"content": "red kettle", "user": "ann", "id": "a", "metadata": {"n": 0}},
            {"content": "red old kettle", "user": "ann", "id": "b", "tags": ["x"]},
            {"content": "train at nine", "user": "ann", "id": "c", "key": "train"},
            {"content": "pears", "user": "bob", "id": "d"},
        ]
    )
    store.supersede(["a", "b"], "the old red kettle")
    store.retire("d", reason="wrong")
    store.export_store(folder / "archive")
    MemoryStore.open(folder / "other", embedder=embedder, clock=ticking())
    return folder


@pytest.fixture
def copied(templates, tmp_path, reopen, clock):
    clock.forward(minutes=1)
    return lambda name: reopen(shutil.copytree(templates / name, tmp_path / name), create=False)


@pytest.fixture
def full(copied):
    """Five memories: two superseded by a third, one retired, one active with a key."""
    return copied("store")


@pytest.fixture
def other(copied):
    """An empty store."""
    return copied("other")


@pytest.fixture
def archived(templates, tmp_path):
    """An archive of the store with every state."""
    return Path(shutil.copytree(templates / "archive", tmp_path / "archive"))
