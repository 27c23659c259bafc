"""What the charts are drawn from: small frames made of larger ones. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.report.shown import shown

__all__ = [
    "AGES",
    "RECALLS",
    "ages",
    "churn",
    "flows",
    "level_to_show",
    "recalls",
    "scopes",
    "spread",
    "states",
    "told_apart",
    "written",
]

_BINS = 60
"""Versions side by side in a chart at most; of more, neighbours count together."""

_LABELS, _LETTER, _BETWEEN = 9, 7, 10
"""Versions with a label at most; pixels of a digit, and between two labels."""

_DAY = timedelta(days=1)
AGES = {
    "under a day": _DAY,
    "1 to 6 days": 7 * _DAY,
    "1 to 4 weeks": 30 * _DAY,
    "1 to 3 months": 91 * _DAY,
    "3 to 12 months": 365 * _DAY,
    "over a year": timedelta.max,
}
"""How old → younger than that."""

RECALLS = {"never": 0, "once": 1, "2 to 4 times": 4, "5 to 9 times": 9, "10 times or more": 2**62}
"""How often a memory answered → at most so often."""

_CHURN = ("inserted", "updated", "deleted")
_REMOVED = "removed"
"""What a history says of a memory that is no row any more."""

_DELETED = "deleted"
"""The word for it on the page, as in the glossary."""


def churn(versions: pl.DataFrame, *, at_most: int = _BINS) -> pl.DataFrame:
    """What versions did to rows: `version`, `until`, `inserted`, `updated`, `deleted`, `memories`.

    Args:
        versions: as `versions_frame` gives them.
        at_most: rows; of more versions, neighbours are counted together: a row is about those from
            `version` to `until`, and `memories` is how many there were after the last of them.
    """
    told = versions.filter(~pl.col("upkeep")).sort("version")
    size = max(1, -(-len(told) // at_most))
    return (
        told.with_row_index("place")
        .group_by(pl.col("place") // size, maintain_order=True)
        .agg(
            pl.col("version").first(),
            pl.col("version").last().alias("until"),
            *(pl.col(name).sum() for name in _CHURN),
            pl.col("memories").last(),
        )
        .drop("place")
    )


def written(history: pl.DataFrame) -> pl.DataFrame:
    """What versions did to the memories of a history: as `versions_frame`, as far as it can tell.

    Through a scoped handle the log tells no counts of a version that touched others too; the
    history of the scope does. Columns: `version`, `at`, `operation`, `inserted`, `updated`,
    `deleted`, `memories`, `upkeep` (false) and `reason` ("").
    """
    come = pl.col("change").is_in(["added", "kept"])
    gone = pl.col("change") == _REMOVED
    count = pl.Int64()
    told = history.group_by("version").agg(
        pl.col("at", "operation").first(),
        come.sum().cast(count).alias("inserted"),
        (~come & ~gone).sum().cast(count).alias("updated"),
        gone.sum().cast(count).alias("deleted"),
    )
    return told.sort("version").with_columns(
        (pl.col("inserted") - pl.col("deleted")).cum_sum().alias("memories"),
        pl.lit(value=False).alias("upkeep"),
        pl.lit("").alias("reason"),
    )


def states(history: pl.DataFrame, *, at_most: int = _BINS) -> pl.DataFrame:
    """How many memories were in each state after each version: `version`, `state`, `memories`.

    Args:
        history: as `history_frame` gives it.
        at_most: versions; of more, those at even steps, and the last.
    """
    one = pl.len().cast(pl.Int64)
    gone = history.group_by("version", pl.col("state_before").alias("state")).agg((-one).alias("n"))
    come = history.group_by("version", pl.col("state_after").alias("state")).agg(one.alias("n"))
    moved = pl.concat([gone, come]).drop_nulls("state")
    moved = moved.group_by("version", "state").agg(pl.col("n").sum())
    numbers = moved.select("version").unique().sort("version")
    grid = numbers.join(moved.select("state").unique(), how="cross")
    counted = (
        grid.join(moved, on=["version", "state"], how="left")
        .sort("state", "version")
        .with_columns(pl.col("n").fill_null(0).cum_sum().over("state").alias("memories"))
    )
    kept = spread(numbers["version"].to_list(), at_most)
    return counted.filter(pl.col("version").is_in(kept)).select("version", "state", "memories")


def flows(history: pl.DataFrame) -> pl.DataFrame:
    """How memories came and what they are now: `came`, `state`, `memories`, the largest first.

    `came` is the operation that brought them, or "before" where that was cleaned up; `state` is
    their last one, or "deleted" of what is no row any more.
    """
    order = history.sort("version")
    each = order.group_by("id", maintain_order=True).agg(
        pl.col("operation").first().fill_null("before").alias("came"),
        pl.col("state_after").last().fill_null(_DELETED).alias("state"),
    )
    found = each.group_by("came", "state").agg(pl.len().cast(pl.Int64).alias("memories"))
    return found.sort(["memories", "came", "state"], descending=[True, False, False])


def scopes(memories: pl.DataFrame, level: str, *, at_most: int | None = None) -> pl.DataFrame:
    """How many memories each scope has: `name`, `visible`, `hidden`, the largest first.

    Args:
        memories: with the level as a column, and `visible`.
        level: tenant, user, agent, session or run.
        at_most: names; None: all.
    """
    seen = pl.col("visible").cast(pl.Int64)
    counted = memories.group_by(pl.col(level).alias("name")).agg(
        seen.sum().alias("visible"), (1 - seen).sum().alias("hidden")
    )
    order = counted.sort(pl.col("visible") + pl.col("hidden"), "name", descending=[True, False])
    first = order if at_most is None else order.head(at_most)
    return first.with_columns(_shown("name", 40))


def level_to_show(memories: pl.DataFrame, fixed: Iterable[str] = ()) -> str:
    """The first scope level, from the tenant down, at which these memories differ.

    Args:
        memories: with the five levels as columns.
        fixed: levels that the reader is kept to.
    """
    free = [level for level in SCOPE_LEVELS if level not in set(fixed)]
    several = (level for level in free if memories[level].n_unique() > 1)
    return next(several, "user" if "user" in free else free[0] if free else SCOPE_LEVELS[-1])


def ages(memories: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """How old the visible memories are: `age`, `recalled`, `memories`, in the order of `AGES`.

    Args:
        memories: with `visible`, `happened_at` and `recalls`.
        now: the moment that their age is told of.
    """
    old = pl.lit(now) - pl.col("happened_at")
    told = memories.filter(pl.col("visible")).with_columns(
        _bucket(old, AGES).alias("age"), (pl.col("recalls") > 0).alias("recalled")
    )
    return _counted(told, "age", AGES, "recalled")


def recalls(memories: pl.DataFrame) -> pl.DataFrame:
    """How many visible memories answered how often: `recalls`, `memories`, as in `RECALLS`."""
    seen = memories.filter(pl.col("visible"))
    below = {name: most + 1 for name, most in RECALLS.items()}
    told = seen.with_columns(_bucket(pl.col("recalls"), below).alias("recalls"))
    return _counted(told, "recalls", RECALLS)


def _bucket(value: pl.Expr, below: Mapping[str, object]) -> pl.Expr:
    """The first name whose bound the value is below; the last one has none."""
    names = list(below)
    found: pl.Expr = pl.lit(names[-1])
    for name in reversed(names[:-1]):
        found = pl.when(value < pl.lit(below[name])).then(pl.lit(name)).otherwise(found)
    return found


def _counted(told: pl.DataFrame, name: str, order: Iterable[str], *more: str) -> pl.DataFrame:
    found = told.group_by(name, *more).agg(pl.len().cast(pl.Int64).alias("memories"))
    place = {one: number for number, one in enumerate(order)}
    rank = pl.col(name).replace_strict(place, return_dtype=pl.Int64)
    return found.sort(rank, *more)


def spread(numbers: Sequence[int], at_most: int) -> list[int]:
    """Of ascending numbers at most so many, evenly, with the first and the last."""
    if len(numbers) <= at_most:
        return list(numbers)
    last = len(numbers) - 1
    return sorted({numbers[round(i * last / (at_most - 1))] for i in range(at_most)})


def told_apart(changed: pl.DataFrame, *, pixels: float) -> list[int]:
    """The versions that get a label on an axis, ascending: the greatest, the first, the last, ...

    Args:
        changed: `version` and its `weight`, the larger the more it changed.
        pixels: between two neighbouring versions. A label that would touch one of a version that
            matters more is left out.
    """
    ends = [changed["version"].min(), changed["version"].max()]
    weight = pl.col("weight")
    order = changed.sort(
        weight == weight.max(),
        pl.col("version").is_in(ends),
        weight,
        "version",
        descending=[True, True, True, False],
    )
    found: list[int] = []
    for version in order["version"].to_list():
        room = _LETTER * len(str(ends[-1])) + _BETWEEN
        if all(abs(version - other) * pixels >= room for other in found):
            found.append(int(version))
    return sorted(found[:_LABELS])


def _shown(column: str, longest: int) -> pl.Expr:
    return pl.col(column).map_elements(lambda text: shown(text, longest), return_dtype=pl.String)
