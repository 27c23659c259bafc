"""Embedders by name, as the command line takes them."""

from __future__ import annotations

import inspect

from lance_memory.embed.function import as_embedder
from lance_memory.embed.minilm import MiniLM
from lance_memory.embed.protocol import Embedder
from lance_memory.embed.registry import LanceDBEmbedder
from lance_memory.embed.transformer import SentenceTransformerEmbedder
from lance_memory.errors import EmbeddingError, InvalidInputError
from lance_memory.record.dotted import is_dotted, led_to

__all__ = ["embedder_named"]


def embedder_named(name: str) -> Embedder:
    """The embedder of that name.

    "minilm" is the default one; "sentence-transformers:MODEL" a model of the hub, or a folder;
    "lancedb:KEY" or "lancedb:KEY:MODEL" one of LanceDB's registry; and MODULE:NAME an embedder, or
    a callable of texts, of one's own: so an endpoint gets its dimension and its key. A class or a
    function there that takes nothing is called, and what it makes is the embedder.

    Danger: importing a module runs it.

    Raises:
        InvalidInputError: no such embedder, module or name in it.
        MissingExtraError: what it needs is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == "minilm":
        return MiniLM()
    if kind == "sentence-transformers" and rest:
        return SentenceTransformerEmbedder(rest)
    if kind == "lancedb" and rest:
        key, _, model = rest.partition(":")
        return LanceDBEmbedder.from_registry(key, **({"name": model} if model else {}))
    if not is_dotted(name):
        raise InvalidInputError(
            f"no embedder {name!r}; there are: minilm, sentence-transformers:MODEL, lancedb:KEY, "
            "lancedb:KEY:MODEL, and MODULE:NAME, a dotted module name and a name in it"
        )
    return _made(led_to(name), name)


def _made(found: object, name: str) -> Embedder:
    """What was found, or what it makes."""
    ready = isinstance(found, Embedder) and not inspect.isclass(found)
    if callable(found) and not ready and _takes_nothing(found):
        try:
            return as_embedder(found())
        except (InvalidInputError, EmbeddingError):
            raise
        except Exception as error:  # the user's code: it may raise anything
            raise InvalidInputError(
                f"{name!r} cannot be made without arguments: {type(error).__name__}: {error}"
            ) from error
    return as_embedder(found)  # type: ignore[arg-type]


def _takes_nothing(found: object) -> bool:
    try:
        inspect.signature(found).bind()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
