"""The options that commands share, as small frozen values.

A command function takes such a value as one parameter; `command` turns its fields into options.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from lmem.output import Format

if TYPE_CHECKING:
    from lance_memory import MemoryView, Where

__all__ = [
    "QUOTAS",
    "STORAGE_OPTIONS",
    "At",
    "Common",
    "Filters",
    "Gate",
    "Given",
    "Reason",
    "Reasoned",
    "Scoped",
    "Tried",
    "age",
    "duration",
    "instant",
    "json_or_text",
    "members",
    "text_given",
    "version_or_tag",
    "when",
]

QUOTAS = "LMEM_QUOTAS"
STORAGE_OPTIONS = "LMEM_STORAGE_OPTIONS"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DIGITS = 18
_TIME = "ISO 8601; no zone means UTC."

Name: TypeAlias = str | None
Names: TypeAlias = list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Where the store is, and how to answer; taken before and after the command."""

    store: Annotated[
        Name,
        typer.Option(
            metavar="PATH", help="Directory or URI of the store; else $LMEM_STORE, else ./memory."
        ),
    ] = None
    storage_option: Annotated[
        Names,
        typer.Option(
            metavar="KEY=VALUE",
            help="For a store in an object store; repeatable. Secrets: $LMEM_STORAGE_OPTIONS.",
        ),
    ] = None
    format: Annotated[Format | None, typer.Option(help="How to answer; else human.")] = None
    branch: Annotated[
        Name, typer.Option(metavar="NAME", help="Line of versions to work on; else main.")
    ] = None
    author: Annotated[
        Name, typer.Option(metavar="NAME", help="Who writes, for the log; else $LMEM_AUTHOR.")
    ] = None
    embedder: Annotated[
        Name,
        typer.Option(
            metavar="NAME",
            help="What embeds, of the store's model; else $LMEM_EMBEDDER, else minilm.",
        ),
    ] = None
    ledger: Annotated[
        Name,
        typer.Option(
            metavar="PATH|URL",
            help="Where jobs and counters are; else $LMEM_LEDGER, else in the store.",
        ),
    ] = None
    durability: Annotated[
        Name,
        typer.Option(
            metavar="process|power",
            help="What a write survives; else $LMEM_DURABILITY, else process.",
        ),
    ] = None

    def over(self, outer: Common) -> Common:
        """These options, and those of `outer` where they are not given here."""
        pairs = {f.name: (getattr(self, f.name), getattr(outer, f.name)) for f in fields(self)}
        return Common(**{name: o if own is None else own for name, (own, o) in pairs.items()})

    def storage_options(self) -> dict[str, str] | None:
        """What opens an object store: those of the environment, and over them those given here.

        Failures never show a value: it may be a secret.
        """
        found = _of_environment()
        for number, pair in enumerate(self.storage_option or (), start=1):
            name, mark, value = pair.partition("=")
            if not mark or not name:
                raise typer.BadParameter(f"--storage-option number {number} is not KEY=VALUE")
            found[name] = value
        return found or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoped:
    """Whose memories; a boundary that nothing crosses."""

    tenant: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this tenant.")] = None
    user: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this user.")] = None
    agent: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this agent.")] = None
    session: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this session.")] = None
    run: Annotated[Name, typer.Option(metavar="NAME", help="Keep to this run.")] = None

    def given(self) -> dict[str, str]:
        """The levels that were named."""
        return _present(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which memories; all that are given must hold."""

    kind: Annotated[
        Names,
        typer.Option("--kind", "--kinds", help="working, episodic, semantic, ...; repeatable."),
    ] = None
    state: Annotated[
        Names,
        typer.Option("--state", "--states", help='A state, or "any".'),
    ] = None
    tag: Annotated[Names, typer.Option("--tag", help="Has this tag; repeat for all of.")] = None
    metadata: Annotated[
        Names,
        typer.Option(metavar="KEY=JSON", help="Metadata member equals; no JSON means text."),
    ] = None
    actor: Annotated[Name, typer.Option(help="Said by.")] = None
    role: Annotated[Name, typer.Option(help="Role of the actor.")] = None
    source: Annotated[Name, typer.Option(help="Where it came from.")] = None
    key: Annotated[Name, typer.Option(help="Has this key.")] = None
    since: Annotated[Name, typer.Option(metavar="TIME", help=f"From then on. {_TIME}")] = None
    until: Annotated[Name, typer.Option(metavar="TIME", help=f"Before then. {_TIME}")] = None
    valid_at: Annotated[Name, typer.Option(metavar="TIME", help=f"True then. {_TIME}")] = None
    min_importance: Annotated[float | None, typer.Option(help="Matters at least so, 0..1.")] = None
    min_quality: Annotated[float | None, typer.Option(help="Rated at least so, 0..1.")] = None

    def where(self) -> Where:
        """As the keywords of the library."""
        values = _present(self)
        renamed: Any = {
            {"kind": "kinds", "state": "states", "tag": "tags"}.get(name, name): value
            for name, value in _parsed(values, ("since", "until", "valid_at")).items()
        }
        states = renamed.get("states", [])
        if len(states) == 1 or "any" in states:
            renamed["states"] = "any" if "any" in states else states[0]
        return renamed  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a write says of a memory beside its content."""

    kind: Annotated[Name, typer.Option(help="working, episodic, semantic, ...")] = None
    role: Annotated[Name, typer.Option(help="Role of the actor.")] = None
    actor: Annotated[Name, typer.Option(help="Said by.")] = None
    tag: Annotated[Names, typer.Option("--tag", help="Repeatable.")] = None
    metadata: Annotated[
        Names, typer.Option(metavar="KEY=JSON", help="Repeatable; no JSON means text.")
    ] = None
    importance: Annotated[float | None, typer.Option(help="0..1")] = None
    confidence: Annotated[float | None, typer.Option(help="0..1")] = None
    quality: Annotated[float | None, typer.Option(help="0..1")] = None
    event_at: Annotated[Name, typer.Option(metavar="TIME", help=f"When it happened. {_TIME}")] = (
        None
    )
    valid_from: Annotated[Name, typer.Option(metavar="TIME", help="True from then on.")] = None
    valid_to: Annotated[Name, typer.Option(metavar="TIME", help="True until then.")] = None
    expires_at: Annotated[Name, typer.Option(metavar="TIME", help="Hidden from then on.")] = None
    seq: Annotated[int | None, typer.Option(help="Place in its session.")] = None
    source: Annotated[Name, typer.Option(help="Where it came from.")] = None
    source_ref: Annotated[Name, typer.Option(help="Where exactly.")] = None

    def fields(self) -> Any:
        """As the library's keywords."""
        times = ("event_at", "valid_from", "valid_to", "expires_at")
        values = _parsed(_present(self), times)
        return {{"tag": "tags"}.get(name, name): value for name, value in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """Which past to read."""

    at: Annotated[
        Name,
        typer.Option(metavar="VERSION|TAG|TIME", help="Read the store as it was then."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What stands between a plan and carrying it out."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why, for the log."""

    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the log shows it.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Reason):
    """A write that can be undone as it was done, so it is not asked about: shown first, or done."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoned(Gate):
    """A gate for a write that the log gives the reason of."""

    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; the log shows it.")] = ""


def _of_environment() -> dict[str, str]:
    text = os.environ.get(STORAGE_OPTIONS, "")
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise typer.BadParameter(
            f'${STORAGE_OPTIONS} is no JSON object of texts; write {{"aws_region": "...", ...}}'
        )
    return found


def instant(text: str, name: str) -> datetime:
    """An ISO 8601 time; without a zone it is UTC."""
    try:
        value = datetime.fromisoformat(text.strip())
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{name} {text!r} is no time; write one like 2025-01-31 or 2025-01-31T12:00:00+01:00"
        ) from None


def duration(text: str, name: str) -> timedelta:
    """A number and a unit: 90s, 30m, 12h, 1d, 2w."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw])", text.strip())
    try:
        if found:
            return timedelta(**{_UNITS[found[2]]: float(found[1])})
    except OverflowError:
        pass
    raise typer.BadParameter(f"{name} {text!r} is no duration; write one like 90s, 12h, 1d or 2w")


def age(text: str, name: str) -> timedelta:
    """A duration that is longer than nothing."""
    length = duration(text, name)
    if not length:
        raise typer.BadParameter(f"{name} {text!r} is no age; write 12h or 30d")
    return length


def members(pairs: list[str]) -> dict[str, Any]:
    """KEY=JSON pairs as a mapping; a value that is no JSON is a text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, mark, value = pair.partition("=")
        if not mark or not name:
            raise typer.BadParameter(f"--metadata {pair!r} is not KEY=VALUE")
        found[name] = json_or_text(value)
    return found


def text_given(text: str) -> str:
    """`text`, or what stdin holds where it is "-"."""
    if text != "-":
        return text
    import sys

    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"stdin is not UTF-8 ({error})") from error


def version_or_tag(text: str) -> str:
    """`text`, unless it has more digits than any version."""
    if text.isdecimal() and len(text) > _DIGITS:
        raise typer.BadParameter(f"{text[:_DIGITS]}... is no version")
    return text


def when(text: str, view: MemoryView) -> str | datetime:
    """A version, a tag, or a time, as the library takes them."""
    if version_or_tag(text).isdecimal() or text in view.tags():
        return text
    try:
        return instant(text, "time")
    except typer.BadParameter:
        return text


def _present(group: Any) -> dict[str, Any]:
    values = {field.name: getattr(group, field.name) for field in fields(group)}
    return {name: value for name, value in values.items() if value is not None}


def _parsed(values: dict[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    """The values with their times and metadata read."""
    for name in values.keys() & set(times):
        values[name] = instant(values[name], "--" + name.replace("_", "-"))
    if "metadata" in values:
        values["metadata"] = members(values["metadata"])
    return values


def json_or_text(value: str) -> Any:
    """A JSON value; what is no JSON is a text."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
