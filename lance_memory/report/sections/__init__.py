"""The sections of the page, in order: what each says in words, and draws."""

from __future__ import annotations

from lance_memory.report.findings import Findings
from lance_memory.report.section import Section
from lance_memory.report.sections.contents import duplicates, map_of, recall, scopes
from lance_memory.report.sections.stories import difference, lineage, travel
from lance_memory.report.sections.versions import growth, lifecycle, passes

__all__ = ["sections"]

_MAKERS = (
    growth,
    lifecycle,
    duplicates,
    scopes,
    passes,
    recall,
    map_of,
    lineage,
    difference,
    travel,
)


def sections(found: Findings) -> tuple[Section, ...]:
    """All of them; one that has nothing to draw says why."""
    return tuple(make(found) for make in _MAKERS)
