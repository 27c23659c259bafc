"""Consolidation passes as a frame, and which of them still hold. Pure functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import polars as pl

from lance_memory.record.memory import Scope
from lance_memory.storage import LogEntry

__all__ = ["Holds", "passes"]

_PASS, _REVERT, _ROLLBACK = "consolidate", "revert", "rollback"

_Part = tuple[int, Scope | None]
"""A pass, and one of the scopes that it wrote to; None: of a pass with too many to list."""


class Holds(StrEnum):
    """Whether what a pass did is still so, as far as the log tells."""

    YES = "yes"
    PARTLY = "partly reverted"
    NO = "reverted"
    UNTOLD = "maybe reverted"


def passes(log: Sequence[LogEntry], history: pl.DataFrame | None = None) -> pl.DataFrame:
    """The consolidation passes of a log, oldest first.

    Columns: `version`, `at`, `clusters`, how many `sources` were `replaced` by how many `derived`
    memories, rows `saved`, clusters `skipped`; of the guard's `probes`, how many found what they
    are about `before` and `after`, and the share `kept` (1.0: as many; null: not measured);
    whether it `holds`; how many memories were active right before it and after it
    (`active_before`, `active_after`; null where that is not known).

    A pass is "reverted" by a revert of its version or a rollback to before it, and not so any more
    when that was reverted in its turn; "partly reverted" where only some of the scopes that it
    wrote to went back; "maybe reverted" where a scoped handle sees that something was undone, and
    not what. Through such a handle a pass that touched others too is not told, and not here.

    Args:
        log: with its manifests, newest first.
        history: of `history_frame`, for the number of active memories.
    """
    done = [one for one in reversed(log) if one.operation == _PASS and one.manifest]
    held = _held(log)
    rows = [(*_pass(one), held[one.version]) for one in done]
    schema = pl.Schema(
        {
            "version": pl.Int64(),
            "at": pl.Datetime("us", "UTC"),
            **dict.fromkeys(("clusters", "sources", "derived", "saved", "skipped"), pl.Int64()),
            **dict.fromkeys(("probes", "before", "after"), pl.Int64()),
            "kept": pl.Float64(),
            "holds": pl.String(),
        }
    )
    told = pl.DataFrame(rows, schema=schema, orient="row")
    return told.join(_active(history), on="version", how="left", maintain_order="left")


def _pass(entry: LogEntry) -> tuple[object, ...]:
    told = entry.manifest or {}
    sources, derived = len(told.get("sources", ())), len(told.get("derived", ()))
    asked = told.get("recalled") or {}
    probes, before, after = (asked.get(name) for name in ("probes", "before", "after"))
    kept = min(1.0, after / before) if before else None
    skipped = len(told.get("skipped", ()))
    numbers = (told.get("clusters", derived), sources, derived, sources - derived, skipped)
    return (entry.version, entry.at, *numbers, probes, before, after, kept)


def _held(log: Sequence[LogEntry]) -> dict[int, Holds]:
    """The passes of a log by version, and whether each still holds.

    Told by the parts of passes that hold after each version. A rollback brings back the parts that
    held at its target, a revert takes back what its target did to them; both within the scopes
    that they wrote to, since a scoped handle undoes its own alone.
    """
    versions, after = [0], [frozenset[_Part]()]
    made: dict[int, frozenset[_Part]] = {}
    unsure: set[_Part] = set()

    def at(version: int) -> frozenset[_Part]:
        return after[bisect_right(versions, version) - 1]

    for entry in reversed(log):
        now = after[-1]
        if entry.operation == _PASS and entry.manifest:
            made[entry.version] = frozenset((entry.version, one) for one in _scopes(entry))
            now |= made[entry.version]
        elif entry.operation in (_REVERT, _ROLLBACK):
            target = (entry.manifest or {}).get("target")
            if target is None:
                unsure |= now
            elif entry.operation == _ROLLBACK:
                now = frozenset(_undone(entry, now, keep=at(target)))
            else:
                did, had = at(target), at(target - 1)
                now = frozenset(_undone(entry, now, keep=(now - (did - had)) | (had - did)))
        versions.append(entry.version)
        after.append(now)
    return {version: _holds(parts, after[-1], unsure) for version, parts in made.items()}


def _scopes(entry: LogEntry) -> Sequence[Scope | None]:
    return entry.scopes or (None,)


def _undone(entry: LogEntry, now: frozenset[_Part], *, keep: frozenset[_Part]) -> Iterator[_Part]:
    """Of the scopes that the entry wrote to, the parts to keep; of the others, those of now."""
    touched = None if entry.scopes is None else set(entry.scopes)
    for part in now | keep:
        if part in (keep if touched is None or part[1] in touched else now):
            yield part


def _holds(parts: frozenset[_Part], now: frozenset[_Part], unsure: Iterable[_Part]) -> Holds:
    there = parts & now
    if not there:
        return Holds.NO
    if there != parts:
        return Holds.PARTLY
    return Holds.UNTOLD if there & set(unsure) else Holds.YES


def _active(history: pl.DataFrame | None) -> pl.DataFrame:
    """How many memories were active before and after each version of a history."""
    number = pl.Int64()
    if history is None:
        return pl.DataFrame(
            schema={"version": number, "active_before": number, "active_after": number}
        )
    came, went = (
        (pl.col(f"state_{when}") == "active").fill_null(value=False).sum().cast(number)
        for when in ("after", "before")
    )
    told = history.group_by("version").agg((came - went).alias("grew"))
    after = pl.col("grew").cum_sum()
    return told.sort("version").select(
        "version",
        (after - pl.col("grew")).alias("active_before"),
        after.alias("active_after"),
    )
