"""What a notebook shows: small pieces of HTML, in the notebook's own colours.

Everything that a memory says is data here: it is escaped, and isolated from the direction of the
text around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

__all__ = ["Markup", "Told", "lines", "listing", "mark", "pairs", "table"]


class Told:
    """A value whose `str` is what a person reads; a notebook shows it as it stands."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return lines(str(self))


class Markup(str):
    """A text that is HTML already; any other text is escaped."""

    __slots__ = ()


def mark(text: str, tag: str, style: str = "") -> Markup:
    """The text within an element, such as "del" or "strong"."""
    styled = f' style="{style}"' if style else ""
    return Markup(f"<{tag}{styled}>{_cell(text)}</{tag}>")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "") -> Markup:
    """Rows under a head; None is an empty cell."""
    shown = "".join(f"<th>{_cell(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(v)}</td>' for v in row)}</tr>" for row in rows)
    titled = f'<caption style="text-align: left">{_cell(caption)}</caption>' if caption else ""
    return Markup(f"<table>{titled}<thead><tr>{shown}</tr></thead><tbody>{body}</tbody></table>")


def pairs(values: Mapping[str, object], *, caption: str = "") -> Markup:
    """Names and values; those that are None or empty are left out."""
    rows = "".join(
        f'<tr><th scope="row" style="text-align: left">{_cell(name)}</th>'
        f'<td style="text-align: left">{_cell(value)}</td></tr>'
        for name, value in values.items()
        if value not in (None, "", (), [])
    )
    titled = f'<caption style="text-align: left">{_cell(caption)}</caption>' if caption else ""
    return Markup(f"<table>{titled}<tbody>{rows}</tbody></table>")


def lines(text: str) -> Markup:
    """A text of several lines, as it stands."""
    return Markup(f'<pre style="white-space: pre-wrap">{escape(text)}</pre>')


def listing(items: Iterable[object]) -> Markup:
    """A list of pieces."""
    return Markup(f"<ul>{''.join(f'<li>{_cell(item)}</li>' for item in items)}</ul>")


def _cell(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = "" if value is None else escape(str(value))
    return f"<bdi>{text}</bdi>" if not text.isascii() else text
