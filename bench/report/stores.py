"""The same rows and questions in other stores."""

from __future__ import annotations

from bench.report.lines import Line, Lines
from bench.report.pictures import axis, bars
from bench.report.section import Claim, Picture, Section
from bench.report.words import NONE, n, origin, table, times

OURS = "lance-memory"

COLUMNS = {
    "search": ("search p50 ms", "p50_ms"),
    "recall_at_10": ("recall@10", "recall"),
    "bulk": ("bulk rows/s", "rows_per_s"),
    "ready": ("ready s", "until_ready_s"),
    "single_add": ("add ms", "p50_ms"),
    "single_update": ("update ms", "p50_ms"),
    "single_delete": ("delete ms", "p50_ms"),
    "disk": ("disk MB", "mb"),
    "memory": ("RSS MB", "rss_mb"),
    "open": ("open s", "seconds"),
}


def peers(lines: Lines) -> Section:
    """The same rows and questions in other stores."""
    every = lines.of("peers")
    stores = _stores(every)
    settings = [x for x in every if x["measure"] == "bulk"]
    away = [x for x in every if x["measure"] in ("not_installed", "not_reached", "failed")]
    tidy = [x for x in every if x["measure"] == "disk_without_old_versions"]
    blocks = [
        (
            "Same rows, same questions, same machine, one after the other; each filled in one process and asked in"
            " another, with the settings that its documentation gives for the best answers. p50 of a search for the"
            " ten nearest active rows with their contents; ready: until searches are fast. Durability differs, see"
            " below. faiss holds vectors in memory and gives ids alone: a floor for time, not a store."
        ),
        table(
            ("store", "rows", *(head for head, _ in COLUMNS.values())),
            ((*key, *_row(found)) for key, found in stores.items()),
        ),
        *([_search_picture(stores)] if stores else []),
        "\n".join(
            f"- {x['peer']} at {n(x['rows'])} rows without old versions: {n(x['mb'])} MB ({x.link})"
            for x in tidy
        ),
        "\n".join(f"- {x['peer']} at {n(x['rows'])} rows: {_away(x)} ({x.link})" for x in away),
        table(
            ("store", "rows", "version", "settings", "durability", "line"),
            (
                (x["peer"], x["rows"], x["version"], x["settings"], x["durability"], x.link)
                for x in settings
            ),
        ),
        origin(every, "peers"),
    ]
    return Section(
        title="How fast is it beside other stores?", blocks=tuple(blocks), claims=_beside(stores)
    )


def _stores(every: list[Line]) -> dict[tuple[str, int], dict[str, Line]]:
    """The measures of each store at each number of rows."""
    found: dict[tuple[str, int], dict[str, Line]] = {}
    for x in every:
        if x["measure"] == "bulk" or (x["peer"], x["rows"]) in found:
            found.setdefault((x["peer"], x["rows"]), {})[x["measure"]] = x
    for measures in found.values():
        if "bulk" in measures:
            measures["ready"] = measures["bulk"]
    return found


def _row(found: dict[str, Line]) -> list[str]:
    return [
        n(found[measure].get(key)) if measure in found else NONE
        for measure, (_, key) in COLUMNS.items()
    ]


def _away(line: Line) -> str:
    words = {
        "not_installed": "not installed",
        "not_reached": f"not done within {n(line.get('limit_s'))} s",
        "failed": f"failed: {line.get('message')}",
    }
    return words[line["measure"]]


def _search_picture(stores: dict[tuple[str, int], dict[str, Line]]) -> Picture:
    rows = [
        {
            "store": f"{peer}, {n(rows)} rows",
            "ms": found["search"]["p50_ms"],
            "whose": "ours" if peer == OURS else "recall below 0.9" if _misses(found) else "others",
        }
        for (peer, rows), found in stores.items()
        if "search" in found
    ]
    return bars(
        "peers",
        "p50 of a search for the ten nearest active rows, in ms",
        rows,
        x=axis("ms", "search p50, ms (logarithmic)", log=True, low=0.1),
        y="store",
        by="whose",
    )


def _misses(found: dict[str, Line]) -> bool:
    return "recall_at_10" in found and found["recall_at_10"]["recall"] < 0.9


def _beside(stores: dict[tuple[str, int], dict[str, Line]]) -> tuple[Claim, ...]:
    """At the most rows: ours against the best other store that finds what it should."""
    most = max((rows for peer, rows in stores if peer == OURS), default=None)
    ours = stores.get((OURS, most)) if most else None
    others = {
        peer: found
        for (peer, rows), found in stores.items()
        if rows == most and peer != OURS and not _misses(found)
    }
    if not ours:
        return ()
    claims: tuple[Claim, ...] = ()
    told = {
        "search": "search p50",
        "single_add": "a single add",
        "single_update": "a single update",
    }
    for measure, what in told.items():
        rivals = {p: f[measure] for p, f in others.items() if measure in f}
        if measure not in ours or not rivals:
            continue
        best = min(rivals, key=lambda peer: rivals[peer]["p50_ms"])
        mine, theirs = ours[measure]["p50_ms"], rivals[best]["p50_ms"]
        word = (
            f"{times(theirs / mine)} as fast"
            if mine <= theirs
            else f"**{times(mine / theirs)} slower**"
        )
        claims += (
            Claim(
                what=f"{what} at {n(most)} rows / the fastest other store ({best}), ms",
                figure=f"{n(mine)} / {n(theirs)}: {word}",
                line=ours[measure],
            ),
        )
    return claims
