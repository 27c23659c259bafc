"""From what a caller gives to rows that are new."""

from lance_memory.ingest.admit import Admitted, admit
from lance_memory.ingest.keys import refuse_taken
from lance_memory.ingest.known import KnownContents
from lance_memory.ingest.replace import Replacement, replacement

__all__ = ["Admitted", "KnownContents", "Replacement", "admit", "refuse_taken", "replacement"]
