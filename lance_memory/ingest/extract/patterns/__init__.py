"""Patterns of a language, from TOML files; made ready once."""

from lance_memory.ingest.extract.patterns.book import Book, book_of
from lance_memory.ingest.extract.patterns.rule import Remember, Rule

__all__ = ["Book", "Remember", "Rule", "book_of"]
