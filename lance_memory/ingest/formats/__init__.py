"""Conversations from files and Python values, in one form."""

from __future__ import annotations

from lance_memory.ingest.formats.read import Format, read_conversations
from lance_memory.ingest.formats.tidy import Normalise, known_role, role_of, tidy, tidy_name
from lance_memory.ingest.formats.values import conversation, conversations_of

__all__ = [
    "Format",
    "Normalise",
    "conversation",
    "conversations_of",
    "known_role",
    "read_conversations",
    "role_of",
    "tidy",
    "tidy_name",
]
