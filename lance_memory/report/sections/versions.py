"""What happened: growth and churn, the lifecycle, consolidation passes."""

from __future__ import annotations

from functools import partial

import polars as pl

from lance_memory.report import frames
from lance_memory.report.charts import versions
from lance_memory.report.findings import Findings
from lance_memory.report.passes import Holds
from lance_memory.report.passes import passes as frame_of_passes
from lance_memory.report.section import WHOLE, Section, figure, memories, numbers, section
from lance_memory.wording import counted, worded

__all__ = ["growth", "lifecycle", "passes"]

_WRITES = {
    "version": "Version",
    "at": "When (UTC)",
    "operation": "Operation",
    "inserted": "Inserted",
    "updated": "Updated",
    "deleted": "Deleted",
    "memories": "Memories after",
    "reason": "Why",
}
_FLOWS = {"came": "Came by", "state": "Now", "memories": "Memories"}
_PASSES = {
    "version": "Version",
    "at": "When (UTC)",
    "clusters": "Clusters",
    "sources": "Touched",
    "derived": "Became",
    "saved": "Rows saved",
    "holds": "Holds",
    "active_before": "Active before",
    "active_after": "Active after",
    "skipped": "Left alone",
    "probes": "Probes",
    "before": "Found before",
    "after": "Found after",
    "kept": "Recall kept",
}


def growth(found: Findings) -> Section:
    """How many memories there are, and what each version did."""
    # Through a scoped handle the log tells no counts of what touched others too.
    whole = frames.written(found.history) if found.scope else found.versions
    told = whole.filter(~pl.col("upkeep"))
    ins, upd, gone = (int(told[name].sum() or 0) for name in ("inserted", "updated", "deleted"))
    after = f"after {counted(len(told), 'version')} of writes"
    grew = f"{memories(len(found.memories))} {after}, {len(found.visible):,} of them visible."
    churned = f"Versions inserted {ins:,}, updated {upd:,} and deleted {gone:,}."
    newest = told.sort("version", descending=True).with_columns(pl.col("version").cast(pl.String))
    return section(
        "growth",
        "Growth and churn",
        figure("Growth", grew, partial(versions.growth, whole)),
        figure(
            "Churn",
            f"{churned} Each panel has a scale of its own.",
            partial(versions.churn, whole),
            table=numbers(newest, _WRITES),
        ),
        nothing="No version has written a memory yet.",
    )


def lifecycle(found: Findings) -> Section:
    """Where memories came from, and the states that they are and were in."""
    counts = found.memories["state"].value_counts()
    order = counts.sort(["count", "state"], descending=[True, False])
    now = ", ".join(f"{number:,} {state}" for state, number in order.iter_rows()) or "nothing"
    flows = frames.flows(found.history)
    thickest = ""
    if len(flows):
        came, state, number = flows.select("came", "state", "memories").row(0)
        thickest = f"The thickest band: {memories(number)} by “{came}”, now {state}."
    return section(
        "lifecycle",
        "Lifecycle",
        figure(
            "Where memories came from, and what they are now",
            thickest,
            partial(versions.lifecycle, found.history),
            table=numbers(flows, _FLOWS),
        ),
        figure("States over time", f"Now {now}.", partial(versions.states, found.history)),
        nothing="No memory has changed its state yet.",
    )


def passes(found: Findings) -> Section:
    """What consolidation saved, and how much recall it kept."""
    told = frame_of_passes(found.log, found.history)
    named = told.with_columns(pl.col("version").cast(pl.String))
    return section(
        "passes",
        "Consolidation passes",
        figure(
            "The memories that each pass touched, before and after it",
            f"{_saved(told)} {_recalled(told)}{_all_in_all(found, told)}".rstrip(),
            partial(versions.passes, told),
            width=WHOLE,
            table=numbers(named, _PASSES),
        ),
        nothing="No consolidation pass was made, or its log is gone.",
    )


def _saved(told: pl.DataFrame) -> str:
    """How many rows the passes save that still hold, and how many do not."""
    holding = told.filter(pl.col("holds") == Holds.YES)
    saved, sources, derived = (
        int(holding[name].sum() or 0) for name in ("saved", "sources", "derived")
    )
    if len(holding):
        it = "it" if len(holding) == 1 else "they"
        said = f"{counted(len(holding), 'pass', 'passes')} saved {counted(saved, 'row')}: "
        said += f"{memories(sources)} that {it} touched became {derived:,}"
    else:
        said = "No row is saved any more"
    for holds in (Holds.NO, Holds.PARTLY, Holds.UNTOLD):
        number = told.filter(pl.col("holds") == holds).height
        if number:
            said += worded(
                f"; {{n}} [pass was|passes were] {holds}, and [is|are] not counted", number
            )
    return f"{said}."


def _recalled(told: pl.DataFrame) -> str:
    """What the guard measured of the passes that hold, in words."""
    holding = told.filter(pl.col("holds") == Holds.YES)
    probes, before, after = (int(holding[n].sum() or 0) for n in ("probes", "before", "after"))
    if not probes:
        return ""
    said = f"Of {counted(probes, 'probe')} (questions that were recorded, or words of the touched "
    return f"{said}memories), {before:,} found what they are about before, and {after:,} after. "


def _all_in_all(found: Findings, told: pl.DataFrame) -> str:
    """What the newest pass that is known did to the whole."""
    known = told.drop_nulls("active_before")
    if not len(known):
        return ""
    columns = ("version", "active_before", "active_after", "holds")
    version, before, after, holds = known.select(columns).row(-1)
    whole = "this scope" if found.scope else "the store"
    said = f"Version {version} took {whole} from {before:,} active memories to {after:,}"
    return f"{said}{'' if holds == Holds.YES else f'; it was {holds}'}."
