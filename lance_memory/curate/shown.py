"""A consolidation plan as a notebook shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_memory import html
from lance_memory.wording import counted, shown

if TYPE_CHECKING:
    from lance_memory.curate.plan import ClusterPlan, ConsolidationPlan

__all__ = ["plan"]

_MOST = 50
_LONGEST = 300


def plan(found: ConsolidationPlan) -> str:
    """Cluster by cluster what would be replaced, struck through, and by what."""
    told = [
        f"{counted(found.selected, 'memory', 'memories')} considered at version {found.version}",
        f"{counted(len(found.accepted), 'cluster')}, {len(found.skipped)} skipped",
        f"{counted(found.rows_saved, 'row')} saved",
    ]
    if recalled := found.recalled:
        told.append(f"recall of {counted(recalled.probes, 'probe')}: "
                    f"{recalled.before} -> {recalled.after}")  # fmt: skip
    if found.cut:
        told.append(f"not all clusters were looked at: {found.cut}")
    if len(found.clusters) > _MOST:
        told.append(f"the first {_MOST} clusters")
    head = ("memories", "cohesion", "what would become of them")
    rows = [(one.size, one.cohesion, _cluster(one)) for one in found.clusters[:_MOST]]
    return html.table(head, rows, caption="; ".join(told))


def _cluster(cluster: ClusterPlan) -> html.Markup:
    gone = "del" if cluster.derived else "span"
    said = [html.mark(shown(content, _LONGEST), gone) for content in cluster.contents]
    if cluster.derived:
        said.append(html.mark(str(cluster.derived["content"]), "ins"))
    else:
        said.append(html.mark(f"left alone: {cluster.reason}", "em"))
    if cluster.dropped:
        said.append(html.mark(f"dropped: {', '.join(cluster.dropped)}", "small"))
    return html.listing(said)
