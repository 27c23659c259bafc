"""What writes cost and leave behind: the write path, working memory, upkeep."""

from __future__ import annotations

from collections.abc import Sequence

from bench.report.lines import Line, Lines
from bench.report.section import Claim, Section
from bench.report.words import NONE, n, name, origin, table, yes


def write_path(lines: Lines) -> Section:
    """What is kept of conversations, and how fast."""
    every = lines.of("ingest")
    counts = lines.one("ingest", "ingest_counts")
    accept = lines.one("ingest", "ingest_accept")
    rates = [x for x in every if "messages_per_second" in x.values]
    rows = [
        (
            name(x.bench, "ingest_"),
            f"≥ {n(x['bar'])}" if "bar" in x.values else NONE,
            n(x["messages_per_second"]),
            n(x.get("ratio")),
            x.get("jobs"),
            yes(x.get("met")),
            x.link,
        )
        for x in rates
    ]
    heads = (
        "measurement",
        "bar",
        "messages a second",
        "× the embedder alone",
        "jobs",
        "met",
        "line",
    )
    blocks = (
        "Whole conversations through redaction, the gate, extraction and resolution, with the defaults.",
        _kept(counts) if counts else "",
        table(heads, rows),
        _accepted(accept) if accept else "",
        origin(every, "ingest"),
    )
    claims: tuple[Claim, ...] = ()
    for x in rates:
        figure = (
            n(x["ratio"]) + "×"
            if "ratio" in x.values
            else f"{n(x['messages_per_second'])} messages/s"
        )
        claims += (
            Claim(
                what=f"write path, {name(x.bench, 'ingest_').removeprefix('speed ')}",
                figure=figure,
                bar=f"≥ {n(x['bar'])}",
                met=x["met"],
                line=x,
            ),
        )
    return Section(
        title="What does the write path keep, and how fast?", blocks=blocks, claims=claims
    )


def _kept(counts: Line) -> str:
    decided = [
        (step, *pair) for step, found in counts["decisions"].items() for pair in found.items()
    ]
    told = table(("step", "decision", "times"), decided)
    return (
        f"{n(counts['messages'])} messages in {n(counts['conversations'])} conversations became {n(counts['rows'])}"
        f" rows, {n(counts['visible'])} of them visible and {n(counts['pending'])} pending. A replay of all of it makes"
        f" {n(counts['replay_made'])} memories ({counts.link}).\n\n{told}"
    )


def _accepted(line: Line) -> str:
    return (
        f"A queued job is accepted in {n(line['accept_ms'])} ms (p99 {n(line['accept_p99_ms'])}; at most"
        f" {n(line['bar'])}: {yes(line['met'])}; {line.link})."
    )


# -- working memory -------------------------------------------------------------------------------


SIDES = ("ours", "sqlite", "commit", "list")


def working(lines: Lines) -> Section:
    """A message written and the last ten read."""
    every = lines.of("working")
    beside = [x for x in every if "ours_p50_ms" in x.values]
    rest = [x for x in every if x not in beside]
    rows = [
        (
            name(x.bench) + (f", durability {x['durability']}" if "durability" in x.values else ""),
            f"≤ {n(x['bar_ms'])} ms" if "bar_ms" in x.values else NONE,
            *(_pair(x, side) for side in SIDES),
            x["n"],
            yes(x.get("met")),
            x.link,
        )
        for x in beside
    ]
    heads = (
        "measurement",
        "bar",
        "ours p50 / p95 ms",
        "SQLite",
        "a commit",
        "`list`",
        "n",
        "met",
        "line",
    )
    blocks = (
        "Beside a plain insert into SQLite, a plain read from it, a commit of the store and a `list` from the table.",
        table(heads, rows),
        "\n".join(f"- {name(x.bench)}: {_plain(x)} ({x.link})" for x in rest),
        origin(every, "working"),
    )
    wrote = lines.one("working", "working_write", durability="process")
    read = lines.one("working", "working_read_after_a_write")
    claims = tuple(
        Claim(
            what=what,
            figure=n(x["ours_p50_ms"]),
            bar=f"≤ {n(x['bar_ms'])}",
            met=x["met"],
            line=x,
        )
        for x, what in (
            (wrote, "a message into working memory, p50 ms"),
            (read, "the last ten read right after a write, p50 ms"),
        )
        if x
    )
    return Section(title="What does working memory cost a turn?", blocks=blocks, claims=claims)


def _pair(line: Line, side: str) -> str:
    if f"{side}_p50_ms" not in line.values:
        return NONE
    return f"{n(line[f'{side}_p50_ms'])} / {n(line.get(f'{side}_p95_ms'))}"


ABOUT = ("bench", "at", "command", "commit", "data", "seed", "cores", "cpu", "memory_gb", "load")
ABOUT += ("python", "pylance", "pyarrow", "numpy", "lance_memory", "torch", "system")


def _plain(line: Line) -> str:
    """Every figure of a line, in the line's own words."""
    told = {key: value for key, value in line.values.items() if key not in ABOUT}
    return ", ".join(f"{key.replace('_', ' ')} {n(value)}" for key, value in told.items())


# -- upkeep ---------------------------------------------------------------------------------------


def upkeep(lines: Lines) -> Section:
    """What many single adds leave."""
    every = lines.of("upkeep")
    blocks: list[str] = [
        "Single adds, which tend the store, against one batch of the same rows; as the last add leaves it.",
    ]
    for x in every:
        rows = [
            (name(key), f"≤ {n(most)}", x[key], yes(x["met"][key]))
            for key, most in x["bars"].items()
        ]
        blocks += [
            f"{name(x.bench)}, {n(x['rows'])} rows of {n(x['dimension'])} numbers ({x.link}):",
            table(("measurement", "bar", "result", "met"), rows),
            (
                f"{n(x['bytes'])} bytes for {n(x['bytes_batched'])}; adds p50 {n(x['add_p50_first_ms'])} → "
                f"{n(x['add_p50_last_ms'])} ms, p99 {n(x['add_p99_ms'])}; search p50 {n(x['search_p50_ms'])} for "
                f"{n(x['search_p50_batched_ms'])} ms; failures of upkeep: {len(x['upkeep_failures'])}."
            ),
        ]
    return Section(
        title="Does it stay small and fast without being tended?",
        blocks=(*blocks, origin(every, "upkeep")),
        claims=_small(every),
    )


def _small(every: Sequence[Line]) -> tuple[Claim, ...]:
    return tuple(
        Claim(
            what=f"{n(x['rows'])} single adds against a batch: bytes, search ({name(x.bench, 'upkeep')})",
            figure=f"{n(x['bytes_ratio'])}×, {n(x['search_ratio'])}×",
            bar=f"≤ {n(x['bars']['bytes_ratio'])}, {n(x['bars']['search_ratio'])}",
            met=x["met"]["bytes_ratio"] and x["met"]["search_ratio"],
            line=x,
        )
        for x in every
    )
