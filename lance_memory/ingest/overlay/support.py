"""Customer support: tickets, versions and how bad it is, as typed metadata and a row per ticket."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from lance_memory.ingest.overlay.protocol import Additions
from lance_memory.ingest.overlay.reading import read, under
from lance_memory.record.memory import Kind, Memory, Relationship, Scope

__all__ = ["Support"]

_NUMBER: Final = r"#[\w-]{0,20}\d[\w-]*|[A-Za-z]{1,10}-\d+|\d{3,}"
"""Of a ticket: behind a #, with a project's letters, or long enough to count nothing else."""

_PATTERNS: Final = {
    "ticket": re.compile(
        r"\b(?:(?<!in\s)case|ticket|incident|issue)\s+(?:number\s+|no\.?\s+|id\s+)?"
        rf"({_NUMBER})\b(?!\s*(?:€|\$|%|euros?\b|dollars?\b|pounds?\b|people\b))",
        re.IGNORECASE,
    ),
    "version": re.compile(
        r"\b(?:v\.?\s?|version\s+|release\s+)(\d{1,5}(?:\.\d{1,5}){1,3})\b", re.IGNORECASE
    ),
    "plan": re.compile(
        r"\b(?:(?<!working\s)on|to|from|with|have|has|using)\s+(?:(?:the|a|an|our|your|my)\s+)?"
        r"(free|starter|growth|pro|team|business|enterprise)\s+(?:plan|tier|subscription)\b",
        re.IGNORECASE,
    ),
}

_DENIED: Final = r"(?<!\bno\s)(?<!\bnot\s)(?<!n't\s)(?<!\bwithout\s)(?<!\bnever\s)"
_SEVERITY: Final = tuple(
    (name, re.compile(rf"{_DENIED}\b(?:{words})\b", re.IGNORECASE))
    for name, words in (
        ("critical", "outages?|down for everyone|data loss|lost data|production is down"),
        (
            "high",
            "urgent|asap|blocks? us|blocked|cannot work|can't work|broken|crashe[sd]|crashing",
        ),
        ("low", "minor|cosmetic|typos?|nice to have"),
    )
)
"""The first that is said, and not denied, counts."""


class Support:
    """Adds `metadata["support"]`: ticket, version, plan, severity; and one memory for each ticket.

    The ticket's memory is in the scope of those that name it, without their session, and is `about`
    them. Its key is the ticket's: a ticket that is known is not added again.
    """

    name = "support"

    def additions(self, memories: Sequence[Memory], *, now: datetime) -> Additions:  # noqa: ARG002
        """See `Overlay.additions`."""
        told = [_told(memory.content) for memory in memories]
        named: dict[tuple[str, Scope], list[Memory]] = {}
        for memory, found in zip(memories, told, strict=True):
            if "ticket" in found:
                owner = replace(memory.scope, session="", run="")
                named.setdefault((found["ticket"], owner), []).append(memory)
        rows = [_of_ticket(*which, about) for which, about in named.items()]
        return Additions(metadata=under(self.name, memories, told), rows=rows)


def _told(text: str) -> dict[str, Any]:
    found: dict[str, Any] = read(text, _PATTERNS)
    if "ticket" in found:
        found["ticket"] = found["ticket"].removeprefix("#").upper()
    if "plan" in found:
        found["plan"] = found["plan"].lower()
    severity = next((name for name, pattern in _SEVERITY if pattern.search(text)), None)
    return found if severity is None else {**found, "severity": severity}


def _of_ticket(ticket: str, owner: Scope, about: Sequence[Memory]) -> dict[str, Any]:
    return {
        "key": f"ticket:{ticket}",
        "content": f"Ticket {ticket}",
        **owner.given(),
        "kind": Kind.SEMANTIC,
        "tags": ["ticket"],
        "metadata": {"ticket": ticket},
        "event_at": min(memory.happened_at for memory in about),
        "source": "overlay",
        "relationships": [Relationship(relation="about", target=memory.id) for memory in about],
    }
