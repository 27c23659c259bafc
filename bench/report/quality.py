"""What a search finds, and what an agent has at hand."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from bench.report.lines import Line, Lines
from bench.report.pictures import axis, curves
from bench.report.section import Claim, Picture, Section
from bench.report.words import n, name, origin, table

CUTS = ("recall@5", "recall@10", "recall@20", "recall@25", "recall@50")
HALVES = ("all", "tuning", "held_out")


@cache
def published() -> dict[str, list[dict[str, Any]]]:
    """Figures of others, which were not measured here, with where they stand."""
    return json.loads((Path(__file__).parent / "published.json").read_text(encoding="utf-8"))


# -- retrieval ------------------------------------------------------------------------------------


def retrieval(lines: Lines) -> Section:
    """How much labelled evidence a search finds."""
    every = lines.of("locomo", "locomo_retrieval_")
    ways = [x for x in every if x.bench.startswith("locomo_retrieval_way_")]
    time = lines.one("locomo", "locomo_retrieval_time")
    groups = [x for x in every if x not in ways and x != time]
    madial = lines.of("locomo", "madial_retrieval_")
    data = lines.one("locomo", "locomo_data")
    whole = lines.one("locomo", "locomo_retrieval_all")
    blocks = [
        "Each question is asked as it stands inside its conversation; one memory is one turn. Share of a"
        " question's labelled evidence among the first k, mean over questions, in %. No language model."
        + (f" {_labels(data)}" if data else ""),
        _beside(whole),
        *([_recall_picture(whole)] if whole else []),
        "By half and category. Weights were chosen on the tuning half; the other was only measured.",
        _figures(groups, "locomo_retrieval_"),
        "What the parts of the ranking are worth, over all questions:",
        _figures(ways, "locomo_retrieval_way_"),
        f"A question takes {time['ms_per_question']:.1f} ms, its embedding included ({time.link})."
        if time
        else "",
        "MADial-Bench: events that a dialogue should recall, a small set apart from the other.",
        _figures(madial, "madial_retrieval_"),
        origin([*every, *madial, *([data] if data else [])], "locomo"),
    ]
    return Section(
        title="Does a search find what it should?", blocks=tuple(blocks), claims=_found(whole)
    )


def _labels(data: Line) -> str:
    return (
        f"{n(data['turns'])} turns, {n(data['questions'])} questions; of the labels"
        f" {data['malformed_labels']} are malformed and {data['dangling_labels']} name no turn;"
        f" {data['without_evidence']} questions without evidence count as found ({data.link})."
    )


def _beside(whole: Line | None) -> str:
    """Ours above what others published."""
    rows = [(one["system"], "published", *(one.get(c) for c in CUTS)) for one in _others()]
    if whole:
        ours = ("**lance-memory, default options**", f"measured, {whole.link}")
        bars = whole.get("bars", {})
        asked = ("bar", "asked for", *(bars.get(cut.removeprefix("recall@")) for cut in CUTS))
        rows = [(*ours, *(whole.get(cut) for cut in CUTS)), *([asked] if bars else []), *rows]
    told = table(("system", "", *(cut.replace("recall", "") for cut in CUTS)), rows)
    sources = "; ".join(dict.fromkeys(one["source"] for one in _others()))
    return (
        f"{told}\n\nPublished, not measured here: {sources}. Scores of answers that a model writes"
        " and a model judges are another measure, and do not stand here."
    )


def _others() -> list[dict[str, Any]]:
    return published()["locomo_retrieval"]


def _recall_picture(whole: Line) -> Picture:
    systems = [("lance-memory, measured", whole.values)]
    systems += [(f"{one['system'].split(',')[0]}, published", one) for one in _others()]
    rows = [
        {"k": int(cut.removeprefix("recall@")), "found": values[cut], "system": system}
        for (system, values), cut in product(systems, CUTS)
        if cut in values
    ]
    return curves(
        "recall",
        "Recall over k on LoCoMo, beside the paper's best retriever",
        rows,
        x=axis("k", "turns looked at"),
        y=axis("found", "evidence found, %", low=50),
        by="system",
    )


def _figures(lines: list[Line], without: str) -> str:
    keys = ("recall@5", "recall@10", "recall@20", "recall@50", "mrr", "ndcg@10")
    return table(
        ("", "questions", "@5", "@10", "@20", "@50", "MRR", "nDCG@10", "line"),
        (
            (name(x.bench, without), x.get("questions"), *(x.get(k) for k in keys), x.link)
            for x in lines
        ),
    )


def _found(whole: Line | None) -> tuple[Claim, ...]:
    if whole is None:
        return ()
    others = max(one["recall@10"] for one in _others())
    return (
        Claim(
            what="evidence among the first 5 / 10 / 20 (LoCoMo), %",
            figure=" / ".join(n(whole[f"recall@{k}"]) for k in (5, 10, 20)),
            bar="≥ " + " / ".join(n(b) for b in whole["bars"].values())
            if "bars" in whole.values
            else "–",
            met=all(whole["met"].values()) if "met" in whole.values else None,
            line=whole,
        ),
        Claim(
            what="the same at 10, beside the best retriever of LoCoMo's paper (published)",
            figure=f"{n(whole['recall@10'])} / {n(others)}",
            line=whole,
        ),
    )


# -- what an agent has at hand --------------------------------------------------------------------


def week(lines: Lines) -> Section:
    """An agent that listens, and is asked."""
    every = lines.of("agent_week")
    target, seen = (
        lines.one("agent_week", "agent_week_target"),
        lines.one("agent_week", "agent_week_observe"),
    )
    curve = [x for x in every if x.bench == "agent_week_curve"]
    ways = [x for x in every if x not in (target, seen) and x not in curve]
    whole = [x for x in ways if x.bench.endswith("_all")]
    pack = lines.one("agent_week", "agent_week_pack_all")
    blocks = [
        (
            "Every turn of the same conversations is observed by an agent; then each question fills the same"
            " budget of tokens in several ways. Share of the evidence turns that are in it, in %."
        ),
        _observed(seen) if seen else "",
        _ways(ways),
        *([_budget_picture(curve)] if curve else []),
        _curve(curve),
        _layers(pack) if pack else "",
        _ratios(target) if target else "",
        origin(every, "agent_week"),
    ]
    claims: tuple[Claim, ...] = ()
    if pack and target:
        met = all(target["met"].values())
        ratio = target["ratios"]["vector_top_k"]["all"]
        plain = next((x for x in whole if x.bench.endswith("vector_top_k_all")), None)
        beside = f" / {n(plain['recall'])} = {ratio:.2f}" if plain else f", ratio {ratio:.2f}"
        claims = (
            Claim(
                what=f"evidence in a pack of {n(pack['budget'])} tokens / by the plain vector, %",
                figure=f"{n(pack['recall'])}{beside}",
                bar=f"≥ {n(target['bar'])}",
                met=met,
                line=target,
            ),
        )
    return Section(
        title="What has an agent at hand when it is asked?", blocks=tuple(blocks), claims=claims
    )


def _observed(seen: Line) -> str:
    return (
        f"{n(seen['turns'])} turns in {n(seen['sessions'])} sessions; a turn observed: p50"
        f" {n(seen['observe_p50_ms'])} ms, p95 {n(seen['observe_p95_ms'])}; a session flushed: p50"
        f" {n(seen['flush_p50_ms'])} ms. Kept: "
        + ", ".join(f"{n(count)} {kind}" for kind, count in seen["kinds"].items())
        + f" ({seen.link})."
    )


def _ways(ways: list[Line]) -> str:
    """A row for each way, its halves side by side."""
    by_way: dict[str, dict[str, Line]] = {}
    for line in ways:
        half = next(h for h in HALVES if line.bench.endswith(f"_{h}"))
        way = line.bench.removeprefix("agent_week_").removesuffix(f"_{half}")
        by_way.setdefault(way, {})[half] = line
    rows = [
        (
            name(way),
            *(halves[h]["recall"] if h in halves else None for h in HALVES),
            (one := next(iter(halves.values())))["budget"],
            one["items"],
            one["tokens"],
            f"{n(one['p50_ms'])} / {n(one['p95_ms'])}",
            one.link,
        )
        for way, halves in by_way.items()
    ]
    heads = (
        "way",
        "all",
        "tuning",
        "held out",
        "budget",
        "items",
        "tokens",
        "p50 / p95 ms",
        "line",
    )
    return table(heads, rows)


def _curve(curve: list[Line]) -> str:
    budgets = sorted({x["budget"] for x in curve})
    ways = dict.fromkeys(x["way"] for x in curve)
    found = {(x["way"], x["budget"]): x["recall"] for x in curve}
    rows = [(name(way), *(found.get((way, b)) for b in budgets)) for way in ways]
    asked = " ".join({f"{n(x['questions'])} questions." for x in curve})
    told = table(("recall at a budget of", *(n(b) for b in budgets)), rows)
    return f"{told}\n\n{asked}" if curve else ""


def _budget_picture(curve: list[Line]) -> Picture:
    rows = [{"budget": x["budget"], "recall": x["recall"], "way": name(x["way"])} for x in curve]
    return curves(
        "agent_week",
        "Evidence in the context over its budget",
        rows,
        x=axis("budget", "budget, tokens"),
        y=axis("recall", "evidence turns in it, %", low=0),
        by="way",
    )


def _layers(pack: Line) -> str:
    rows = [
        (k, *(v[x] for x in ("items", "tokens", "evidence"))) for k, v in pack["layers"].items()
    ]
    told = table(("layer of a pack", "items", "tokens", "evidence, %"), rows)
    kinds = table(
        ("category of question", *pack["categories"]), [("recall", *pack["categories"].values())]
    )
    return f"{told}\n\n{kinds}"


def _ratios(target: Line) -> str:
    rows = [
        (name(way), *(halves.get(h) for h in HALVES)) for way, halves in target["ratios"].items()
    ]
    told = table(("a pack against", "all", "tuning", "held out"), rows)
    return f"{told}\n\nThe bar is {n(target['bar'])} over the plain vector ({target.link})."
