"""What the human format prints of versions and of the whole store: log, graph, diff, stats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lmem.columns import that_fit
from lmem.graph import Node, labelled, laid_out
from lmem.output import clean
from lmem.render import changes, count, line, pairs

if TYPE_CHECKING:
    from lance_memory import Change, Diff, LogEntry, Memory, Stats

__all__ = ["difference", "excerpt", "graph", "log", "stats"]

_LINES = 3  # of one text, at most
_INDENT = 4
_BEFORE = 24  # cells before what differs
_WIDEST = 24  # of tags, or of who did it; a part of it where there is little room
_NAMED = 12  # tags or branches
_NARROWEST_REASON = 16
_PARTIAL = "(part of it)"
_COLOURS = {"+": "green", "~": "yellow", "-": "red"}
_OF_CONTENT = frozenset({"content", "content_hash", "embedding"})


def log(entries: Sequence[LogEntry], tags: Mapping[str, int], *, width: int) -> RenderableType:
    """A line for each version, with as much of the reason as three lines hold."""
    needed = _NARROWEST_REASON if any(entry.reason for entry in entries) else len("REASON")
    for widest in (_WIDEST, _WIDEST // 2, _WIDEST // 3):
        columns = _columns(entries, labelled(tags, entries), widest)
        shown = that_fit(columns, width - needed) or [*columns][:1]
        if len(shown) == len(columns):
            break
    taken = sum(max(map(cell_len, (name, *columns[name]))) + 2 for name in shown)
    room = _LINES * max(_NARROWEST_REASON, width - taken - 2)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in shown:
        table.add_column(name, no_wrap=True)
    table.add_column("REASON", overflow="fold")
    for place, entry in enumerate(entries):
        cells = [Text(columns[name][place]) for name in shown]
        table.add_row(*cells, Text(excerpt(entry.reason, room)))
    return table


def graph(nodes: Sequence[Node], *, width: int) -> RenderableType:
    """A line for each version, and lanes on its left that show what it came from."""
    lines = []
    for rail, node in laid_out(nodes):
        drawn = Text(no_wrap=True, overflow="ellipsis")
        drawn.append(rail, style="bold" if node else "dim")
        if node:
            drawn.append(" ").append_text(_version(node, width - len(rail) - 1))
        lines.append(drawn)
    return Group(*lines)


def difference(found: Diff, *, show: int, width: int, whole: bool = False) -> RenderableType:
    """What came, changed and went; of a long text what differs, unless the whole is asked for."""
    counts = (len(found.inserted), len(found.updated), len(found.removed))
    title = "{:,} inserted, {:,} updated, {:,} removed".format(*counts)
    room = 0 if whole else _LINES * max(1, width - _INDENT - 2)
    listed = chain(
        (_block("+", m, room) for m in found.inserted),
        (_change(c, room) for c in found.updated),
        (_block("-", m, room) for m in found.removed),
    )
    parts = [line(f"version {found.before} -> {found.after}: {title}")]
    parts += chain.from_iterable(islice(listed, show))
    if sum(counts) > show:
        parts.append(line(f"... and {sum(counts) - show:,} more (--show N shows more)"))
    return Group(*parts)


def stats(found: Stats) -> RenderableType:
    """The numbers by what they are about; of tags, branches and indices the first."""
    outside = {name: n for name, n in found.unindexed_rows.items() if n}
    told = {
        "uri": found.uri,
        "version": f"{found.version}, of {count(found.versions, 'version', 'versions')} kept",
        "at": f"{found.at:%Y-%m-%d %H:%M:%S} UTC",
        "scope": found.scope,
        "memories": f"{found.rows:,}, visible {found.visible:,}",
        "by state": _counted(found.by_state),
        "by kind": _counted(found.by_kind),
        "users": f"{found.users:,}",
        "sessions": f"{found.sessions:,}",
        "embeddings": f"{found.embedding_model} ({found.dimension} numbers)",
        "without one": f"{found.without_embedding:,}",
        "tags": _first([f"{tag} (version {version})" for tag, version in found.tags.items()]),
        "branches": _first(found.branches),
        "size": f"{_size(found.bytes)}, {count(found.fragments, 'fragment', 'fragments')}",
        "indices": f"{len(found.unindexed_rows)}",
        "rows outside them": _counted(outside) or "none",
    }
    return pairs(told)


def excerpt(text: str, room: int, *, at: int = 0) -> str:
    """So much of a text as `room` cells hold, cut between words, from a little before place `at`.

    A room of 0 holds all of it. What was cut off is an ellipsis.
    """
    flat = " ".join(clean(text).split())
    if not room or cell_len(flat) <= room:
        return flat
    begin = _word_before(flat, at)
    head = "… " if begin else ""
    rest, room = flat[begin:], room - cell_len(head)
    if cell_len(rest) <= room:
        return head + rest
    kept = set_cell_size(rest, room - 1).rstrip()
    word = kept.rfind(" ")
    if rest[len(kept) : len(kept) + 1].strip() and word > len(kept) // 2:
        kept = kept[:word]
    return f"{head}{kept.rstrip()}…"


def _word_before(text: str, at: int) -> int:
    """Where the word begins, or where there are no words the character stands, before `at`."""
    begin = at - _BEFORE
    if begin <= 0:
        return 0
    space = text.find(" ", begin, at)
    return begin if space < 0 else space + 1


def _columns(
    entries: Sequence[LogEntry], labels: Mapping[int, Sequence[str]], widest: int
) -> dict[str, list[str]]:
    """What stands before the reason; names of people's choice take no more than `widest` cells."""
    found = {
        "VERSION": [_numbered(entry, labels.get(entry.version, ()), widest) for entry in entries],
        "TIME (UTC)": [f"{entry.at:%Y-%m-%d %H:%M}" for entry in entries],
        "OPERATION": [entry.operation for entry in entries],
        "CHANGES": [_changes(entry) for entry in entries],
        "BY": [excerpt(entry.actor, widest) for entry in entries],
    }
    return {name: cells for name, cells in found.items() if any(cells)}


def _changes(entry: LogEntry) -> str:
    """The counts; of what was also done to other scopes they are not told."""
    return _PARTIAL if entry.partial else changes(entry.inserted, entry.updated, entry.deleted)


def _numbered(entry: LogEntry, labels: Sequence[str], widest: int) -> str:
    """The number, its tags, and whether it cannot be read any more."""
    named = excerpt(", ".join(labels), widest)
    there = entry.readable or entry.operation == "damaged"
    marks = ", ".join(mark for mark in (named, "" if there else "cleaned up") if mark)
    return f"{entry.version} [{marks}]" if marks else str(entry.version)


def _version(node: Node, room: int) -> Text:
    """Its name, where branches and tags are, when, what was done, and by whom and why."""
    entry, drawn = node.entry, Text()
    drawn.append(node.name, style="yellow")
    refs = [*node.branches, *(f"tag: {label}" for label in node.labels)]
    if refs:
        drawn.append(f" ({excerpt(', '.join(refs), max(_WIDEST, room // 3))})", style="bold cyan")
    drawn.append(f"  {entry.at:%Y-%m-%d %H:%M}", style="dim")
    drawn.append(f"  {_operation(entry)}")
    if entry.partial:
        drawn.append(f" {_changes(entry)}", style="dim")
    for counted in changes(entry.inserted, entry.updated, entry.deleted).split():
        drawn.append(" ").append(counted, style=_COLOURS[counted[0]])
    left = room - drawn.cell_len - 2
    told = ": ".join(part for part in (excerpt(entry.actor, _WIDEST // 2), entry.reason) if part)
    if told and left > 1:
        drawn.append(f"  {excerpt(told, left)}", style="dim")
    return drawn


def _operation(entry: LogEntry) -> str:
    """What was done; of what is about another version or line also which."""
    found = entry.manifest or {}
    about = {
        "revert": ("of", found.get("target")),
        "rollback": ("to", found.get("target")),
        "merge": ("of", found.get("branch")),
    }
    aim, name = about.get(entry.operation, ("", None))
    return entry.operation if name is None else f"{entry.operation} {aim} {name}"


def _block(sign: str, memory: Memory, room: int) -> Iterable[RenderableType]:
    """A line about a memory, and its text below."""
    yield _head(sign, memory.id)
    yield _below(excerpt(memory.content, room))


def _change(change: Change, room: int) -> Iterable[RenderableType]:
    """The columns that differ, and the text: both texts, where that differs."""
    columns = [name for name in change.columns if name not in _OF_CONTENT]
    before, after = (_flat(memory.content) for memory in (change.before, change.after))
    if "content" not in change.columns:
        yield _head("~", f"{change.after.id}  {', '.join(change.columns)}")
        yield _below(excerpt(after, room))
        return
    yield _head("~", f"{change.after.id}  {', '.join(columns)}".rstrip())
    at = _differing(before, after)
    yield _below(f"- {excerpt(before, room, at=at)}", "red")
    yield _below(f"+ {excerpt(after, room, at=at)}", "green")


def _differing(before: str, after: str) -> int:
    """Where two texts begin to differ."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))


def _head(sign: str, text: str) -> Text:
    return Text(f"{sign} {text}", style=f"bold {_COLOURS[sign]}")


def _below(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, _INDENT))


def _flat(text: str) -> str:
    return " ".join(clean(text).split())


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items())


def _first(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _size(number: int) -> str:
    """Bytes, in the unit that leaves one to three digits before the point."""
    size, unit = float(number), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1_000:
            break
        size, unit = size / 1_000, larger
    return f"{number:,} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
