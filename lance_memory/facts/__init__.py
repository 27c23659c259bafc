"""What a text says, by rules: its words, and the numbers, names and negations not to be lost."""

from lance_memory.facts.folding import CJK, plain, strip_accents
from lance_memory.facts.words import (
    STOP,
    Dropped,
    content_words,
    dropped,
    is_negation,
    is_portuguese,
    joined,
    said,
    sentence_spans,
    sentences,
    tokens,
)

__all__ = [
    "CJK",
    "STOP",
    "Dropped",
    "content_words",
    "dropped",
    "is_negation",
    "is_portuguese",
    "joined",
    "plain",
    "said",
    "sentence_spans",
    "sentences",
    "strip_accents",
    "tokens",
]
