"""What the tests of this folder share: embedders of several models, and committed stores."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

STORES = Path(__file__).parents[1] / "data" / "stores"
EARLIER = sorted(path.name for path in STORES.iterdir() if path.is_dir())


class Model:
    """Embeds by words, differently for each name; counts the texts that it was given."""

    def __init__(self, name, dimension, *, before=lambda batch: None):
        self.name = name
        self.dimension = dimension
        self.texts = []
        self._before = before
        self._seed = 0 if name == "words-8" else zlib.crc32(name.encode())

    def _direction(self, word):
        seed = zlib.crc32(word.encode()) ^ self._seed
        return np.random.default_rng(seed).standard_normal(self.dimension)

    def embed(self, texts):
        """Float32 [n, d]."""
        self._before(texts)
        self.texts.extend(texts)
        found = [sum(map(self._direction, text.casefold().split())) for text in texts]
        return np.stack(found).astype(np.float32)


def words_8(**options):
    """What the vectors of the committed stores were made by."""
    return Model("words-8", 8, **options)


def words_16(**options):
    return Model("words-16", 16, **options)


def rows(view, *, embeddings=True):
    """The whole contents of a view: id → every column as JSON values."""
    found = {}
    for row in view.to_arrow().to_pylist():
        told = {k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in row.items()}
        vector = told.pop("embedding")
        if embeddings:
            told["embedding"] = None if vector is None else [round(x, 6) for x in vector]
        found[told["id"]] = told
    return found


def recorded(name):
    """What the release that made a committed store has read from it."""
    lines = (STORES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}
