"""How fast it is: against the bare engine, and with more rows; how fast texts are embedded."""

from __future__ import annotations

from bench.report.lines import Line, Lines
from bench.report.pictures import axis, panels
from bench.report.section import Claim, Picture, Section
from bench.report.words import measured, n, origin, result, table


def engine(lines: Lines) -> Section:
    """Search and writes against raw pylance."""
    search, overhead = lines.of("search"), lines.of("overhead")
    blocks = (
        (
            "Ours / the bare engine, interleaved in one process; ratios of medians with their quartiles. Ours gives"
            " whole visible memories; the bare search asks the same table for ids, with no filter."
        ),
        measured(search),
        origin(search, "search"),
        "What a write, a read by id and a supersession cost over the engine, on a table that is byte for byte the same:",
        measured(overhead),
        origin(overhead, "overhead"),
    )
    told = {
        "vector_search": "a vector search against a bare query for ids",
        "vector_search_recall_at_10": "its recall at 10, of the exact answer",
        "hybrid_search_against_10_of_each_leg": "a hybrid search against two bare queries",
        "lmem_search_cold": "`lmem search` from the shell, cold",
    }
    claims: tuple[Claim, ...] = ()
    for bench, what in told.items():
        claims += _claim(lines.one("search", bench), what)
    for one in overhead:
        if one.bench in ("bulk_add_into_filled", "single_add_after_optimize"):
            claims += _claim(one, f"{one.bench.replace('_', ' ')}, against raw pylance")
    return Section(title="What does it cost over the bare engine?", blocks=blocks, claims=claims)


def _claim(line: Line | None, what: str) -> tuple[Claim, ...]:
    return Claim.of(line, what, result(line)) if line else ()


# -- growth ---------------------------------------------------------------------------------------


GROWTH = {
    "search_p50_ms": "search p50 ms",
    "search_tenth_p50_ms": "a tenth",
    "search_hundredth_p50_ms": "a hundredth",
    "hybrid_p50_ms": "hybrid",
    "search_first_ms": "first",
    "recall_at_10": "recall@10",
    "add_s": "add s",
    "optimize_s": "optimize s",
    "build_s": "build s",
    "build_peak_mb": "build peak MB",
    "search_rss_mb": "search RSS MB",
    "disk_mb": "disk MB",
}
PANELS = {
    "search, ms": (
        "search_p50_ms",
        "search_tenth_p50_ms",
        "search_hundredth_p50_ms",
        "hybrid_p50_ms",
    ),
    "building, s": ("build_s", "add_s", "optimize_s"),
    "memory, MB": ("build_peak_mb", "search_rss_mb"),
    "disk, MB": ("disk_mb", "vectors_mb"),
}


def growth(lines: Lines) -> Section:
    """The same with more and more rows."""
    every = sorted(lines.of("growth", "growth"), key=lambda x: x["rows"])
    blocks = [
        (
            "p50 of a vector search over all visible rows, over scopes of a tenth and of a hundredth of them, and of"
            " a hybrid search; first: the first search of a process. A tenth of the rows is hidden."
        ),
        *([_growth_picture(every)] if every else []),
        table(
            ("rows", *GROWTH.values(), "line"),
            ((x["rows"], *(x.get(key) for key in GROWTH), x.link) for x in every),
        ),
        origin(every, "growth"),
    ]
    claims: tuple[Claim, ...] = ()
    if every:
        last = every[-1]
        claims = (
            Claim(
                what=f"search over {n(last['rows'])} rows, p50 ms; recall at 10",
                figure=f"{n(last['search_p50_ms'])}; {n(last['recall_at_10'])}",
                line=last,
            ),
            Claim(
                what=f"building and memory at {n(last['rows'])} rows",
                figure=f"{n(last['build_s'])} s, {n(last['build_peak_mb'])} MB; searching {n(last['search_rss_mb'])} MB",
                line=last,
            ),
        )
    return Section(title="How does it grow?", blocks=tuple(blocks), claims=claims)


def _growth_picture(every: list[Line]) -> Picture:
    rows = [
        {
            "rows": x["rows"],
            "value": x[key],
            "what": GROWTH.get(key, key.replace("_", " ")),
            "panel": panel,
        }
        for panel, keys in PANELS.items()
        for key in keys
        for x in every
        if x.get(key)
    ]
    return panels(
        "growth",
        "Time, memory and disk over the number of rows",
        rows,
        x={**axis("rows", "rows", log=True), "axis": {"values": [x["rows"] for x in every]}},
        y=axis("value", "", log=True),
        by="what",
        panel="panel",
    )


# -- embedders and GPU ----------------------------------------------------------------------------


def embedders(lines: Lines) -> Section:
    """One model, several ways to compute it."""
    every, gpu = lines.of("embedders", "embedder"), lines.of("gpu")
    keys = (
        "query_p50_ms",
        "query_speed_ratio",
        "texts_per_s",
        "texts_speed_ratio",
        "cpu_ms_per_text",
    )
    blocks = (
        "All-MiniLM-L6-v2, one text a call and all in one call; ratios to sentence-transformers on the same cores.",
        table(
            (
                "embedder",
                "query p50 ms",
                "× as fast",
                "texts/s",
                "× as fast",
                "CPU ms a text",
                "line",
            ),
            ((x["embedder"], *(x.get(key) for key in keys), x.link) for x in every),
        ),
        origin(every, "embedders"),
        "What a GPU gains over the CPU in the same run:" if gpu else "",
        table(
            ("work", "seconds", "on the CPU", "×", "rows", "line"),
            ((x.bench, x["seconds"], x["cpu_seconds"], x["ratio"], x["rows"], x.link) for x in gpu),
        ),
        origin(gpu, "gpu"),
    )
    claims: tuple[Claim, ...] = ()
    if minilm := next((x for x in every if x["embedder"] == "MiniLM"), None):
        claims = (
            Claim(
                what="a question's embedding on the CPU, p50 ms",
                figure=n(minilm["query_p50_ms"]),
                line=minilm,
            ),
        )
    return Section(title="How fast are texts embedded?", blocks=blocks, claims=claims)
