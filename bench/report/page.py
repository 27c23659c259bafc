"""The whole page from the lines: a summary, then a section for each question of a reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.report import curation, quality, speed, stores, trust, writing
from bench.report.lines import Lines
from bench.report.section import Picture, Section
from bench.report.words import table

SECTIONS = (
    quality.retrieval,
    quality.week,
    stores.peers,
    speed.engine,
    speed.growth,
    curation.consolidation,
    curation.main_job,
    trust.soak,
    trust.durability,
    trust.forgetting,
    writing.write_path,
    writing.working,
    writing.upkeep,
    speed.embedders,
)

HEAD = """# Results

Made by `python -m bench.report` from the lines in [results/](results/); do not edit it. How each is measured, and
what the figures mean: [README.md](README.md). A figure of somebody else is marked as published; all others were
measured by the scripts of this folder. Under each table stands where its lines come from, and what they do not say.
"""


SMALL = """
**Small forms of the measurements: they show that all runs. Their figures mean little.**
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Markdown, and the pictures that it shows."""

    text: str
    pictures: tuple[Picture, ...]


def page(lines: Lines, *, small: bool = False) -> Page:
    """From all lines; `small` says that they are of a quick run.

    Raises:
        ValueError: A line is in no section: a measurement would be recorded and never shown.
    """
    sections = [make(lines) for make in SECTIONS]
    if unread := lines.unread():
        names = ", ".join(f"{line.file}:{line.number} ({line.bench})" for line in unread)
        raise ValueError(
            f"no section shows {len(unread)} of the recorded lines: {names}; "
            "let a section of bench/report ask for them"
        )
    claims = [claim.row() for one in sections for claim in one.claims]
    summary = table(("measured", "figure", "bar", "met", "line"), claims)
    head = f"{HEAD}{SMALL}" if small else HEAD
    text = "\n".join([head, summary, "", unmet(lines), "", *(_written(one) for one in sections)])
    return Page(text=text, pictures=tuple(p for one in sections for p in one.pictures))


def unmet(lines: Lines) -> str:
    """Every line that missed what was asked for, whether the summary has it or not."""
    missed = [line for line in lines.found if _missed(line.get("met"))]
    told = ", ".join(f"{line.bench.replace('_', ' ')} ({line.link})" for line in missed)
    return f"Bars that are not met: {told or 'none'}."


def _missed(met: object) -> bool:
    return met is False or (isinstance(met, Mapping) and not all(met.values()))


def _written(section: Section) -> str:
    blocks = [_block(block) for block in section.blocks if block]
    return "\n\n".join([f"## {section.title}", *blocks]) + "\n"


def _block(block: str | Picture) -> str:
    if isinstance(block, Picture):
        return f"![{block.about}](results/{block.name}.svg)"
    return block
