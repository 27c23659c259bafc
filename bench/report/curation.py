"""What consolidation saves and keeps, and whether it is really undone."""

from __future__ import annotations

from bench.report.lines import Line, Lines
from bench.report.pictures import axis, curves
from bench.report.section import Claim, Picture, Section
from bench.report.words import measured, n, name, origin, table, times, yes


def consolidation(lines: Lines) -> Section:
    """Rows saved against recall kept."""
    passes = lines.of("consolidation", "consolidation")
    before = lines.one("consolidation", "consolidation_before")
    passes = [x for x in passes if x != before]
    curate = lines.of("curate")
    rows = [
        (
            x["transform"],
            "yes" if x["guard"] == "guarded" else "no",
            x["floor"],
            x["clusters"],
            x["held_back"],
            x["dropped_too_much"],
            x["rows_saved"],
            x["saved_percent"],
            *(x["recall_after"].get(half) for half in ("all", "tuning", "held out")),
            x["characters"],
            x["seconds"].get("pass"),
            x.link,
        )
        for x in passes
    ]
    heads = ("transform", "guard", "floor", "clusters", "held back", "dropped", "rows saved", "%")
    heads += ("recall@10", "tuning", "held out", "characters of 10 hits", "pass s", "line")
    blocks = [
        (
            "All turns are consolidated at several floors with transforms that need no model, and all questions"
            " asked again: evidence counts as found where its turn, or the memory that took its place, is among the"
            " first ten. A summary is longer than a turn, so ten hits say more: see the characters."
        ),
        _before(before or passes[0]) if passes else "",
        *([_saved_picture(passes)] if passes else []),
        table(heads, rows),
        origin([*passes, *([before] if before else [])], "consolidation"),
        "What a pass costs, against the bare work (the matrix product of all rows, a raw merge):",
        measured(curate),
        origin(curate, "curate"),
    ]
    return Section(
        title="What does consolidation save, and what does it keep?",
        blocks=tuple(blocks),
        claims=_kept(passes, curate),
    )


def _before(line: Line) -> str:
    told = line.get("recall") or line["recall_before"]
    halves = ", ".join(f"{half} {n(value)}" for half, value in told.items())
    return f"Recall before: {halves} ({line.link})."


def _saved_picture(passes: list[Line]) -> Picture:
    rows = [
        {
            "saved": x["saved_percent"],
            "recall": x["recall_after"]["all"],
            "pass": f"{x['transform']}, {x['guard']}",
        }
        for x in passes
    ]
    return curves(
        "consolidation",
        "Recall at 10 over the share of rows saved; the dashed line is before",
        rows,
        x=axis("saved", "visible memories saved, %"),
        y=axis("recall", "evidence recall@10, %"),
        by="pass",
        marks=[{"value": passes[0]["recall_before"]["all"]}],
    )


def _kept(passes: list[Line], curate: list[Line]) -> tuple[Claim, ...]:
    default = [x for x in passes if (x["transform"], x["guard"]) == ("extractive", "guarded")]
    most = max(default, key=lambda x: x["rows_saved"], default=None)
    found: tuple[Claim, ...] = ()
    if most:
        before, after = most["recall_before"]["all"], most["recall_after"]["all"]
        found = (
            Claim(
                what=f"rows saved at floor {n(most['floor'])}, and recall@10 before → after, %",
                figure=f"{n(most['saved_percent'])}; {n(before)} → {n(after)}",
                line=most,
            ),
        )
    select = next((x for x in curate if x.bench == "select"), None)
    if select:
        ratio = times(select["ratio"])
        found += Claim.of(
            select, f"a pass over {n(select['rows'])} rows against the bare product", ratio
        )
    return found


# -- the main job ---------------------------------------------------------------------------------


EQUALITIES = ("looking_back_equal", "revert_equal", "rollback_equal")


def main_job(lines: Lines) -> Section:
    """Import, consolidate, look back, revert, roll back."""
    stored = lines.one("locomo", "locomo_import")
    passes = lines.of("locomo", "locomo_consolidate_")
    every = [*([stored] if stored else []), *passes]
    checks = ("sources_hidden", "sources_related", *EQUALITIES)
    blocks = [
        (
            "The same conversations are imported, consolidated three ways, looked back at, and each pass is undone"
            " twice: by revert and by rollback. After each, every column of every row is compared with what was"
            " there before."
        ),
        _imported(stored) if stored else "",
        table(
            (
                "pass",
                "clusters",
                "rows saved",
                *(name(c) for c in checks),
                "plan s",
                "apply s",
                "revert s",
                "rollback s",
                "hit@10",
                "line",
            ),
            (
                (
                    name(x.bench, "locomo_consolidate_"),
                    x["clusters"],
                    x["rows_saved"],
                    *(yes(x[check]) for check in checks),
                    *(x["seconds"][step] for step in ("plan", "apply", "revert", "rollback")),
                    x.get("hit@10"),
                    x.link,
                )
                for x in passes
            ),
        ),
        origin(every, "locomo"),
    ]
    right = [x for x in passes if all(x[check] for check in EQUALITIES)]
    claims: tuple[Claim, ...] = ()
    if passes:
        claims = (
            Claim(
                what="passes after which look-back, revert and rollback give the old contents, to the column",
                figure=f"{len(right)} of {len(passes)}",
                bar="all",
                met=len(right) == len(passes),
                line=passes[-1],
            ),
        )
    return Section(title="Is a pass really undone?", blocks=tuple(blocks), claims=claims)


def _imported(stored: Line) -> str:
    took = stored["seconds"]
    return (
        f"Import of {n(stored['rows'])} turns: {n(took['import'])} s, of which embedding {n(took['import_embedding'])};"
        f" importing again stores {n(stored['stored_again'])} and takes {n(took['import_again'])} s;"
        f" {n(stored['bytes'])} bytes and {n(stored['versions'])} versions ({stored.link})."
    )
