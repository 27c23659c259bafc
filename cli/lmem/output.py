"""The one sink: data on stdout in the format asked for, everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = ["Format", "Output", "clean", "complain", "plain"]

_LONGEST_MESSAGE = 700
_NARROWEST = 20  # columns; in fewer there is room for nothing
_USUAL = 80


class Format(StrEnum):
    """How the answer is written."""

    HUMAN = "human"
    JSON = "json"
    JSONL = "jsonl"
    QUIET = "quiet"


@dataclass(frozen=True, slots=True)
class Output:
    """Where the answers of one command go."""

    format: Format

    @property
    def is_human(self) -> bool:
        return self.format is Format.HUMAN

    def show(
        self,
        data: Any,
        *,
        human: Callable[[], RenderableType],
        quiet: Iterable[object],
        lines: Iterable[Any] | None = None,
    ) -> None:
        """The command's answer.

        Args:
            data: what "json" prints.
            lines: what "jsonl" prints, a line each; by default the items of a list, or `data`.
            human: makes what "human" prints; called in that format only.
            quiet: what "quiet" prints, a line each: ids, or a version number.

        Warnings that the data has are told beside it.
        """
        for warning in getattr(data, "warnings", ()):
            self.note(f"warning: {warning}")
        if self.format is Format.HUMAN:
            _draw(human(), sys.stdout)
        elif self.format is Format.JSON:
            print(json.dumps(plain(data), ensure_ascii=False, indent=2))
        elif self.format is Format.JSONL:
            for item in _items(data) if lines is None else lines:
                print(json.dumps(plain(item), ensure_ascii=False))
        else:
            for line in quiet:
                print(clean(str(line)))

    @property
    def width(self) -> int:
        """Columns of what the answer is drawn on."""
        return _page(sys.stdout).width

    def preview(self, human: Callable[[], RenderableType]) -> None:
        """A plan that is about to be carried out, for the person who confirms it."""
        _draw(human(), sys.stderr)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[..., None] | None]:
        """While something takes its time; yields something to call with (done, in all, what of).

        A terminal shows a spinner, and how far it is once that was told; None where nobody looks.
        Not around a question: it would be drawn over.
        """
        if not sys.stderr.isatty() or not self.is_human:
            yield None
            return
        console = _console(sys.stderr)
        if console.is_dumb_terminal:
            yield None
            return
        from lmem.bar import shown

        with shown(what, console) as told:
            yield told

    def note(self, message: str) -> None:
        """Something worth knowing that is not the answer."""
        if self.format is not Format.QUIET:
            complain(message, label="")


def complain(message: str, *, label: str = "error: ") -> None:
    """One line on stderr."""
    line = " ".join(clean(message).split())
    half = _LONGEST_MESSAGE // 2
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:half]} ... {line[-half:]}"
    print(f"{label}{line}", file=sys.stderr)


def clean(text: str) -> str:
    """`text` without what would steer the terminal: control characters are written out."""
    steering = (c for c in set(text) if not c.isprintable() and c not in "\n\t")
    return text.translate({ord(c): _written_out(c) for c in steering})


def plain(value: Any, *, embedding: bool = False) -> Any:
    """`value` as JSON values; memories without their embedding, unless asked for."""
    if value is None or isinstance(value, bool | int | str | float | date | timedelta):
        return _scalar(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = [f.name for f in fields(value) if embedding or f.name != "embedding"]
        return {name: plain(getattr(value, name), embedding=embedding) for name in names}
    if isinstance(value, Mapping):
        return {str(key): plain(item, embedding=embedding) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, embedding=embedding) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.value if isinstance(value, Enum) else value


def _items(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [data]


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode() if not character.isspace() else " "


def _draw(what: RenderableType, stream: TextIO) -> None:
    """Print, without the blanks that tables end their lines with."""
    console = _page(stream)
    with console.capture() as drawn:
        console.print(what)
    stream.writelines(f"{line.rstrip()}\n" for line in drawn.get().splitlines())


def _page(stream: TextIO) -> Console:
    """What answers are drawn on: wide enough to read, whatever a terminal says that it is."""
    console = _console(stream)
    if console.width < _NARROWEST:  # 0 of one that does not know it
        console.width = _NARROWEST if console.width else _USUAL
    return console


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(file=stream, markup=False, emoji=False, highlight=False)
