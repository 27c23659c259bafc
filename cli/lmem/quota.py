"""quota: what tenants use, and what they may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command
from lmem.options import Scoped
from lmem.output import plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import QuotaStatus, QuotaUse

__all__ = ["register"]

_OVER = 1


def quota(
    call: Call,
    scope: Scoped,
    *,
    quotas: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='JSON such as {"default": {"rows": {"soft": 80, "hard": 100}}, "tenants": '
            '{"acme": {"rows": 1000, "calls_a_day": 500}}}; else $LMEM_QUOTAS.',
        ),
    ] = None,
) -> None:
    """What each tenant uses of its quota; exit code 1 where one is above a soft limit, or full.

    Rows, vectors and bytes (of content, metadata, tags, relationships, keys, actors, roles and
    references) are those of memories that are active or pending, expired or not: what is superseded
    or retired takes nothing. Where $LMEM_QUOTAS names such a file, every write of lmem keeps to it.
    """
    call.quotas = quotas or call.quotas
    store = call.open(scope)
    found = [store.quota()] if store.scope else store.quotas()
    over = [one.tenant for one in found if one.over_soft or one.full]
    call.out.show(
        [_told(one) for one in found],
        human=lambda: _drawn(call, found),
        quiet=over or ["within"],
    )
    if over:
        raise typer.Exit(_OVER)


def register(app: TyperGroup) -> None:
    """Add this command to `app`."""
    app.add_command(Command(quota))


def _told(status: QuotaStatus) -> dict[str, object]:
    return {**plain(status), "over_soft": status.over_soft, "full": status.full}


def _drawn(call: Call, found: list[QuotaStatus]) -> RenderableType:
    """Lines below each tenant's name, so that no width cuts a name, a number or a mark."""
    drawn: RenderableType = call.draw.blocks(
        (
            f"{status.tenant or '(none)'}{_mark(status)}",
            [f"{use}{_mark(use)}" for use in status.uses if use.used is not None],
        )
        for status in found
    )
    return drawn


def _mark(one: QuotaStatus | QuotaUse) -> str:
    return ": full" if one.full else ": above a soft limit" if one.over_soft else ""
