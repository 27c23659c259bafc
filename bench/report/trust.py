"""Whether it can be trusted: kills, power cuts, forgetting."""

from __future__ import annotations

from bench.report.lines import Line, Lines
from bench.report.section import Claim, Section
from bench.report.words import n, name, origin, table


def soak(lines: Lines) -> Section:
    """Processes that are killed while they write."""
    every = lines.of("soak", "soak")
    keys = ("seconds", "operations", "refused", "kills", "faults", "rows", "errors", "losses")
    blocks = (
        (
            "Writers, readers and upkeep in processes of their own on one store; they are killed and stopped at random"
            " moments and started again. Then every acknowledged write is looked for, every invariant checked, every"
            " index compared with the rows. `make soak` runs it for minutes."
        ),
        table(
            (*(name(key) for key in keys), "broken invariants", "troubles", "line"),
            (
                (*(x[key] for key in keys), x["broken_invariants"], len(x["trouble"]), x.link)
                for x in every
            ),
        ),
        origin(every, "soak"),
    )
    claims: tuple[Claim, ...] = ()
    if every:
        last = every[-1]
        wrong = last["losses"] + last["broken_invariants"] + len(last["trouble"]) + last["errors"]
        claims = (
            Claim(
                what=f"lost writes, errors and broken invariants in {n(last['operations'])} operations with"
                f" {n(last['kills'])} kills",
                figure=n(wrong),
                bar=n(0),
                met=wrong == 0,
                line=last,
            ),
        )
    return Section(title="Is anything lost when processes die?", blocks=blocks, claims=claims)


def durability(lines: Lines) -> Section:
    """What surviving a power cut costs."""
    every = lines.of("durability")
    single = lines.one("durability", "durability_single_add")
    blocks = (
        (
            "`process`: a write survives the death of the process. `power`: it survives a power cut. Group commit lets"
            " threads share a sync."
        ),
        table(
            (
                "measurement",
                "process ms",
                "power ms",
                "ratio",
                "without group commit ms",
                "it saves",
                "line",
            ),
            (
                (
                    name(x.bench, "durability_"),
                    x.get("process_ms", x.get("process_ms_per_add")),
                    x.get("power_ms", x.get("power_ms_per_add")),
                    x["ratio"],
                    x.get("power_without_group_commit_ms_per_add"),
                    x.get("group_commit_saves"),
                    x.link,
                )
                for x in every
                if "ratio" in x.values
            ),
        ),
        "\n".join(
            f"- {name(x.bench, 'durability_')}: {n(x['look_ms'])} ms of an opening of {n(x['open_ms'])} ms with"
            f" {n(x['fragments'])} fragments ({x.link})"
            for x in every
            if "look_ms" in x.values
        ),
        f"- A bare fsync: {n(single['bare_fsync_ms'])} ms ({single.link})" if single else "",
        origin(every, "durability"),
    )
    claims: tuple[Claim, ...] = ()
    if single:
        claims = (
            Claim(
                what="a single add that survives a power cut, against one that does not, ms",
                figure=f"{n(single['power_ms'])} / {n(single['process_ms'])} = {single['ratio']:.2f}",
                line=single,
            ),
        )
    return Section(title="What does surviving a power cut cost?", blocks=blocks, claims=claims)


def forgetting(lines: Lines) -> Section:
    """A tenant gone from every version, with a proof."""
    every = lines.of("forget")
    blocks = (
        (
            "A tenant is forgotten and the proof reads every version, index and raw file for what is left of it."
            " `tagged`: a tag holds the rows, so that its version is rewritten."
        ),
        table(
            (
                "rows",
                "forgotten",
                "tagged",
                "plan s",
                "forget and prove s",
                "one memory s",
                "versions",
                "raw files read",
                "found after it",
                "line",
            ),
            ((*_row(x), x.link) for x in every),
        ),
        origin(every, "forget"),
    )
    claims = tuple(
        Claim(
            what=f"forget {n(x['forgotten'])} of {n(x['rows'])} rows with proof, s; traces found after it",
            figure=f"{n(x['forget_s'])}; {n(x['found'])}",
            bar="–; 0",
            met=x["found"] == 0,
            line=x,
        )
        for x in every[:1]
    )
    return Section(title="Is what is forgotten gone?", blocks=blocks, claims=claims)


def _row(x: Line) -> tuple[object, ...]:
    keys = ("plan_s", "forget_s", "forget_one_s", "versions", "raw_files", "found")
    tagged = "yes" if x["tagged"] else "no"
    return (x["rows"], x["forgotten"], tagged, *(x[key] for key in keys))
