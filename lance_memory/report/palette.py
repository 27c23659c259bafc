"""The colours of charts and page, in light and in dark, told apart by colour-blind people too.

Charts are drawn with the light ones. In the page each is a CSS variable, so that one drawing is
right in both schemes. The hues are Okabe and Ito's ("Color Universal Design", 2008), shifted until
every pair holds apart under the three kinds of colour blindness and stands out from the ground;
`tests/report/test_palette.py` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CHANGES", "DARK", "LIGHT", "STATES", "Palette"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """One scheme: hex colours.

    Attributes:
        ground: behind everything.
        card: behind a figure.
        ink: text.
        faint: text that matters less, axes.
        line: grid and borders.
        quiet: marks that stand for the rest.
        series: marks that are told apart, in the order they are used.
    """

    ground: str
    card: str
    ink: str
    faint: str
    line: str
    quiet: str
    series: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        """CSS variable → colour."""
        names = ("ground", "card", "ink", "faint", "line", "quiet")
        plain = {f"--{name}": str(getattr(self, name)) for name in names}
        return {**plain, **{f"--c{i}": colour for i, colour in enumerate(self.series, start=1)}}


LIGHT = Palette(
    ground="#f6f7f9",
    card="#ffffff",
    ink="#1b1f24",
    faint="#57606b",
    line="#d9dde2",
    quiet="#8c959f",
    series=("#014a98", "#c56209", "#018867", "#a1518e", "#874c00", "#6739c3"),
)

DARK = Palette(
    ground="#12151a",
    card="#1b2027",
    ink="#e8ebef",
    faint="#a3adb8",
    line="#39414b",
    quiet="#727c88",
    series=("#61a7fb", "#fed147", "#22cfad", "#e584cb", "#cda334", "#8864fc"),
)

STATES = {
    "active": LIGHT.series[0],
    "superseded": LIGHT.series[1],
    "retired": LIGHT.series[4],
    "pending": LIGHT.series[2],
    "contradicted": LIGHT.series[3],
    "deleted": LIGHT.quiet,
}
"""The colour of each state in every chart; "deleted" is what is no row any more."""

CHANGES = {
    "inserted": LIGHT.series[0],
    "updated": LIGHT.series[4],
    "deleted": LIGHT.series[1],
}
"""The colour of what a version did to rows."""
