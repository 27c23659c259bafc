"""get, list, search, related, stats, sql: the reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.names import resolved
from lmem.options import At, Filters, Scoped, text_given
from lmem.output import plain
from lmem.ranked import Ranked
from lmem.usage import recorded

if TYPE_CHECKING:
    from polars import DataFrame
    from rich.console import RenderableType

    from lance_memory import Memory, MemoryView
    from lmem.render import Shown

__all__ = ["register"]

Ref = Annotated[
    str, typer.Argument(help="Id, key, unambiguous beginning of an id, or ..end of one.")
]
WithEmbedding = Annotated[
    bool, typer.Option("--with-embedding", help="Embeddings too, in json and jsonl.")
]


def get(
    call: Call, ref: Ref, scope: Scoped, at: At, *, with_embedding: WithEmbedding = False
) -> None:
    """Show one memory, in whatever state."""
    view = call.view(scope, at.at)
    found = view.get(resolved(view, ref))
    call.out.show(
        plain(found, embedding=with_embedding),
        human=lambda: call.draw.record(found),
        quiet=[found.id],
    )


def list_(
    call: Call,
    scope: Scoped,
    filters: Filters,
    at: At,
    *,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="At most as many.")] = None,
    offset: Annotated[int, typer.Option(help="Skip as many.")] = 0,
    newest_first: Annotated[
        bool, typer.Option("--newest-first", help="The newest first, instead.")
    ] = False,
    with_embedding: WithEmbedding = False,
) -> None:
    """List memories, oldest first.

    Visible ones only, unless --state says otherwise.
    """
    view = call.view(scope, at.at)
    where = filters.where()
    found = view.list(limit=limit, offset=offset, newest_first=newest_first, **where)
    if not found:
        call.out.note("nothing found")
    if with_embedding:
        found = _embedded(view, found)
    call.out.show(
        [plain(m, embedding=with_embedding) for m in found],
        human=lambda: call.draw.memories(found, call.names(found), width=call.out.width),
        quiet=[m.id for m in found],
    )


def search(
    call: Call,
    query: Annotated[str, typer.Argument(help='The question, as asked; "-" reads stdin.')],
    scope: Scoped,
    filters: Filters,
    at: At,
    *,
    ranked: Ranked,
    k: Annotated[
        int, typer.Option("--k", "-k", "--limit", "-n", help="At most as many hits.")
    ] = 10,
    offset: Annotated[int, typer.Option(help="Skip as many hits.")] = 0,
    mode: Annotated[str, typer.Option(help="hybrid, vector or text.")] = "hybrid",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what the score is made from.")
    ] = False,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            envvar="LMEM_RECORD_QUERIES",
            help="Write down, redacted, which memories answered; `lmem queries` lists it.",
        ),
    ] = False,
) -> None:
    """Recall by meaning, words, or both; best first.

    A score is relative to the other hits of the same search: 1 is the best of them, and says
    nothing of how near that is. What does is the cosine (cos) beside it, where the hit was found by
    meaning. --explain shows all: the cosine, BM25 of the words, and what was added for neighbours,
    the named actor and the named date.
    """
    call.recording = record
    view = call.view(scope, at.at)
    asked = text_given(query)
    ranking = ranked.ranking(view)
    result = view.search(asked, k=k, offset=offset, mode=mode, ranking=ranking, **filters.where())
    for leg, reason in result.degraded.items():
        call.out.note(f"note: answered without {leg}: {reason}")
    if not result.hits:
        call.out.note("nothing found")
    call.out.show(
        result,
        lines=result.hits,
        human=lambda: call.draw.hits(
            result, call.names([hit.memory for hit in result]), explain=explain
        ),
        quiet=[hit.memory.id for hit in result],
    )
    if record:
        recorded(call, view)


def related(
    call: Call,
    ref: Ref,
    scope: Scoped,
    at: At,
    *,
    relation: Annotated[
        str | None, typer.Option(help="Only these edges: consolidates, updates, ...")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=1000, help="Edges to walk at most.")] = 1,
) -> None:
    """Show what a memory came from, and what took its place."""
    view = call.view(scope, at.at)
    found = view.related(resolved(view, ref), relation=relation, depth=depth)
    call.out.show(
        found,
        human=lambda: call.draw.related(found, call.names([r.memory for r in found])),
        quiet=[r.memory.id for r in found],
    )


def stats(call: Call, scope: Scoped, at: At) -> None:
    """The store in numbers."""
    from lmem import drawn

    found = call.view(scope, at.at).stats()
    call.out.show(
        found,
        human=lambda: drawn.stats(found),
        quiet=[found.visible],
    )


def sql(
    call: Call,
    query: Annotated[str, typer.Argument(help='A SELECT over `memories`; "-" reads stdin.')],
    scope: Scoped,
    at: At,
    *,
    with_embedding: WithEmbedding = False,
) -> None:
    """Ask anything of the table `memories`, every state.

    Some names of columns are words of SQL, and stand in quotes:

    lmem sql 'select "user", count(*) as n from memories group by "user"'
    """
    frame = call.view(scope, at.at).sql(text_given(query))
    if "embedding" in frame.columns and not with_embedding:
        frame = frame.drop("embedding")
    call.out.show(
        frame.to_dicts(),
        human=lambda: _fitting(call, frame),
        quiet=["\t".join(map(str, row)) for row in frame.rows()],
    )


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for name, function in (
        ("get", get),
        ("list", list_),
        ("search", search),
        ("related", related),
        ("stats", stats),
        ("sql", sql),
    ):
        app.add_command(Command(function, name))


def _embedded(view: MemoryView, found: list[Memory]) -> list[Memory]:
    rows = view.to_arrow(columns=["id", "embedding"]).to_pylist()
    vectors = {row["id"]: row["embedding"] for row in rows}
    return [replace(m, embedding=vectors[m.id]) for m in found]


def _fitting(call: Call, frame: DataFrame) -> RenderableType:
    shown: Shown = call.draw.rows(frame.columns, frame.rows(), width=call.out.width)
    if shown.left_out:
        call.out.note(
            f"{call.draw.count(shown.left_out, 'column does', 'columns do')} not fit, of "
            f"{len(frame.columns)}; name fewer, or use --format json"
        )
    return shown.table
