"""migrate, reembed, embed-missing: the present schema, and vectors of the present model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.options import Filters, Gate, Reasoned, Scoped

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import MigrationResult, ReembedPlan, ReembedResult

__all__ = ["register"]


def migrate(call: Call, gate: Gate) -> None:
    """Bring a store of an earlier schema up to date, with its branches.

    Until then it opens, and can only be read. No memory changes; each step is one version.
    """
    from lance_memory import migrate_store

    path, author = call.common.store or "", call.common.author or ""
    options = call.common.storage_options()
    plan = migrate_store(path, dry_run=True, storage_options=options)
    if not plan:
        call.out.note(f"{plan.uri} is up to date")
    agreed = (not plan and not gate.dry_run) or approved(
        call,
        gate,
        plan=plan,
        human=lambda: _steps(call, plan),
        quiet=[f"{step.branch}:{step.number}" for step in plan.steps],
        question="migrate it?",
    )
    if agreed:
        with call.out.progress("migrating"):
            done = migrate_store(path, author=author, storage_options=options)
        call.out.show(
            done,
            human=lambda: _steps(call, done),
            quiet=[step.version for step in done.steps],
        )


def reembed(
    call: Call,
    gate: Reasoned,
    *,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="minilm, sentence-transformers:MODEL, lancedb:KEY[:MODEL], or MODULE:NAME.",
        ),
    ],
    batch_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Texts that the model is given at once.")
    ] = 256,
    keep: Annotated[
        bool, typer.Option(help="Tag the last version with the former vectors.")
    ] = True,
) -> None:
    """Change the embedding model: embed every memory, and switch as one version.

    Interrupted, it goes on where it was. No memory changes. Afterwards, commands that embed need
    --embedder NAME (or $LMEM_EMBEDDER), unless the model is the default one. To go back, name the
    former model: the vectors of the tagged version are taken over.
    """
    from lance_memory import embedder_named

    embedder = embedder_named(model)
    call.embedding = False  # the store's own model is not needed, and may be the one to leave
    store = call.open()
    with call.out.progress("looking for vectors"):
        plan = store.reembed(embedder, batch_size=batch_size, dry_run=True)
    if not plan:
        call.out.note(f"the vectors of {store.uri} are from the model {plan.model} already")
    agreed = (not plan and not gate.dry_run) or approved(
        call,
        gate,
        plan=plan,
        human=lambda: _work(call, plan),
        quiet=[plan.to_embed],
        question=f"re-embed {call.draw.count(plan.rows)}?",
    )
    if not agreed:
        return
    with call.out.progress("embedding") as report:
        done = store.reembed(
            embedder, batch_size=batch_size, keep=keep, progress=report, reason=gate.reason
        )
    if done.index_refused:
        call.out.note(f"no vector index was built, searches are exact: {done.index_refused}")
    call.out.show(done, human=lambda: _done(call, done), quiet=[done.version])


def embed_missing(
    call: Call,
    scope: Scoped,
    filters: Filters,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", min=0, help="At most as many.")
    ] = None,
) -> None:
    """Embed the memories that have no vector, as after an embedder that failed.

    In batches, each a version; interrupted, the next call goes on. `lmem doctor` counts them.
    """
    store = call.open(scope)
    with call.out.progress("embedding"):
        done = store.embed_missing(limit=limit, **filters.where())
    text = f"embedded {done.embedded}, {done.left} left, version {done.version}"
    call.out.show(done, human=lambda: call.draw.line(text), quiet=[done.version])


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for function in (migrate, reembed, embed_missing):
        app.add_command(Command(function))


def _steps(call: Call, found: MigrationResult) -> RenderableType:
    if not found:
        line: RenderableType = call.draw.line(f"schema {found.schema_version}: nothing to do")
        return line
    table: RenderableType = call.draw.rows(
        ["BRANCH", "TO SCHEMA", "VERSION", "WHAT"],
        [(s.branch, s.number, s.version or "-", s.title) for s in found.steps],
        width=call.out.width,
    ).table
    return table


def _work(call: Call, plan: ReembedPlan) -> RenderableType:
    drawn: RenderableType = call.draw.pairs(
        {
            "from": f"{plan.former_model} ({plan.former_dimension} numbers)",
            "to": f"{plan.model} ({plan.dimension} numbers)",
            "memories": plan.rows,
            "contents": plan.contents,
            "made already": plan.made,
            "in a kept version": plan.kept,
            "to embed": plan.to_embed if plan else 0,
        }
    )
    return drawn


def _done(call: Call, done: ReembedResult) -> RenderableType:
    told = {
        "version": done.version,
        "model": f"{done.model} ({done.dimension} numbers)",
        "memories": done.rows,
        "embedded": done.embedded,
        "taken over": done.taken,
        "index": ", ".join(done.indices) or "none: searches are exact",
    }
    if done.tag:
        told["former vectors"] = f"version {done.former_version}, tag {done.tag}"
    drawn: RenderableType = call.draw.pairs(told)
    return drawn
