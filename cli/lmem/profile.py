"""profile: what is known of somebody, a value under each key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, Group, approved
from lmem.options import Reasoned, Scoped, json_or_text, text_given

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Fact, ProfileMemory

__all__ = ["register"]

_LONGEST = 30

Key = Annotated[str, typer.Argument(metavar="KEY", help="Name of the fact.")]
Expected = Annotated[
    int | None,
    typer.Option(
        "--expect",
        "--expected-version",
        metavar="N",
        min=0,
        help="Only where version N of it stands; 0: none.",
    ),
]

group = Group(
    "profile",
    help="Facts about a user, a value under each key: look at them, set them, remove them.",
)


def list_facts(call: Call, scope: Scoped) -> None:
    """List the facts of a scope, and of all within it, by key."""
    found = _layer(call, scope).all()
    if not found:
        call.out.note("nothing is known")
    _listed(call, found)


def show(call: Call, key: Key, scope: Scoped) -> None:
    """Show one fact."""
    _shown(call, _layer(call, scope).get(key))


def set_fact(
    call: Call,
    key: Key,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help='JSON, else a text; "-" reads stdin.')
    ],
    scope: Scoped,
    *,
    confidence: Annotated[float, typer.Option(help="0..1")] = 1.0,
    expected_version: Expected = None,
) -> None:
    """Say what is so from now on; a different value supersedes the one that was.

    5 is a number, '"5"' a text. The same value again only raises the confidence.
    """
    stated = json_or_text(text_given(value))
    layer = _layer(call, scope, create=True)
    made = layer.set(key, stated, confidence=confidence, expected_version=expected_version)
    _shown(call, made)


def remove(
    call: Call, key: Key, scope: Scoped, gate: Reasoned, *, expected_version: Expected = None
) -> None:
    """Retire a fact; `lmem unretire` brings it back, and its history stays."""
    layer = _layer(call, scope)
    found = layer.get(key)
    if not approved(
        call,
        gate,
        plan=[found],
        human=lambda: _drawn(call, found),
        quiet=[found.id],
        question="remove it?",
    ):
        return
    version = found.version if expected_version is None else expected_version
    result = layer.remove(key, expected_version=version, reason=gate.reason)
    call.out.show(result, human=lambda: call.draw.written(result), quiet=result.ids)


def history(call: Call, key: Key, scope: Scoped) -> None:
    """Show the values that a fact had, the first one first."""
    _listed(call, _layer(call, scope).history(key), past=True)


def register(app: TyperGroup) -> None:
    """Add this group of commands to `app`."""
    for name, function in (
        ("list", list_facts),
        ("show", show),
        ("set", set_fact),
        ("remove", remove),
        ("history", history),
    ):
        group.add_command(Command(function, name))
    app.add_command(group)


def _layer(call: Call, scope: Scoped, *, create: bool = False) -> ProfileMemory:
    from lance_memory import ProfileMemory

    return ProfileMemory(call.open(scope, create=create))


def _shown(call: Call, fact: Fact) -> None:
    call.out.show(fact, human=lambda: _drawn(call, fact), quiet=[fact.id])


def _listed(call: Call, found: Sequence[Fact], *, past: bool = False) -> None:
    call.out.show(
        list(found),
        human=lambda: _table(call, found, past=past),
        quiet=[fact.id for fact in found],
    )


def _drawn(call: Call, fact: Fact) -> RenderableType:
    drawn: RenderableType = call.draw.pairs(
        {
            "fact": fact.fact_key,
            "value": _value(fact.value),
            "confidence": f"{fact.confidence:.2f}",
            "version": fact.version,
            "state": fact.state,
            "scope": str(fact.scope),
            "updated at": fact.updated_at,
            "id": fact.id,
        }
    )
    return drawn


def _table(call: Call, found: Sequence[Fact], *, past: bool) -> RenderableType:
    if not found:
        return call.draw.line("")  # type: ignore[no-any-return]
    key = [_cut(f.fact_key) for f in found]
    columns = {
        "VERSION" if past else "FACT": [str(f.version) for f in found] if past else key,
        "STATE" if past else "USER": [str(f.state) if past else f.scope.user[:12] for f in found],
        "UPDATED": [f"{f.updated_at:%Y-%m-%d}" for f in found],
        "SURE": [f"{f.confidence:.2f}" for f in found],
    }
    values = [_value(f.value) for f in found]
    return call.draw.beside(columns, values, width=call.out.width)  # type: ignore[no-any-return]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _value(value: Any) -> str:
    """As JSON, so that a text is told from a number."""
    return json.dumps(value, ensure_ascii=False)
