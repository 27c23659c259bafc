"""How figures, tables and origins are written in Markdown. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bench.report.lines import Line

NONE = "–"
UNKNOWN = "not recorded"
PACKAGES = ("lance_memory", "python", "pylance", "pyarrow", "numpy", "torch")


def n(value: float | str | None) -> str:
    """A figure as it was recorded, with thousands set apart; a dash for none."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int | float) else value


def yes(value: bool | None, /) -> str:  # noqa: FBT001 (it is what is written)
    return NONE if value is None else "yes" if value else "**no**"


def times(value: float) -> str:
    """A ratio that was worked out here."""
    return f"{value:.1f}×" if abs(value) < 100 else f"{value:,.0f}×"


def name(bench: str, without: str = "") -> str:
    return bench.removeprefix(without).strip("_").replace("_", " ")


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; nothing where there are no rows."""
    told = [[n(cell) for cell in row] for row in rows]
    if not told:
        return ""
    lines = [heads, ["---"] * len(heads), *told]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bar(line: Line) -> str:
    """What an issue asked for, as the line has it."""
    if line.get("bar") is None:
        return NONE
    shapes = {"at_least": "≥ {}", "seconds": "≤ {} s", "mb": "≤ {} MB"}
    return shapes.get(line.get("bar_is"), "≤ {}").format(n(line["bar"]))


def result(line: Line) -> str:
    """The figure of a line that was measured against a bar or against something bare."""
    if "bar_is" in line.values and line["bar_is"] == "seconds":
        against = f" (beside {n(line['raw_ms'])})" if "raw_ms" in line.values else ""
        return f"{n(line.get('ours_ms', line.get('ms')))} ms{against}"
    if "ratio_q1" in line.values:
        quartiles = f"{line['ratio_q1']:.2f}–{line['ratio_q3']:.2f}"
        pair = f"{n(line['ours_ms'])} / {n(line['raw_ms'])} ms"
        return f"{pair} = {line['ratio']:.2f} ({quartiles})"
    if "recall" in line.values:
        counted = {"passing": "rows pass", "pairs": "pairs"}
        more = [f" ({n(line[key])} {what})" for key, what in counted.items() if key in line.values]
        return f"{n(line['recall'])}{''.join(more)}"
    if "at_once_per_s" in line.values:
        pair = f"{n(line['at_once_per_s'])} / {n(line['one_by_one_per_s'])} a second"
        return f"{pair} = {n(line['ratio'])}"
    if "peak_mb" in line.values:
        took = f" in {n(line['seconds'])} s" if "seconds" in line.values else ""
        ratio = f" = {n(line['ratio'])}" if "ratio" in line.values else ""
        return f"{n(line['peak_mb'])} MB / {n(line['vectors_mb'])} MB of vectors{ratio}{took}"
    return f"{n(line['ms'])} ms"


def measured(lines: Iterable[Line], without: str = "") -> str:
    """A table of such lines, each with its bar and its place."""
    return table(
        ("measurement", "bar", "result", "rows", "n", "met", "line"),
        (
            (
                name(line.bench, without),
                bar(line),
                result(line),
                line.get("rows") or None,
                line.get("n"),
                yes(line.get("met")),
                line.link,
            )
            for line in lines
        ),
    )


def origin(lines: Sequence[Line], script: str) -> str:
    """Under every table: command, data, seed, versions, machine and moment, as the lines say them."""
    if not lines:
        return f"No line is recorded: `bench/{script}.py` writes them."
    counted = Counter(_origin(line, script) for line in lines)
    many = len(counted) > 1
    told = [f"{f'{count} lines: ' if many else ''}{text}" for text, count in counted.items()]
    return "\n".join(f"<sub>{text}</sub><br>" for text in told).removesuffix("<br>")


def _origin(line: Line, script: str) -> str:
    command = line.get("command")
    shown = f"`{command}`" if command else f"{UNKNOWN} (`bench/{script}.py` writes these lines)"
    versions = ", ".join(f"{name} {line[name]}" for name in PACKAGES if line.get(name))
    code = f", commit {line['commit']}" if line.get("commit") else ""
    parts = {
        "Command": shown,
        "data": line.get("data", UNKNOWN),
        "seed": line.get("seed", UNKNOWN),
        "versions": (versions or UNKNOWN) + code,
        "machine": machine(line),
        "load before": line.get("load", UNKNOWN),
        "at": line.get("at", UNKNOWN),
    }
    return " · ".join(f"{key}: {value}" for key, value in parts.items())


def machine(line: Line) -> str:
    """Cores, processor, memory and system, as far as they are recorded."""
    cores = f"{line['cores']} cores" if line.get("cores") else ""
    memory = f"{line['memory_gb']} GB" if line.get("memory_gb") else ""
    known = [cores, line.get("device") or line.get("cpu"), memory, line.get("system")]
    whole = all(line.get(key) for key in ("cpu", "cores", "memory_gb", "system"))
    return ", ".join(str(part) for part in known if part) + ("" if whole else f", rest {UNKNOWN}")
