"""The embedder that fits a store, whose vectors are all of one model."""

from __future__ import annotations

from lance_memory.embed.cache import CachedEmbedder
from lance_memory.embed.minilm import MiniLM
from lance_memory.embed.missing import MissingEmbedder
from lance_memory.embed.protocol import Embedder
from lance_memory.errors import StoreFormatError
from lance_memory.record.schema import StoreFormat

__all__ = ["fitting", "fitting_or_missing", "format_for"]


def format_for(chosen: Embedder | None) -> StoreFormat:
    """The format of a new store for the embedder, or for the default one."""
    embedder = chosen or MiniLM()
    return StoreFormat(embedding_model=embedder.name, dimension=embedder.dimension)


def fitting(fmt: StoreFormat, chosen: Embedder | None, *, where: str) -> Embedder:
    """The chosen embedder, or the default one, with a cache; it must be of the store's model.

    Where none is chosen and the store's model is not the default one, what does not embed works.

    Raises:
        StoreFormatError: the chosen one is of another model.
    """
    embedder = chosen or MiniLM()
    if (embedder.name, embedder.dimension) == (fmt.embedding_model, fmt.dimension):
        return embedder if isinstance(embedder, CachedEmbedder) else CachedEmbedder(embedder)
    if chosen is None:
        return MissingEmbedder(name=fmt.embedding_model, dimension=fmt.dimension)
    raise StoreFormatError(
        f"{where} has vectors of the model {fmt.embedding_model!r} ({fmt.dimension} numbers), and "
        f"the embedder given is {chosen.name!r} ({chosen.dimension}); vectors of two models cannot "
        "be compared: pass that model's embedder, or change the store's model with `reembed` "
        "(`lmem reembed --model NAME`)"
    )


def fitting_or_missing(fmt: StoreFormat, chosen: Embedder) -> Embedder:
    """The embedder if it is of the store's model; else what stands in for the missing one.

    A branch, or a checkout, may start at a version with vectors of a former model.
    """
    if (chosen.name, chosen.dimension) == (fmt.embedding_model, fmt.dimension):
        return chosen
    return MissingEmbedder(name=fmt.embedding_model, dimension=fmt.dimension)
