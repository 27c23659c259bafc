"""Texts to vectors: float32, one row a text, compared by cosine.

Importing this loads numpy and nothing heavier; a model is loaded on its first `embed`.
"""

from __future__ import annotations

from lance_memory.embed.cache import CachedEmbedder
from lance_memory.embed.endpoint import OpenAIEmbedder
from lance_memory.embed.fitting import fitting, fitting_or_missing, format_for
from lance_memory.embed.function import FunctionEmbedder, as_embedder
from lance_memory.embed.late import LateInteraction, TokenEmbedder, token_embedder
from lance_memory.embed.minilm import MiniLM
from lance_memory.embed.missing import MissingEmbedder
from lance_memory.embed.named import embedder_named
from lance_memory.embed.protocol import Embedder, QueryEmbedder, checked
from lance_memory.embed.registry import LanceDBEmbedder
from lance_memory.embed.tokens import TokenCounter, count_tokens
from lance_memory.embed.transformer import SentenceTransformerEmbedder

__all__ = [
    "CachedEmbedder",
    "Embedder",
    "FunctionEmbedder",
    "LanceDBEmbedder",
    "LateInteraction",
    "MiniLM",
    "MissingEmbedder",
    "OpenAIEmbedder",
    "QueryEmbedder",
    "SentenceTransformerEmbedder",
    "TokenCounter",
    "TokenEmbedder",
    "as_embedder",
    "checked",
    "count_tokens",
    "embedder_named",
    "fitting",
    "fitting_or_missing",
    "format_for",
    "token_embedder",
]
