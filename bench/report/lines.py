"""Recorded measurements: JSON lines with the file and place they stand in, and who has read them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measurement. `file` is the name without its ending, `number` counts from 1."""

    file: str
    number: int
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.values.get(name, default)

    @property
    def bench(self) -> str:
        return str(self.values["bench"])

    @property
    def link(self) -> str:
        """Markdown that leads to the line, from beside the folder `results`."""
        return f"[{self.file}:{self.number}](results/{self.file}.jsonl#L{self.number})"


@dataclass(slots=True)
class Lines:
    """All recorded lines. It keeps which ones were asked for, so that none is left out unseen."""

    found: tuple[Line, ...]
    read: set[tuple[str, int]] = field(default_factory=set)

    def of(self, file: str, bench: str = "", /, **values: Any) -> list[Line]:
        """Those of a file whose bench begins so and whose fields have these values."""
        chosen = [
            line
            for line in self.found
            if line.file == file
            and line.bench.startswith(bench)
            and all(line.get(name) == value for name, value in values.items())
        ]
        self.read.update((line.file, line.number) for line in chosen)
        return chosen

    def one(self, file: str, bench: str, /, **values: Any) -> Line | None:
        """The last of them that has exactly this bench: a later line stands for an earlier one."""
        chosen = self.of(file, bench, **values)
        return next((line for line in reversed(chosen) if line.bench == bench), None)

    def unread(self) -> list[Line]:
        """What nobody has asked for."""
        return [line for line in self.found if (line.file, line.number) not in self.read]


def recorded(folder: Path) -> Lines:
    """All lines of all `*.jsonl` of a folder, by name and in order."""
    return Lines(tuple(line for path in sorted(folder.glob("*.jsonl")) for line in _of(path)))


def _of(path: Path) -> Iterator[Line]:
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        yield Line(file=path.stem, number=number, values=json.loads(text))
