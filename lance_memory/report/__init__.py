"""Analysis: frames of a store's history and contents in, charts and one page out.

For notebooks: `from lance_memory import report`. Each chart is an Altair chart (extra `analysis`),
and None where there is nothing to draw; each frame is Polars.

    report.growth(store.versions_frame())
    report.lifecycle(store.history_frame())
    report.passes(report.passes_frame(store.log(), store.history_frame()))
    report.lineage(report.lineage_frame(store.lineage(ref)))

`MemoryStore.report` puts all of it in one HTML page.
"""

from lance_memory.report.charts.contents import (
    duplicates,
    embedding_map,
    recalled,
    recalls,
    scopes,
    staleness,
)
from lance_memory.report.charts.stories import difference, lineage, time_travel
from lance_memory.report.charts.versions import churn, growth, lifecycle, passes, states
from lance_memory.report.findings import Findings
from lance_memory.report.frames import scopes as scopes_frame
from lance_memory.report.frames import written as written_frame
from lance_memory.report.page import Page, page
from lance_memory.report.passes import passes as passes_frame
from lance_memory.report.points import Plane, plane
from lance_memory.report.stories import Asked
from lance_memory.report.stories import difference as difference_frame
from lance_memory.report.stories import lineage as lineage_frame
from lance_memory.report.stories import time_travel as time_travel_frame

__all__ = [
    "Asked",
    "Findings",
    "Page",
    "Plane",
    "churn",
    "difference",
    "difference_frame",
    "duplicates",
    "embedding_map",
    "growth",
    "lifecycle",
    "lineage",
    "lineage_frame",
    "page",
    "passes",
    "passes_frame",
    "plane",
    "recalled",
    "recalls",
    "scopes",
    "scopes_frame",
    "staleness",
    "states",
    "time_travel",
    "time_travel_frame",
    "written_frame",
]
