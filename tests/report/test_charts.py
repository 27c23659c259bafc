"""Charts draw what their frame says, draw nothing of nothing, and take what others wrote as text."""

import json

import polars as pl
import pytest

from lance_memory import InvalidInputError, report
from lance_memory.report.charts.style import short
from lance_memory.report.svg import drawn

EVIL = "</text><script>alert(1)</script> \"x\" 'y' & datum['z'] \\"


def points(kinds, clusters):
    size = len(kinds)
    return pl.DataFrame(
        {
            "x": [float(i) for i in range(size)],
            "y": [float(i % 3) for i in range(size)],
            "kind": kinds,
            "cluster": pl.Series(clusters, dtype=pl.Int64),
            "content": [EVIL] * size,
        }
    )


DRAWN = {
    "scopes": lambda: report.scopes(
        pl.DataFrame({"name": [EVIL, "b"], "visible": [3, 0], "hidden": [0, 2]})
    ),
    "duplicates": lambda: report.duplicates(
        pl.DataFrame({"content": [EVIL] * 3, "size": [9, 2, 2]})
    ),
    "recalled": lambda: report.recalled(pl.DataFrame({"content": [EVIL], "recalls": [2]})),
    "map": lambda: report.embedding_map(points([EVIL, "semantic", "semantic"], [0, 0, None])),
    "clusters": lambda: report.embedding_map(
        points(["semantic"] * 20, [*range(9), *range(9), None, None]), by="cluster"
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_memories_say_is_text_in_a_drawing(name):
    found = drawn(DRAWN[name](), prefix=name)
    assert "<script" not in found
    assert found.startswith("<svg ")
    if name != "clusters" and name != "map":
        assert "&lt;/text&gt;&lt;" in found


def test_charts_of_nothing_are_nothing():
    versions = pl.DataFrame(
        schema={
            **dict.fromkeys(("version", "inserted", "updated", "deleted", "memories"), pl.Int64),
            "upkeep": pl.Boolean,
        }
    )
    nothing = pl.DataFrame(
        schema={
            "version": pl.Int64,
            **dict.fromkeys(("id", "operation", "state_before", "state_after"), pl.String),
        }
    )
    memories = pl.DataFrame(
        schema={"visible": pl.Boolean, "recalls": pl.Int64, "happened_at": pl.Datetime("us", "UTC")}
    )
    listed = pl.DataFrame(schema={"content": pl.String, "size": pl.Int64, "recalls": pl.Int64})
    changed = pl.DataFrame(schema={"kind": pl.String, "change": pl.String})
    tree = pl.DataFrame(schema={"row": pl.Int64})
    now = pl.Series(["2025-01-01"]).str.to_datetime(time_zone="UTC")[0]
    assert [
        report.growth(versions),
        report.churn(versions),
        report.lifecycle(nothing),
        report.states(nothing),
        report.passes(report.passes_frame([])),
        report.scopes(pl.DataFrame(schema={"name": pl.String})),
        report.staleness(memories, now=now),
        report.recalls(memories),
        report.duplicates(listed),
        report.recalled(listed),
        report.embedding_map(points([], [])),
        report.lineage(tree),
        report.difference(changed),
        report.time_travel(report.time_travel_frame([])),
    ] == [None] * 14


def test_a_scoped_handle_that_tells_no_counts_has_growth_from_its_history(made):
    """Guards: the counts of versions are null through a scoped handle, and nothing was drawn."""
    ann = made.store.scoped(user="ann")
    assert report.growth(ann.versions_frame()) is None
    assert report.growth(report.written_frame(ann.history_frame())) is not None


def test_labels_that_are_cut_alike_stay_apart():
    told = short(
        pl.DataFrame({"content": ["abcdefghij 1", "abcdefghij 2", "z"]}), "content", pixels=40
    )
    assert told["content"].to_list() == ["abcde\u2026", "abcde\u2026 (2)", "z"]


def test_a_lineage_hangs_each_memory_on_its_own(made):
    store = made.store
    start = store.list(source="consolidated")[0]
    told = report.lineage_frame(store.lineage(start.id))
    sources = told.filter(pl.col("direction") == "source")
    assert told.filter(pl.col("direction") == "itself")["id"].to_list() == [start.id]
    assert set(sources["parent"].to_list()) == {0}
    assert len(sources) == len(start.relationships)
    seen_from_below = report.lineage_frame(store.lineage(sources["id"][0]))
    above = seen_from_below.filter(pl.col("direction") == "successor")
    assert above["id"].to_list() == [start.id]
    assert report.lineage(told) is not None


def test_a_long_lineage_is_cut_around_the_memory_itself(made):
    store = made.store
    start = store.list(source="consolidated")[0]
    told = report.lineage_frame(store.lineage(start.id), at_most=2)
    assert (len(told), told["row"].to_list()) == (2, [0, 1])
    assert start.id in told["id"].to_list()
    assert report.lineage(told) is not None


def test_a_difference_tells_each_change(made):
    found = made.store.diff("start")
    told = report.difference_frame(found)
    counts = dict(told["change"].value_counts().rows())
    assert counts == {
        name: number
        for name, number in (
            ("inserted", len(found.inserted)),
            ("updated", len(found.updated)),
            ("deleted", len(found.removed)),
        )
        if number
    }
    assert report.difference(told) is not None


def test_a_letter_is_one_memory_at_every_version(made):
    store = made.store
    versions = store.versions_frame(upkeep=False)
    answers = [
        report.Asked(at=at, result=store.at(version).search("green tea", k=4))
        for version, at in versions.select("version", "at").head(3).iter_rows()
    ]
    told = report.time_travel_frame(answers)
    assert (
        told.select("letter", "id").n_unique() == told["letter"].n_unique() == told["id"].n_unique()
    )
    assert told["rank"].min() == 1
    assert [a.result.version for a in answers] == told["version"].unique().sort().to_list()
    assert report.time_travel(told) is not None


def test_the_newest_version_has_room_in_the_chart_of_the_states():
    """A step at the last point would have no width: what a pass superseded was not seen."""
    told = [(1, "add", "a", None, "active"), (4, "retire", "a", "active", "retired")]
    columns = ["version", "operation", "id", "state_before", "state_after"]
    history = pl.DataFrame(told, schema=columns, orient="row")
    spec = report.states(history).to_dict()
    (rows,) = spec["datasets"].values()
    drawn = sorted({row["version"] for row in rows if row["state"] == "retired"})
    assert drawn[0] <= 4 < drawn[-1] <= spec["encoding"]["x"]["scale"]["domain"][1]


def test_the_newest_version_has_room_in_the_chart_of_growth():
    """Guards: the newest step was a bare vertical line at the edge."""
    versions = pl.DataFrame(
        {
            "version": [3, 6],
            "inserted": [356, 40],
            "updated": [0, 84],
            "deleted": [0, 0],
            "memories": [356, 396],
            "upkeep": [False, False],
        }
    )
    spec = report.growth(versions).to_dict()
    area, dots = sorted(spec["datasets"].values(), key=len, reverse=True)
    assert [(row["until"], row["memories"]) for row in dots] == [(3, 356), (6, 396)]
    assert [(row["until"], row["memories"]) for row in area] == [(3, 356), (6, 396), (7, 396)]
    assert '"domain": [2.88, 7.0]' in json.dumps(spec)
    alone = report.growth(versions.head(1)).to_dict()["datasets"].values()
    assert sorted([row["until"] for row in rows] for rows in alone) == [[3], [3, 3 + 1 / 3]]


def test_a_pass_that_was_reverted_says_so_in_its_chart():
    told = pl.DataFrame(
        {
            "version": [6, 10],
            "sources": [84, 84],
            "derived": [40, 40],
            "saved": [44, 44],
            "kept": [1.0, 1.0],
            "holds": ["reverted", "yes"],
        }
    )
    for width in (300, 900):
        spec = report.passes(told, width=width).to_dict()
        rows = next(iter(spec["datasets"].values()))
        assert [row["pass"] for row in rows] == ["version 6, reverted", "version 10"]
    assert [row["text"] for row in rows] == [
        "saves nothing any more",
        "\u221244 rows, 100% of recall kept",
    ]


def test_a_kind_of_one_point_is_drawn_over_the_others_and_larger():
    """Guards: the legend named a kind, and its only point was not to be found."""
    kinds = ["episodic"] * 40 + ["procedural"] + ["episodic"] * 40
    spec = report.embedding_map(points(kinds, [None] * 81)).to_dict()
    (rows,) = spec["datasets"].values()
    assert len(rows) == 81
    assert {row["size"] for row in rows[:-1]} == {34}
    assert (rows[-1]["part"], rows[-1]["size"]) == ("procedural", 90)
    marks = drawn(report.embedding_map(points(kinds, [None] * 81)), prefix="map")
    assert marks.count('fill="var(--c1)"') == 80 + 1  # and one in the legend
    assert marks.count('fill="var(--c2)"') == 1 + 1


def test_a_map_is_coloured_by_any_column():
    told = points(["semantic"] * 9, [None] * 9)
    told = told.with_columns(pl.Series("user", ["ann", "ann", "bob", None, "", "c", "d", "e", "f"]))
    spec = report.embedding_map(told, by="user").to_dict()
    assert spec["encoding"]["color"]["scale"]["domain"] == [
        *("(none)", "ann", "bob", "c", "d"),
        "all others",
    ]
    (rows,) = spec["datasets"].values()
    assert sorted(row["part"] for row in rows if row["content"]) == [
        *("(none)", "(none)", "all others", "all others", "ann", "ann", "bob", "c", "d"),
    ]
    seen = told.with_columns(pl.lit(value=True).alias("seen"))
    assert report.embedding_map(seen, by="seen") is not None
    with pytest.raises(InvalidInputError, match="no column 'agent'; they have x, y, kind"):
        report.embedding_map(told, by="agent")
