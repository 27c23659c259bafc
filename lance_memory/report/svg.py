"""Charts as SVG that is part of a page: static, in the page's colours, and nothing but drawing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lance_memory.errors import InvalidInputError
from lance_memory.extras import require
from lance_memory.report.palette import LIGHT

if TYPE_CHECKING:
    from lance_memory.report.charts.style import Chart

__all__ = ["drawn"]

_SPACE = "{http://www.w3.org/2000/svg}"
_KEPT = {
    "svg": {"viewBox"},
    "g": {"transform", "opacity", "clip-path"},
    "path": {"d", "transform"},
    "rect": {"x", "y", "width", "height", "transform"},
    "line": {"x1", "y1", "x2", "y2", "transform"},
    "circle": {"cx", "cy", "r", "transform"},
    "text": {"x", "y", "transform", "text-anchor", "font-size", "font-weight", "dx", "dy"},
    "tspan": {"x", "y", "dx", "dy"},
    "defs": set[str](),
    "clipPath": {"id"},
}
"""What is taken of a drawing: elements, and their attributes beside those of `_PAINT`."""

_PAINT = {"fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity"}
_PAINT |= {"stroke-opacity", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"}
_BLACK = {"#000", "#000000", "black"}
_CLIP = re.compile(r"url\(#([\w-]+)\)")
_STRETCH = 1.25
"""How much larger than it was drawn a wide card shows it: letters of 12 pixels become 15, which is
no more than those around them."""
_NUMBER = re.compile(r"\d+\.\d{3,}")


def drawn(chart: Chart, *, prefix: str, classes: str = "") -> str:
    """The chart as one `svg` element, without a script, a link, a font or a size of its own.

    Args:
        chart: with the colours of `palette.LIGHT`, which become the page's variables.
        prefix: of the ids in it, so that drawings of one page do not mix them up.
        classes: of the element.

    Raises:
        MissingExtraError: vl-convert is not installed (extra `analysis`).
        InvalidInputError: the drawing has a colour that the page cannot turn over.
    """
    convert = require("vl_convert", "analysis")
    altair = require("altair", "analysis")
    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = version in convert.get_vegalite_versions()
    text = convert.vegalite_to_svg(
        chart.to_dict(validate=False),  # its parts were checked as they were made
        vl_version=version if known else None,
        allowed_base_urls=[],  # it is to read nothing
    )
    root = _clean(ET.fromstring(text), prefix)  # noqa: S314 (our own drawing, of our own frame)
    width = float(root.get("viewBox", "0 0 0 0").split()[2])
    root.set("style", f"max-width: {width * _STRETCH:.0f}px")
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    if classes:
        root.set("class", classes)
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, prefix: str) -> ET.Element:
    tag = element.tag.removeprefix(_SPACE)
    if tag not in _KEPT:
        raise InvalidInputError(f"a chart was drawn with <{tag}>, which a page does not take")
    fresh = ET.Element(tag)
    fresh.text = element.text if tag in ("text", "tspan") else None
    for name, value in element.attrib.items():
        if name in _PAINT:
            fresh.set(name, _colour(value) if name in ("fill", "stroke") else value)
        elif name == "id" and tag == "clipPath":
            fresh.set(name, f"{prefix}-{value}")
        elif name == "clip-path":
            fresh.set(name, _CLIP.sub(rf"url(#{prefix}-\1)", value))
        elif name in _KEPT[tag]:
            fresh.set(name, _NUMBER.sub(_rounded, value))
    fresh.extend(_clean(child, prefix) for child in _seen(element))
    return fresh


def _seen(element: ET.Element) -> Iterator[ET.Element]:
    """The children that draw something."""
    for child in element:
        tag, hidden = child.tag.removeprefix(_SPACE), child.get("display") == "none"
        empty = tag == "path" and child.get("d", "") in ("", "M0,0h0v0h0Z")
        unpainted = child.get("class") in ("background", "foreground") and not (
            child.get("stroke") or child.get("fill")
        )
        if not hidden and not empty and not unpainted and (tag != "g" or any(child.iter("*"))):
            yield child


def _colour(value: str) -> str:
    """The page's variable for a colour of the palette."""
    plain = value.lower()
    variables = {colour: name for name, colour in LIGHT.variables().items()}
    if plain in variables:
        return f"var({variables[plain]})"
    if plain in _BLACK:
        return "var(--ink)"
    if plain in ("none", "transparent"):
        return plain
    raise InvalidInputError(
        f"a chart has the colour {value!r}, which is not in the palette: it would not change with "
        "the page's colour scheme"
    )


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
