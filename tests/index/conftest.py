"""Stores that hold vectors; tests marked `gpu` run where a device answers."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from lance_memory import FunctionEmbedder
from lance_memory.index.device import cuda_answers

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)

from index_kit import WIDTH, items  # noqa: E402


@pytest.fixture(scope="session")
def fixed():
    """Texts are never embedded here: every memory brings its vector."""
    return FunctionEmbedder(
        lambda texts: np.ones((len(texts), WIDTH)), name="fixed", dimension=WIDTH
    )


@pytest.fixture
def filled(tmp_path, reopen, fixed):
    """Makes a store of vectors; memory i has the id that `identifier(i)` gives."""

    def make(rows, name="store", **fields):
        store = reopen(tmp_path / name, embedder=fixed)
        store.add_many(items(rows, **fields))
        return store

    return make


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Torch's threads and those of other tests would wait for each other on few cores."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("gpu") and not cuda_answers():
            item.add_marker(pytest.mark.skip(reason="no CUDA device answers torch here"))
