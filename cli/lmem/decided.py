"""What became of conversations: a summary in figures, and each step's decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from lmem.output import clean
from lmem.render import pairs

if TYPE_CHECKING:
    from lance_memory import Decision, IngestResult

__all__ = ["drawn", "explained", "steps", "summary"]

_PASSED = {"kept", "pending"}


def summary(result: IngestResult, conversations: int) -> dict[str, Any]:
    """The figures of one call, by name."""
    of = _by_step(result)
    kept = Counter(d.verdict for d in of.get("keep", ()))
    discarded = [d for d in of.get("extract", []) + of.get("keep", []) if d.verdict not in _PASSED]
    redacted: Counter[str] = Counter()
    for decision in of.get("redact", ()):
        redacted.update({kind: int(n) for kind, n in decision.figures.items()})
    found = {
        "status": str(result.status),
        "reason": result.reason,
        "job": result.job,
        "uri": result.uri,
        "version": result.version,
        "conversations": conversations,
        "messages": result.messages,
        "candidates": kept.total(),
        "kept": kept["kept"],
        "pending": kept["pending"],
        "rejected": _counted(d.reason for d in discarded),
        "conflicts": _counted(d.verdict for d in of.get("resolve", ()) if d.verdict != "new"),
        "blocked": _counted(f"{d.verdict} {d.reason}" for d in of.get("gate", ())),
        "redacted": dict(sorted(redacted.items())),
        "memories": len(result.ids),
        "ids": list(result.ids),
        "degraded": list(result.degraded),
        "eta": result.eta,
        "seconds": {name: round(took, 4) for name, took in result.seconds.items()},
    }
    return {**found, "took": round(sum(result.seconds.values()), 4)}


def explained(result: IngestResult) -> list[dict[str, Any]]:
    """Every decision, in order, with the text that it is about."""
    return [{**decision.to_json(), "content": decision.content} for decision in result.decisions]


def drawn(told: Mapping[str, Any]) -> RenderableType:
    """The summary, a line for each figure."""
    shown: dict[str, Any] = {}
    for name, value in told.items():
        if name in ("uri", "ids", "seconds", "degraded"):
            continue
        if isinstance(value, Mapping):
            shown[name] = ", ".join(f"{key} {number}" for key, number in value.items())
        else:
            shown[name] = value
    shown["status"] = " ".join(filter(None, (told["status"], shown.pop("reason"))))
    shown["eta"] = "" if told["eta"] is None else f"{told['eta']:.1f} s"
    steps = ", ".join(f"{name} {took:.2f}" for name, took in told["seconds"].items())
    took = shown.pop("took")
    shown["seconds"] = f"{took:.2f} ({steps})" if steps else ""
    return pairs(shown)


def steps(result: IngestResult, *, width: int, show: int) -> Iterator[RenderableType]:
    """Each step, its decisions grouped by verdict and reason, with some of their texts."""
    for step, decisions in _by_step(result).items():
        yield Text(step, style="bold")
        groups: dict[tuple[str, str], list[Decision]] = {}
        for decision in decisions:
            groups.setdefault((decision.verdict, decision.reason), []).append(decision)
        for (verdict, reason), some in groups.items():
            name = clean(" ".join(dict.fromkeys(filter(None, (verdict, reason)))))  # new, new: new
            yield Text(f"  {len(some):>5,}  {name}", no_wrap=True, overflow="ellipsis")
            for decision in some[:show]:
                yield from _example(decision, width)
            if len(some) > show > 0:
                yield Text(f"         ... and {len(some) - show} more (--show N shows more)")
        yield Text("")


def _example(decision: Decision, width: int) -> Iterator[RenderableType]:
    """What it was about in one line, and what it was decided by below."""
    text = " ".join(clean(decision.content or decision.event).split())
    if text:
        yield _line(f"- {text}", width)
    figures = [f"{name} {value:.3g}" for name, value in decision.figures.items()]
    beside = [f"memory {decision.memory[:8]}"] if decision.memory else []
    beside += [f"beside {other[:8]}" for other in decision.others[:3]]
    if figures or beside:
        yield _line("  " + ", ".join([*figures, *beside]), width, style="dim")


def _line(text: str, width: int, *, style: str = "") -> Text:
    line = Text(f"         {text}", style=style, no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line


def _by_step(result: IngestResult) -> dict[str, list[Decision]]:
    found: dict[str, list[Decision]] = {}
    for decision in result.decisions:
        found.setdefault(decision.step, []).append(decision)
    return found


def _counted(names: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
