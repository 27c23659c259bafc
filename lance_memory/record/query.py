"""What a user's SQL may say."""

from __future__ import annotations

import re

from lance_memory.errors import InvalidInputError

__all__ = ["check_select"]

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_READER = re.compile(
    r"(?:read|scan)_(?:csv|parquet|ipc|json|ndjson|delta|iceberg|avro|lines)", re.IGNORECASE
)
_SELECT = re.compile(r"\s*\(*\s*(?:select|with|from)\b", re.IGNORECASE)


def check_select(query: str) -> None:
    """Let a SELECT pass that reads its own table alone.

    The SQL engine would also answer DELETE and DROP, on a copy, and read files by name.

    Raises:
        InvalidInputError: the query is another statement, or calls a function that reads files.
    """
    bare = _QUOTED.sub(" ", query)
    if not _SELECT.match(bare):
        raise InvalidInputError("the query is no SELECT; memories are changed through the verbs")
    if _READER.search(query):  # the whole text, for a function's name can be quoted in many ways
        raise InvalidInputError(
            "the query names a function that reads files; it can read the table memories alone"
        )
