"""From what a caller gives to rows that are new, or that change."""

from lance_memory.admission.addition import Addition, Embed, Progress, embedded
from lance_memory.admission.admit import Admitted, admit
from lance_memory.admission.edit import check_changes, edited, refuse_changed
from lance_memory.admission.known import KnownContents
from lance_memory.admission.promote import Promotion
from lance_memory.admission.replace import Given, Replacements, refuse_twins, replacements

__all__ = [
    "Addition",
    "Admitted",
    "Embed",
    "Given",
    "KnownContents",
    "Progress",
    "Promotion",
    "Replacements",
    "admit",
    "check_changes",
    "edited",
    "embedded",
    "refuse_changed",
    "refuse_twins",
    "replacements",
]
