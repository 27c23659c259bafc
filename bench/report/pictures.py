"""Pictures as Vega-Lite specifications, and their drawing as SVG.

A specification is plain data, so it is made and compared without a library; only drawing needs
vl-convert (extra `bench`). A drawn file carries the digest of its specification: a picture that is
not of today's lines is seen without drawing it again. Colours are of middle lightness on no
background, so that they can be read on white and on black.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report.section import Picture

INK = "#7a828e"
FAINT = "#7a828e44"
COLOURS = ("#3b82d0", "#e0862f", "#2fa36b", "#a06bd6", "#d9534f", "#8a8f98")
AXIS = {"labelColor": INK, "titleColor": INK, "gridColor": FAINT, "domainColor": INK}
CONFIG = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {**AXIS, "tickColor": INK, "titleFontWeight": "normal"},
    "legend": {"labelColor": INK, "titleColor": INK, "labelLimit": 320},
    "header": {"labelColor": INK, "titleColor": INK},
    "title": {"color": INK, "fontWeight": "normal"},
    "range": {"category": list(COLOURS)},
}
SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Row = Mapping[str, Any]


def axis(name: str, title: str, *, log: bool = False, low: float | None = None) -> dict[str, Any]:
    """A number along an axis; without `low` the axis need not begin at zero."""
    scale = {"type": "log"} if log else {"zero": False}
    if low is not None:
        scale = {**scale, "domainMin": low}
    return {"field": name, "type": "quantitative", "title": title, "scale": scale}


def curves(
    name: str,
    about: str,
    rows: Iterable[Row],
    *,
    x: Row,
    y: Row,
    by: str,
    marks: Sequence[Row] = (),
) -> Picture:
    """A line with points for each value of `by`; `marks` are rules across, with a `value` of y."""
    rows = list(rows)
    order = list(dict.fromkeys(row[by] for row in rows))
    colour = {"field": by, "type": "nominal", "title": None, "sort": order, "scale": {}}
    colour["scale"] = {"domain": order, "range": [COLOURS[i % 6] for i in range(len(order))]}
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "point": True, "strokeWidth": 2},
            "encoding": {"x": x, "y": y, "color": colour},
        }
    ]
    layers += [
        {
            "data": {"values": [mark]},
            "mark": {"type": "rule", "color": INK, "strokeDash": [4, 4]},
            "encoding": {"y": {"field": "value", "type": "quantitative"}},
        }
        for mark in marks
    ]
    spec = {"$schema": SCHEMA, "config": CONFIG, "width": 480, "height": 260, "layer": layers}
    return Picture(name=name, about=about, spec=spec)


def panels(
    name: str, about: str, rows: Iterable[Row], *, x: Row, y: Row, by: str, panel: str
) -> Picture:
    """Small pictures in two columns, one for each value of `panel`, each with a legend of its own."""
    by_panel: dict[str, list[Row]] = {}
    for row in rows:
        by_panel.setdefault(row[panel], []).append(row)
    spec = {
        "$schema": SCHEMA,
        "config": CONFIG,
        "columns": 2,
        "resolve": {"scale": {"color": "independent"}},
        "concat": [
            {
                "title": title,
                "data": {"values": some},
                "width": 240,
                "height": 160,
                "mark": {"type": "line", "point": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {"field": by, "type": "nominal", "title": None, "sort": None},
                },
            }
            for title, some in by_panel.items()
        ],
    }
    return Picture(name=name, about=about, spec=spec)


def bars(name: str, about: str, rows: Iterable[Row], *, x: Row, y: str, by: str) -> Picture:
    """Bars that lie, in the order of the rows, each with its figure; x begins at its `domainMin`."""
    rows = list(rows)
    order = list(dict.fromkeys(row[y] for row in rows))
    place = {"field": y, "type": "nominal", "title": None, "sort": order}
    low = x["scale"].get("domainMin", 0)
    bar = {
        "mark": {"type": "bar", "height": {"band": 0.7}},
        "encoding": {
            "x": x,
            "x2": {"datum": low},
            "y": place,
            "color": {"field": by, "type": "nominal", "title": None, "sort": None},
        },
    }
    text = {
        "mark": {"type": "text", "align": "left", "dx": 4, "color": INK},
        "encoding": {"x": x, "y": place, "text": {"field": x["field"]}},
    }
    spec = {
        "$schema": SCHEMA,
        "config": CONFIG,
        "data": {"values": rows},
        "width": 420,
        "height": {"step": 24},
        "layer": [bar, text],
    }
    return Picture(name=name, about=about, spec=spec)


def digest(picture: Picture) -> str:
    """Of the specification, SHA-256 as hexadecimal digits."""
    told = json.dumps(picture.spec, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(told.encode()).hexdigest()


def mark(picture: Picture) -> str:
    """The last line of a drawn file."""
    return f"<!-- specification {digest(picture)} -->\n"


def is_drawn(picture: Picture, folder: Path) -> bool:
    """Whether the file is there, and of this specification."""
    path = folder / f"{picture.name}.svg"
    return path.exists() and path.read_text(encoding="utf-8").endswith(mark(picture))


def draw(picture: Picture, folder: Path) -> Path:
    """Write the file. Raises `ModuleNotFoundError` without vl-convert."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(dict(picture.spec), vl_version="5.20")
    path = folder / f"{picture.name}.svg"
    path.write_text(f"{drawn.rstrip()}\n{mark(picture)}", encoding="utf-8")
    return path
