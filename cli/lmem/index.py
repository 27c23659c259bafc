"""index build, index show, index recall: the vector index."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, Group
from lmem.options import At, Scoped
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import IndexReport

__all__ = ["register"]


class Kind(StrEnum):
    """The library's `IndexKind`, which is slow to import."""

    AUTO = "auto"
    IVF_PQ = "ivf_pq"
    IVF_RQ = "ivf_rq"
    IVF_FLAT = "ivf_flat"
    IVF_SQ = "ivf_sq"
    IVF_HNSW_SQ = "ivf_hnsw_sq"


group = Group(
    "index",
    help="The vector index: build it, look at it, measure what it finds.",
)


def build(
    call: Call,
    *,
    kind: Annotated[
        Kind, typer.Option(help="auto: ivf_pq where a GPU trains it, else ivf_rq.")
    ] = Kind.AUTO,
    trainer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of ivf_pq: lance, torch, torch:cpu, torch:cuda, cuvs."),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Cells; one for 4,096 vectors.")
    ] = None,
    sub_vectors: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of ivf_pq: bytes of a vector; dimension / 8."),
    ] = None,
) -> None:
    """Build the vector index anew.

    Changes no memory. The new index takes the place of the old one once it has proved to find
    what an exact scan finds; `lmem optimize` builds one by itself when it pays.
    """
    store = call.open()
    with call.out.progress("building the index") as report:
        made = store.build_index(
            kind=kind.value,
            trainer=trainer,
            partitions=partitions,
            sub_vectors=sub_vectors,
            progress=None if report is None else partial(_advance, report),
        )
    call.out.show(made, human=lambda: _drawn(call, made), quiet=[made.version])


def show(call: Call, at: At) -> None:
    """What the vector index is, what it covers, and whether it should be built anew."""
    info = call.view(None, at.at).index()
    if info is None:
        text = "there is no vector index: vectors are searched exactly"
        call.out.show({"index": None}, human=lambda: call.draw.line(text), quiet=["none"])
        return
    call.out.show({"index": plain(info)}, human=lambda: call.draw.record(info), quiet=[info.kind])


def recall(
    call: Call,
    scope: Scoped,
    at: At,
    *,
    k: Annotated[int, typer.Option("-k", "--k", metavar="N", min=1, help="Neighbours.")] = 10,
    sample: Annotated[int, typer.Option(metavar="N", min=1, help="Queries at most.")] = 200,
) -> None:
    """Measure how many of the true nearest a vector search finds.

    Stored vectors are the queries; an exact scan says what is true.
    """
    view = call.view(scope, at.at)
    with call.out.progress("measuring"):
        found = view.index_recall(k=k, sample=sample)
    if not found.sample:
        call.out.note("note: there are no vectors to ask about")
    call.out.show(found, human=lambda: call.draw.record(found), quiet=[format(found.recall, ".4f")])


def register(app: TyperGroup) -> None:
    """Add this group of commands to `app`."""
    for function in (build, show, recall):
        group.add_command(Command(function))
    app.add_command(group)


def _advance(report: Callable[[int, int], None], _: str, done: int, total: int) -> None:
    """Move the bar, in the steps that say how far they are."""
    if total:
        report(done, total)


def _drawn(call: Call, made: IndexReport) -> RenderableType:
    """The report, with the recall as one number and the seconds in one line."""
    values: dict[str, Any] = plain(made)
    values["seconds"] = ", ".join(f"{step} {took:.2f}" for step, took in made.seconds.items())
    measured = values.pop("recall")
    sample = call.draw.count(measured["sample"], "query", "queries")
    values[f"recall@{measured['k']}"] = f"{measured['recall']:.4f} of {sample}"
    drawn: RenderableType = call.draw.pairs(values)
    return drawn
