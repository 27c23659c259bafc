"""What a part of the page is: a question of a reader, what answers it, and what the summary says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.report.lines import Line
from bench.report.words import NONE, bar, yes


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A row of the summary. `line` is where its figure comes from."""

    what: str
    figure: str
    line: Line
    bar: str = NONE
    met: bool | None = None

    def row(self) -> tuple[str, str, str, str, str]:
        return self.what, self.figure, self.bar, yes(self.met), self.line.link

    @classmethod
    def of(cls, line: Line | None, what: str, figure: str) -> tuple[Claim, ...]:
        """With the bar that the line itself has; nothing where there is no line."""
        if line is None:
            return ()
        return (cls(what=what, figure=figure, line=line, bar=bar(line), met=line.get("met")),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A Vega-Lite specification under the name of its file, without the ending."""

    name: str
    about: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, the texts, tables and pictures under it, and what of it the summary says."""

    title: str
    blocks: tuple[str | Picture, ...]
    claims: tuple[Claim, ...] = ()

    @property
    def pictures(self) -> tuple[Picture, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Picture))
