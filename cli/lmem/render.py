"""What the human format prints. Nothing here is asked for in the other formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lmem.names import Names
from lmem.output import clean

if TYPE_CHECKING:
    from lance_memory import (
        ClusterPlan,
        ConsolidationPlan,
        Diff,
        LogEntry,
        Memory,
        Related,
        RollbackPlan,
        SearchResult,
        WriteResult,
    )

__all__ = [
    "changes",
    "cluster_plan",
    "difference",
    "hits",
    "line",
    "log",
    "memories",
    "pairs",
    "record",
    "rows",
    "undo_plan",
    "written",
]


def line(text: str) -> RenderableType:
    """One message, never cut."""
    return Text(clean(text))


def pairs(values: Mapping[str, Any]) -> RenderableType:
    """Names and values, one a line; empty values are left out."""
    table = _grid("bold", "")
    for name, value in values.items():
        if value not in (None, "", (), {}):
            table.add_row(name, clean(_value(value)))
    return table


def record(value: Any) -> RenderableType:
    """The fields of a value but its embedding."""
    return pairs({f.name: getattr(value, f.name) for f in fields(value) if f.name != "embedding"})


def memories(found: Sequence[Memory], names: Names) -> RenderableType:
    """One line for each."""
    mixed = len({m.state for m in found}) > 1
    table = _table("MEMORY", "DATE", *(["STATE"] if mixed else []), "CONTENT")
    for m in found:
        state = [str(m.state)] if mixed else []
        content = Text(_flat(m.content), no_wrap=True, overflow="ellipsis")
        table.add_row(names(m), _day(m.happened_at), *state, content)
    return table


def hits(result: SearchResult, names: Names, *, explain: bool) -> RenderableType:
    """Best first, whole texts."""
    parts: list[RenderableType] = []
    for hit in result:
        m = hit.memory
        parts += _block(f"{hit.score:.3f}  {names(m)}  {_day(m.happened_at)}", m.content)
        parts += [_indented(hit.explain(), "dim")] if explain else []
    return Group(*parts)


def related(found: Sequence[Related], names: Names) -> RenderableType:
    """Nearest first, whole texts."""
    parts: list[RenderableType] = []
    for r in found:
        arrow = ("->" if r.direction == "out" else "<-") * r.depth
        m = r.memory
        parts += _block(f"{arrow} {_flat(r.relation)}  {names(m)}  {m.state}", m.content)
    return Group(*parts)


def rows(columns: Sequence[str], values: Iterable[Sequence[Any]]) -> RenderableType:
    """Any table."""
    table = _table(*map(clean, columns))
    for row in values:
        table.add_row(*(clean(_value(value)) for value in row))
    return table


def written(result: WriteResult) -> RenderableType:
    """What a write changed, in one line."""
    counts = changes(result.inserted, result.updated, result.deleted) or "nothing to change"
    return line(f"version {result.version}: {result.operation}, {counts}")


def changes(inserted: int, updated: int, deleted: int) -> str:
    """+inserted ~updated -deleted, without the zeros."""
    counts = (("+", inserted), ("~", updated), ("-", deleted))
    return " ".join(f"{sign}{count}" for sign, count in counts if count)


def log(entries: Sequence[LogEntry], tags: Mapping[str, int]) -> RenderableType:
    """A line for each version; the tags stand before the reason."""
    table = _table("VERSION", "TIME (UTC)", "OPERATION", "CHANGES", "BY", "REASON")
    for e in entries:
        marks = [f"[{tag}]" for tag, version in tags.items() if version == e.version]
        counts = changes(e.inserted, e.updated, e.deleted)
        reason = " ".join([*marks, _flat(e.reason)]).strip()
        table.add_row(str(e.version), _minute(e.at), e.operation, counts, _flat(e.actor), reason)
    return table


def difference(found: Diff, *, show: int) -> RenderableType:
    """What came, changed and went."""
    counts = (len(found.inserted), len(found.updated), len(found.removed))
    title = "{} inserted, {} updated, {} removed".format(*counts)
    listed = [("+", m, "") for m in found.inserted]
    listed += [("~", c.after, ", ".join(c.columns)) for c in found.updated]
    listed += [("-", m, "") for m in found.removed]
    parts: list[RenderableType] = [line(f"version {found.before} -> {found.after}: {title}")]
    for sign, m, columns in listed[:show]:
        parts += _block(f"{sign} {m.id}  {columns}".rstrip(), m.content)
    return Group(*parts, *_more(len(listed), show))


def undo_plan(plan: RollbackPlan) -> RenderableType:
    """What a rollback or revert would do."""
    aim = "to" if plan.operation == "rollback" else "of"
    sizes = {
        "come back": len(plan.reappear),
        "change back": len(plan.change),
        "go": len(plan.disappear),
    }
    counts = ", ".join(f"{size} {what}" for what, size in sizes.items())
    return line(f"{plan.operation} {aim} version {plan.target}: memories that {counts}")


def cluster_plan(plan: ConsolidationPlan, *, show: int) -> RenderableType:
    """What would replace what."""
    accepted, skipped = plan.accepted, plan.skipped
    head = (
        f"{plan.selected} memories considered at version {plan.version}: "
        f"{len(accepted)} clusters, {len(skipped)} skipped, {plan.rows_saved} rows saved"
    )
    parts: list[RenderableType] = [line(head)]
    for number, cluster in enumerate(plan.clusters[:show], start=1):
        parts += _cluster(number, cluster)
    return Group(*parts, *_more(len(plan.clusters), show, "clusters"))


def _cluster(number: int, cluster: ClusterPlan) -> Iterable[RenderableType]:
    title = f"cluster {number}: {cluster.size} memories, cohesion {cluster.cohesion:.2f}"
    yield Text(f"\n{title}", style="bold")
    for content in cluster.contents:
        yield _indented(f"- {_flat(content)}")
    successor = _flat(str(cluster.derived["content"])) if cluster.derived else ""
    outcome = f"=> {successor}" if successor else f"skipped: {cluster.reason}"
    yield Padding(Text(outcome, style="green" if successor else "yellow"), (0, 0, 0, 2))


def _block(head: str, content: str) -> Iterable[RenderableType]:
    """A line about a memory, and its text below."""
    yield Text(head, style="bold")
    yield _indented(_flat(content))


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, 4))


def _more(total: int, shown: int, what: str = "") -> Iterable[RenderableType]:
    if total > shown:
        yield line(f"... and {total - shown} more {what}".rstrip() + " (--show N shows more)")


def _table(*headers: str) -> Table:
    """Columns as wide as they need, but the last, which takes what is left."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for header in headers[:-1]:
        table.add_column(header, no_wrap=True)
    table.add_column(*headers[-1:], overflow="fold")
    return table


def _grid(*styles: str) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for style in styles[:-1]:
        grid.add_column(style=style or None, no_wrap=True)
    grid.add_column(overflow="fold")
    return grid


def _value(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    return str(value)


def _flat(text: str) -> str:
    return " ".join(clean(text).split())


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")
