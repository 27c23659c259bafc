"""What the human format prints. Nothing here is asked for in the other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from lmem.columns import WIDEST, first_that_fit, that_fit
from lmem.names import Names
from lmem.output import clean

if TYPE_CHECKING:
    from lance_memory import (
        ClusterPlan,
        ConsolidationPlan,
        Lineage,
        LineageNode,
        Memory,
        MemoryStore,
        MergePlan,
        Related,
        RollbackPlan,
        SearchResult,
        WriteResult,
    )

__all__ = [
    "beside",
    "blocks",
    "changes",
    "cluster_plan",
    "count",
    "cut",
    "first",
    "hits",
    "line",
    "lineage",
    "memories",
    "pairs",
    "record",
    "rows",
    "sheet",
    "undo_plan",
    "written",
]


_WIDE = 100
_WIDEST_BESIDE = 12
_NARROWEST_CONTENT = 24
_NARROWEST_LEAF = 30
_INDENT = 4  # of a tree, for each level


class Shown(NamedTuple):
    """A table, and how many columns it leaves out."""

    table: RenderableType
    left_out: int


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


def memories(found: Sequence[Memory], names: Names, *, width: int) -> RenderableType:
    """One line for each: the content, and beside it what there is room for."""
    if not found:
        return Group()
    mixed = len({m.state for m in found}) > 1
    columns = {
        "MEMORY": [names(m) for m in found],
        "DATE": [_day(m.happened_at) for m in found],
        "STATE": [str(m.state) if mixed else "" for m in found],
        "USER": [cut(m.user) for m in found],
        "SESSION": [cut(m.session) for m in found],
    }
    if width >= _WIDE:
        columns["TAGS"] = [cut(", ".join(m.tags)) for m in found]
    return beside(columns, [m.content for m in found], width=width)


def beside(
    columns: Mapping[str, Sequence[str]], contents: Sequence[str], *, width: int
) -> RenderableType:
    """A line for each content, cut to the room that is left beside the columns that fit."""
    shown = that_fit(columns, width - _NARROWEST_CONTENT) or [*columns][:1]
    table = _table(*shown, "CONTENT")
    for place, text in enumerate(contents):
        content = Text(_flat(text), no_wrap=True, overflow="ellipsis")
        table.add_row(*(columns[name][place] for name in shown), content)
    return table


def hits(result: SearchResult, names: Names, *, explain: bool) -> RenderableType:
    """Best first, whole texts; the cosine says how near one is, which the score does not."""
    parts: list[RenderableType] = [Text(str(result.understood), style="dim")] if explain else []
    for hit in result:
        m = hit.memory
        near = "" if hit.similarity is None else f"cos {hit.similarity:.2f}  "
        parts += _block(f"{hit.score:.3f}  {near}{names(m)}  {_day(m.happened_at)}", m.content)
        parts += [_indented(hit.explain(), "dim")] if explain else []
    return Group(*parts)


def blocks(found: Iterable[tuple[str, Sequence[str]]]) -> RenderableType:
    """A line about each, and its lines below."""
    parts: list[RenderableType] = []
    for head, lines in found:
        one_line = " ".join(clean(head).splitlines())
        parts += [Text(one_line, style="bold"), *(_indented(_flat(one)) for one in lines)]
    return Group(*parts)


def related(found: Sequence[Related], names: Names) -> RenderableType:
    """Nearest first, whole texts."""
    parts: list[RenderableType] = []
    for r in found:
        arrow = ("->" if r.direction == "out" else "<-") * r.depth
        m = r.memory
        parts += _block(f"{arrow} {_flat(r.relation)}  {names(m)}  {m.state}", m.content)
    return Group(*parts)


def first(table: RenderableType, shown: int, *, of: int) -> RenderableType:
    """The table of the first ones, and how many more there are."""
    return Group(table, line(f"... and {of - shown} more")) if of > shown else table


def lineage(found: Lineage, names: Names, *, width: int) -> RenderableType:
    """A tree with a line for each memory; as many levels as there is room for."""
    tree = Tree(Text(_leaf(found.memory, names), style="bold", no_wrap=True, overflow="ellipsis"))
    levels = max(1, (width - _NARROWEST_LEAF) // _INDENT)
    for arrow, nodes in (("↑", found.successors), ("↓", found.sources)):
        _hang(tree, nodes, arrow, names, levels)
    return tree


def rows(columns: Sequence[str], values: Iterable[Sequence[Any]], *, width: int) -> Shown:
    """Any table, and how many of its columns did not fit."""
    names = [*map(clean, columns)]
    texts = [[_flat(_value(value)) for value in row] for row in values]
    kept = first_that_fit(names, texts, width)
    table = _table(*names[:kept], widest=WIDEST)
    for row in texts:
        table.add_row(*row[:kept])
    return Shown(table, max(0, len(names) - kept))


def sheet(columns: Sequence[str], values: Iterable[Sequence[Any]]) -> RenderableType:
    """A table of all its columns, the last of which is never cut."""
    table = _table(*columns)
    for row in values:
        table.add_row(*(Text(clean(str(value))) for value in row))
    return table


def written(result: WriteResult) -> RenderableType:
    """What a write changed, in one line."""
    counts = changes(result.inserted, result.updated, result.deleted) or "nothing to change"
    return line(f"version {result.version}: {result.operation}, {counts}")


def changes(inserted: int, updated: int, deleted: int) -> str:
    """+inserted ~updated -deleted, without the zeros."""
    counts = (("+", inserted), ("~", updated), ("-", deleted))
    return " ".join(f"{sign}{count}" for sign, count in counts if count)


def undo_plan(
    plan: RollbackPlan, some: Iterable[tuple[str, Memory]], names: Names, *, show: int
) -> RenderableType:
    """What a rollback or revert would do; `some` of the memories, each with its sign."""
    aim = "to" if plan.operation == "rollback" else "of"
    going, coming, changing = map(len, (plan.disappear, plan.reappear, plan.change))
    head = (
        f"{plan.operation} {aim} version {plan.target}: "
        f"{count(going)} {'goes' if going == 1 else 'go'}, "
        f"{coming} {'comes' if coming == 1 else 'come'} back, "
        f"{changing} {'changes' if changing == 1 else 'change'} back"
    )
    listed = (_one_line(f"{sign} {names(m)}  {_flat(m.content)}") for sign, m in some)
    return Group(line(head), *listed, *_more(going + coming + changing, show))


def merge_plan(
    plan: MergePlan,
    ours: MemoryStore,
    theirs: MemoryStore,
    named: Callable[[list[Memory]], Names],
    *,
    prefer: str | None,
    show: int,
) -> RenderableType:
    """What a merge would do: memories as they would be, and what clashes as it is on both lines."""
    losers = plan.keys if prefer == "ours" else plan.keys.values()
    lost = frozenset(losers if prefer else ())
    clashes = [*((i, i) for i in plan.clashes), *((o, t) for t, o in plan.keys.items())]
    undecided = [] if prefer else clashes
    groups: dict[str, Sequence[str]] = {
        "added": [i for i in plan.added if i not in lost],
        "changed": [i for i in plan.changed if i not in lost],
        "removed": plan.removed,
        "retired, as the other has the key": sorted(lost),
    }

    def listed() -> Iterator[tuple[str, Memory, str]]:
        signs = {"+": ("added", theirs), "~": ("changed", theirs), "-": ("removed", ours)}
        for sign, (name, side) in signs.items():
            yield from ((sign, memory, _hidden(memory)) for memory in map(side.get, groups[name]))
        yield from (
            ("-", (theirs if i in plan.keys else ours).get(i), "retired") for i in sorted(lost)
        )
        for mine, its in undecided:
            for where, memory in (("here", ours.find(mine)), (plan.branch, theirs.find(its))):
                if memory:
                    yield "!", memory, ", ".join(filter(None, (where, _hidden(memory))))

    some = [*islice(listed(), show)]
    names = named([memory for _, memory, _ in some])
    lines = [
        _one_line(f"{sign} {names(m)}  {_flat(m.content)}{f'  ({note})' if note else ''}")
        for sign, m, note in some
    ]
    counts = [f"{len(ids):,} {name}" for name, ids in groups.items() if ids]
    counts += [f"{len(undecided):,} to be decided with --prefer"] if undecided else []
    head = f"merge {plan.branch} at version {plan.tip}: {', '.join(counts) or 'nothing to bring'}"
    total = sum(map(len, groups.values())) + 2 * len(undecided)
    return Group(line(head), *lines, *_more(total, show))


def _hidden(memory: Memory) -> str:
    """The state of a memory that nothing recalls."""
    return "" if memory.state == "active" else str(memory.state)


def cluster_plan(plan: ConsolidationPlan, *, show: int) -> RenderableType:
    """What would replace what, what it would cost, and what is left alone and why."""
    accepted, skipped = plan.accepted, plan.skipped
    head = (
        f"{count(plan.selected)} considered at version {plan.version}: "
        f"{count(len(accepted), 'cluster', 'clusters')}, {len(skipped)} skipped, "
        f"{count(plan.rows_saved, 'row', 'rows')} saved"
    )
    parts: list[RenderableType] = [line(head)]
    if plan.recalled:
        seen = plan.recalled
        parts.append(line(_recall(seen.probes, seen.before, seen.after)))
    if plan.cut:
        parts.append(line(f"not all clusters were looked at: {plan.cut}"))
    for number, cluster in enumerate(plan.clusters[:show], start=1):
        parts += _cluster(number, cluster)
    return Group(*parts, *_more(len(plan.clusters), show, "cluster"))


def count(number: int, one: str = "memory", more: str = "memories") -> str:
    """1 memory, 2 memories."""
    return f"{number:,} {one if number == 1 else more}"


def cut(text: str) -> str:
    """What a column beside the content shows of a text."""
    shown = Text(_flat(text))
    shown.truncate(_WIDEST_BESIDE, overflow="ellipsis")
    return shown.plain


def _one_line(text: str) -> RenderableType:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _cluster(number: int, cluster: ClusterPlan) -> Iterable[RenderableType]:
    title = f"cluster {number}: {count(cluster.size)}, cohesion {cluster.cohesion:.2f}"
    yield Text(f"\n{title}", style="bold")
    for content in cluster.contents:
        yield _indented(f"- {_flat(content)}")
    successor = _flat(str(cluster.derived["content"])) if cluster.derived else ""
    outcome = f"=> {successor}" if successor else f"left alone: {cluster.reason}"
    yield Padding(Text(outcome, style="green" if successor else "yellow"), (0, 0, 0, 2))
    if cluster.dropped:
        yield _indented(f"dropped: {clean(', '.join(cluster.dropped))}", style="yellow")
    seen = cluster.recalled
    if seen and seen.before != seen.after:
        yield _indented(_recall(seen.probes, seen.before, seen.after))


def _recall(probes: int, before: int, after: int) -> str:
    return (
        f"recall: of {count(probes, 'probe', 'probes')}, "
        f"{before} {'finds' if before == 1 else 'find'} a source now, "
        f"and {after} would find it or its successor"
    )


def _block(head: str, content: str) -> Iterable[RenderableType]:
    """A line about a memory, and its text below."""
    yield Text(head, style="bold")
    yield _indented(_flat(content))


def _hang(tree: Tree, nodes: Iterable[LineageNode], arrow: str, names: Names, levels: int) -> None:
    for node in nodes:
        relation = "" if node.relation == "consolidates" else f"{_flat(node.relation)}  "
        what = f"{names(node.memory)}  (see above)" if node.repeated else _leaf(node.memory, names)
        branch = tree.add(_one_line(f"{arrow} {relation}{what}"))
        if levels > 1:
            _hang(branch, node.nodes, arrow, names, levels - 1)
        if node.more or (node.nodes and levels == 1):
            branch.add(_one_line("... (--depth N)" if node.more else "... (--format json)"))


def _leaf(m: Memory, names: Names) -> str:
    return f"{names(m)}  {m.state}  {_day(m.happened_at)}  {_flat(m.content)}"


def _indented(text: str, style: str = "") -> RenderableType:
    return Padding(Text(text, style=style), (0, 0, 0, 4))


def _more(total: int, shown: int, what: str = "") -> Iterable[RenderableType]:
    if total > shown:
        named = f"{what}s" if what and total - shown > 1 else what
        yield line(f"... and {total - shown} more {named}".rstrip() + " (--show N shows more)")


def _table(*headers: str, widest: int | None = None) -> Table:
    """Columns as wide as they need, but the last, which takes what is left."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for header in headers[:-1]:
        table.add_column(header, no_wrap=True, max_width=widest)
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
    if hasattr(value, "relation") and hasattr(value, "target"):
        return f"{value.relation} -> {value.target}" + (f" ({value.note})" if value.note else "")
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_value(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_value(item) for item in value)
    return str(value)


def _flat(text: str) -> str:
    return " ".join(clean(text).split())


def _day(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d")
