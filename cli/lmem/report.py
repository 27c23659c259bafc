"""report: a store's history and contents as one page of pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.options import At, Name, Scoped, when

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import ReportResult

__all__ = ["register"]


def report(
    call: Call,
    scope: Scoped,
    at: At,
    *,
    out: Annotated[str, typer.Option(metavar="FILE", help="Where the page goes.")] = "report.html",
    question: Annotated[
        Name, typer.Option(metavar="TEXT", help="Asked at five versions; else the last recorded.")
    ] = None,
    memory: Annotated[
        Name, typer.Option(metavar="REF", help="Whose lineage is shown; else of the most sources.")
    ] = None,
    before: Annotated[
        Name,
        typer.Option(
            metavar="VERSION|TAG|TIME", help="Compared with; else what the last pass was made of."
        ),
    ] = None,
    sample: Annotated[int, typer.Option(help="Memories on the map at most.")] = 2_000,
    seed: Annotated[int, typer.Option(help="Another number draws another sample.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Write what the store is like as one HTML page, to be read offline.

    Growth and churn, states, near-duplicates and ages, scopes, consolidation passes, what is
    recalled, a map of the embeddings, a lineage, two versions, and one question over time; with
    --at TAG as of then. The page has contents of memories, and no script. Needs the extra
    "analysis".
    """
    store = call.open(scope)
    with call.out.progress("report") as told:
        found = store.report(
            out,
            at=None if at.at is None else when(at.at, call.whole),
            question=question or "",
            ref=memory,
            before=None if before is None else when(before, call.whole),
            sample=sample,
            seed=seed,
            overwrite=overwrite,
            progress=told,
        )
    call.out.show(found, human=lambda: _drawn(call, found), quiet=[found.path])


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(report))


def _drawn(call: Call, found: ReportResult) -> RenderableType:
    drawn: RenderableType = call.draw.pairs(
        {
            "report": found.path,
            "version": found.version,
            "as of": f"{found.at:%Y-%m-%d %H:%M} UTC",
            "size": call.draw.count(found.bytes, "byte", "bytes"),
            "sections": len(found.sections),
            "empty": ", ".join(found.empty) or None,
        }
    )
    return drawn
