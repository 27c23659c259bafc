"""The page: sections as one HTML file that needs nothing beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lance_memory.extras import require
from lance_memory.report.findings import Findings
from lance_memory.report.palette import DARK, LIGHT
from lance_memory.report.section import Section
from lance_memory.report.sections import sections
from lance_memory.report.shown import shown
from lance_memory.report.svg import drawn

__all__ = ["Page", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A report: its HTML, and the titles of the sections with and without something to show."""

    html: str
    shown: tuple[str, ...]
    empty: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """One number of the store."""

    number: str
    what: str


def page(found: Findings) -> Page:
    """The report as one HTML page: no script, nothing to fetch, light and dark, for paper too.

    The same findings make the same page.

    Raises:
        MissingExtraError: Altair, vl-convert or Jinja is not installed (extra `analysis`).
    """
    parts = sections(found)
    html = _template().render(
        found=found,
        title=f"Memory report: {shown(found.uri.rstrip('/').rpartition('/')[2], 60)}",
        place=shown(found.uri, 300),
        scope=shown(str(found.scope), 200) if found.scope else "the whole store",
        at=f"{found.at:%Y-%m-%d %H:%M} UTC",
        tiles=_tiles(found),
        sections=parts,
        drawings=_drawings(parts),
        light=LIGHT.variables(),
        dark=DARK.variables(),
    )
    return Page(
        html=str(html),
        shown=tuple(part.title for part in parts if part.figures),
        empty=tuple(part.title for part in parts if not part.figures),
    )


def _tiles(found: Findings) -> list[_Tile]:
    seen = len(found.visible)
    never = int((found.visible["recalls"] == 0).sum())
    spare = int((found.clusters["size"] - 1).sum() or 0)
    rate = "–" if found.hit_rate is None else f"{found.hit_rate:.0%}"
    return [
        _Tile(number=f"{seen:,}", what="visible memories"),
        _Tile(number=f"{len(found.memories) - seen:,}", what="hidden, and kept"),
        _Tile(number=f"{spare:,}", what="near-duplicates to spare"),
        _Tile(number=f"{found.queries:,}", what="recorded queries"),
        _Tile(number=rate, what="found something"),
        _Tile(number=f"{never:,}" if found.queries else "–", what="never recalled"),
    ]


def _drawings(parts: tuple[Section, ...]) -> dict[str, Any]:
    """The figures' drawings by their place, marked as safe: `svg.drawn` lets only drawing pass."""
    safe = require("markupsafe", "analysis").Markup
    found = {}
    for part in parts:
        for number, one in enumerate(part.figures):
            name = f"{part.name}-{number}"
            both = [("wide", one.wide), ("narrow", one.narrow)]
            found[name] = safe(
                "".join(
                    drawn(chart, prefix=f"{name}-{width}", classes=width)
                    for width, chart in both
                    if chart is not None
                )
            )
    return found


@cache
def _template() -> Any:
    jinja = require("jinja2", "analysis")
    text = (files("lance_memory.report") / "page.html.jinja").read_text(encoding="utf-8")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(text)
