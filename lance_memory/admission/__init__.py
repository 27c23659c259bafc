"""From what a caller gives to rows that are new, or that change."""

from lance_memory.admission.addition import Addition, Embed, Progress, embedded
from lance_memory.admission.admit import Admitted, admit
from lance_memory.admission.edit import check_changes, edited
from lance_memory.admission.known import KnownContents
from lance_memory.admission.replace import Replacement, replacement

__all__ = [
    "Addition",
    "Admitted",
    "Embed",
    "KnownContents",
    "Progress",
    "Replacement",
    "admit",
    "check_changes",
    "edited",
    "embedded",
    "replacement",
]
