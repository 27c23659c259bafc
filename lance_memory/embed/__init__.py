"""Texts to vectors: float32, one row a text, compared by cosine.

Importing this loads numpy and nothing heavier; a model is loaded on its first `embed`.
"""

from __future__ import annotations

from lance_memory.embed.cache import CachedEmbedder
from lance_memory.embed.fitting import fitting, format_for
from lance_memory.embed.function import FunctionEmbedder, as_embedder
from lance_memory.embed.minilm import MiniLM
from lance_memory.embed.missing import MissingEmbedder
from lance_memory.embed.protocol import Embedder, checked

__all__ = [
    "CachedEmbedder",
    "Embedder",
    "FunctionEmbedder",
    "MiniLM",
    "MissingEmbedder",
    "as_embedder",
    "checked",
    "fitting",
    "format_for",
]
