"""How many tokens a text has, for budgets: by the embedder's own tokenizer, or estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Final, Protocol, runtime_checkable

from lance_memory.embed.protocol import Embedder
from lance_memory.embed.text import refuse_other_than_texts
from lance_memory.errors import EmbeddingError
from lance_memory.wording import counted

__all__ = ["TokenCount", "TokenCounter", "count_tokens", "estimated_tokens", "verified_counts"]

TokenCount = Callable[[list[str]], Sequence[int]]
"""A list of n texts to n numbers of tokens."""

BYTES_A_TOKEN: Final = 4
"""The rule of thumb for English. Bytes of UTF-8, and not characters, because one character
of Chinese (3 bytes) is about one token."""


@runtime_checkable
class TokenCounter(Protocol):
    """What an embedder may have besides: the number of tokens that its model sees in a text."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """One count a text, in order: of the whole text, without the marks around it."""


def count_tokens(embedder: Embedder, texts: Sequence[str]) -> list[int]:
    """The number of tokens of each text, in order; [] for none.

    By the embedder's own tokenizer where it is a TokenCounter, else `estimated_tokens`. Another
    model, such as the one that reads a context pack, cuts the same text into other tokens: leave
    a margin.

    Raises InvalidInputError when `texts` is one string or holds something else than strings,
    and EmbeddingError when the embedder's counts are not one whole number a text.
    """
    refuse_other_than_texts(texts)
    if not isinstance(embedder, TokenCounter):
        return estimated_tokens(texts)
    return verified_counts(embedder.count_tokens(texts), name=embedder.name, count=len(texts))


def estimated_tokens(texts: Sequence[str]) -> list[int]:
    """A quarter of each text's bytes in UTF-8, rounded up."""
    return [-(-len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN) for text in texts]


def verified_counts(given: Sequence[int], *, name: str, count: int) -> list[int]:
    """`given` as ints.

    Raises EmbeddingError unless it holds `count` whole numbers, none negative.
    """
    asked = f"embedder {name!r} was asked for the tokens of {counted(count, 'text')}"
    try:
        counts = [index(number) for number in given]
    except TypeError as error:
        raise EmbeddingError(f"{asked}; its counts are no whole numbers: {error}") from error
    if len(counts) != count or min(counts, default=0) < 0:
        raise EmbeddingError(
            f"{asked} and must give as many counts, none negative; it gave {len(counts)}, "
            f"the least is {min(counts, default=0)}"
        )
    return counts
