"""One memory's lineage, two versions, one question over time: as frames. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from lance_memory.record.memory import Memory
from lance_memory.record.results import Diff, Lineage, LineageNode, SearchResult
from lance_memory.report.shown import shown

__all__ = ["Asked", "difference", "lineage", "time_travel"]

_CONTENT = 160
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question's answer at one version, which was made `at`."""

    at: datetime
    result: SearchResult


def lineage(found: Lineage, *, at_most: int = 30) -> pl.DataFrame:
    """A lineage in reading order, successors first: a row for each memory.

    Columns: `row` (0, 1, ...), `depth` (edges to the memory asked about), `parent` (the row that
    it hangs on; null of the memory itself), `id`, `relation`, `direction` ("successor", "itself",
    "source"), `state`, `kind`, `at` (when it happened), `content`.

    Args:
        found: as `MemoryView.lineage` gives it.
        at_most: rows.
    """
    rows: list[dict[str, object]] = []
    itself = sum(1 for node in found.successors for _ in node)
    _hang(rows, found.successors, "successor", itself)
    rows.append(_row(rows, found.memory, direction="itself"))
    _hang(rows, found.sources, "source", itself)
    start = min(max(0, itself - at_most // 2), max(0, len(rows) - at_most))
    schema = pl.Schema(
        {
            "row": pl.Int64(),
            "depth": pl.Int64(),
            "parent": pl.Int64(),
            **dict.fromkeys(("id", "relation", "direction", "state", "kind"), pl.String()),
            "at": pl.Datetime("us", "UTC"),
            "content": pl.String(),
        }
    )
    frame = pl.DataFrame(rows, schema=schema).with_columns(pl.col("row", "parent") - start)
    return frame.filter(pl.col("row").is_between(0, at_most - 1))


def difference(found: Diff) -> pl.DataFrame:
    """What two versions differ in: `change`, `kind`, `state`, `id`, `at`, `columns`, `content`.

    A `change` is "inserted", "updated" or "deleted"; `columns` names what an update changed.
    """
    told: list[tuple[str, Memory, str]] = [
        *(("inserted", one, "") for one in found.inserted),
        *(("updated", one.after, ", ".join(one.columns)) for one in found.updated),
        *(("deleted", one, "") for one in found.removed),
    ]
    schema = pl.Schema(
        {
            "change": pl.String(),
            "id": pl.String(),
            "columns": pl.String(),
            "state": pl.String(),
            "kind": pl.String(),
            "at": pl.Datetime("us", "UTC"),
            "content": pl.String(),
        }
    )
    rows = [
        {"change": change, "id": one.id, "columns": columns, **_told(one)}
        for change, one, columns in told
    ]
    return pl.DataFrame(rows, schema=schema)


def time_travel(answers: Sequence[Asked]) -> pl.DataFrame:
    """The hits of one question at several versions, oldest version first, best hit first.

    Columns: `version`, `at`, `rank` (from 1), `letter` (one for each memory, in the order they
    turn up), `id`, `score`, `state`, `content`.
    """
    letters: dict[str, str] = {}
    rows = []
    for asked in answers:
        for rank, hit in enumerate(asked.result.hits, start=1):
            number = len(letters)
            name = _LETTERS[number] if number < len(_LETTERS) else str(number + 1)
            letter = letters.setdefault(hit.memory.id, name)
            rows.append(
                {
                    "version": asked.result.version,
                    "at": asked.at,
                    "rank": rank,
                    "letter": letter,
                    "id": hit.memory.id,
                    "score": hit.score,
                    "state": str(hit.memory.state),
                    "content": shown(hit.memory.content, _CONTENT),
                }
            )
    schema = pl.Schema(
        {
            "version": pl.Int64(),
            "at": pl.Datetime("us", "UTC"),
            "rank": pl.Int64(),
            **dict.fromkeys(("letter", "id"), pl.String()),
            "score": pl.Float64(),
            **dict.fromkeys(("state", "content"), pl.String()),
        }
    )
    return pl.DataFrame(rows, schema=schema)


def _hang(
    rows: list[dict[str, object]], nodes: Sequence[LineageNode], direction: str, parent: int
) -> None:
    """Add the nodes, and what hangs on them, to the rows."""
    for node in nodes:
        place = len(rows)
        rows.append(_row(rows, node.memory, direction=direction, node=node, parent=parent))
        _hang(rows, node.nodes, direction, place)


def _row(
    rows: Sequence[object],
    memory: Memory,
    *,
    direction: str,
    node: LineageNode | None = None,
    parent: int | None = None,
) -> dict[str, object]:
    return {
        "row": len(rows),
        "depth": abs(node.generation) if node else 0,
        "parent": parent,
        "id": memory.id,
        "relation": node.relation if node else "",
        "direction": direction,
        **_told(memory),
    }


def _told(memory: Memory) -> dict[str, object]:
    return {
        "state": str(memory.state),
        "kind": str(memory.kind),
        "at": memory.happened_at,
        "content": shown(memory.content, _CONTENT),
    }
