"""Memories, hits, differences and lineages as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from itertools import chain, islice
from typing import TYPE_CHECKING

from lance_memory import html
from lance_memory.wording import shown

if TYPE_CHECKING:
    from lance_memory.record.memory import Memory
    from lance_memory.record.results import Change, Diff, Lineage, LineageNode, SearchResult

__all__ = ["difference", "hits", "lineage", "memory"]

_MOST = 50  # rows of a table
_LONGEST = 300  # characters of a content beside others
_WORDS = 200  # of a content that has changed
_BEFORE = 20  # of them before what differs


def memory(found: Memory) -> str:
    """One memory: what it says, and what there is to know about it."""
    about = {
        "id": found.id,
        "scope": str(found.scope) if found.scope else "",
        "kind": f"{found.kind}, {found.state}",
        "said by": " ".join(filter(None, (found.actor, f"({found.role})" if found.role else ""))),
        "happened": _time(found.happened_at),
        "recorded": _time(found.created_at),
        "expires": _time(found.expires_at),
        "key": found.key,
        "tags": ", ".join(found.tags),
        "importance": found.importance,
        "confidence": found.confidence,
        "revision": found.revision if found.revision > 1 else None,
        "superseded by": found.superseded_by,
        "metadata": dict(found.metadata) or None,
    }
    return html.Markup(html.mark(found.content, "p") + html.pairs(about))


def hits(found: SearchResult) -> str:
    """The hits of a search, best first; what was made of the question above them."""
    rows = [
        (
            place,
            hit.score,
            hit.similarity,
            shown(hit.memory.content, _LONGEST),
            _time(hit.memory.happened_at),
            str(hit.memory.scope) if hit.memory.scope else "",
            hit.memory.id,
        )
        for place, hit in enumerate(found.hits[:_MOST], 1)
    ]
    head = ("", "score", "cosine", "content", "happened", "scope", "id")
    told = [f"{len(found)} of version {found.version}", str(found.understood)]
    told += [f"without {leg}: {why}" for leg, why in found.degraded.items()]
    return html.table(head, rows, caption="; ".join(filter(None, told)))


def difference(found: Diff) -> str:
    """What came, changed and went; of changed contents the words that did."""
    rows = chain(
        (("+", shown(m.content, _LONGEST), m.kind, m.id) for m in found.inserted),
        (("~", _changed(change), ", ".join(change.columns), change.after.id)
          for change in found.updated),
        (("−", shown(m.content, _LONGEST), m.kind, m.id) for m in found.removed),
    )  # fmt: skip
    number = len(found.inserted) + len(found.updated) + len(found.removed)
    more = f"; the first {_MOST}" if number > _MOST else ""
    head = ("", "content", "what", "id")
    return html.table(head, islice(rows, _MOST), caption=f"{found}{more}")


def lineage(found: Lineage) -> str:
    """A memory between what took its place and what it was made from."""
    return html.Markup(
        _generation("what took its place", found.successors)
        + html.mark(found.memory.content, "p")
        + _generation("what it was made from", found.sources)
    )


def _generation(title: str, nodes: Sequence[LineageNode]) -> str:
    return html.mark(title, "em") + _branch(nodes) if nodes else ""


def _branch(nodes: Iterable[LineageNode]) -> html.Markup:
    return html.listing(
        html.Markup(
            html.mark(shown(node.memory.content, _LONGEST), "span")
            + html.mark(f" {node.relation}, {node.memory.state}, {node.memory.id}", "small")
            + (_branch(node.nodes) if node.nodes else "")
        )
        for node in nodes
    )


def _changed(change: Change) -> html.Markup | str:
    before, after = change.before.content, change.after.content
    if before == after:
        return shown(after, _LONGEST)
    old, new = before.split(), after.split()
    pairs = enumerate(zip(old, new, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))
    begin = max(0, at - _BEFORE)  # of long texts so much as is soon compared, and soon read
    end = begin + _WORDS
    cut = max(len(old), len(new)) > end
    old, new = old[begin:end], new[begin:end]
    pieces: list[str] = ["…"] if begin else []
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = what == "equal"
        pieces += [html.mark(_joined(old[a:b]), "span" if same else "del")] if a < b else []
        pieces += [html.mark(_joined(new[c:d]), "ins")] if c < d and not same else []
    return html.Markup(" ".join(pieces + ["…"] * cut))


def _joined(words: Sequence[str]) -> str:
    return shown(" ".join(words), _WORDS * 10)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"
