"""Processes that write while another one distils: every memory is in a snapshot in the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lance_memory import ConflictError, Distiller, DistillOptions
from lance_memory.record.times import utc_now
from lance_memory.testing import check

CHILD = Path(__file__).with_name("distill_child.py")

pytestmark = pytest.mark.disk


def told_by_snapshots(store):
    """Of the visible snapshots of sessions and of days: id of a source → hash of what it said."""
    found = {"session": {}, "day": {}}
    for memory in store.list(source="distilled"):
        made_from = [e for e in memory.relationships if e.relation == "derived_from"]
        told = {edge.target: edge.note for edge in made_from}
        found[memory.metadata["snapshot"]["of"]].update(told)
    return found.values()


@pytest.mark.parametrize("few", [-1, 5_000], ids=["by notes", "over everything"])
def test_nothing_is_lost_between_a_pass_and_who_writes_meanwhile(
    tmp_path, reopen, monkeypatch, few
):
    """The watermark never passes an event that is in no snapshot, and the last pass has them all."""
    monkeypatch.setattr("lance_memory.agent.distill.reached._FEW", few)
    store = reopen(tmp_path / "store", clock=utc_now)
    distiller = Distiller(store, options=DistillOptions(min_sources=1))
    command = [sys.executable, CHILD, store.uri]
    children = [
        subprocess.Popen([*command, tenant, "10"], stdout=subprocess.PIPE) for tenant in "tu"
    ]
    for child in children:
        assert child.stdout.readline() == b"begun\n"
    while any(child.poll() is None for child in children):
        try:
            distiller.distill()
        except ConflictError:  # they were faster, several times
            continue
        mark = {tenant: store.order.status(tenant).distilled for tenant in "tu"}
        events = {m.id for m in store.list() if m.seq is not None and m.seq <= mark[m.tenant]}
        assert events <= {id for told in told_by_snapshots(store) for id in told}
    assert [child.wait() for child in children] == [0, 0]
    for child in children:
        child.stdout.close()
    distiller.distill()
    rows = {m.id: m.content_hash for m in store.list(states="active") if m.source != "distilled"}
    assert len(rows) == 20
    for told in told_by_snapshots(store):
        assert told == rows
    assert [store.order.status(tenant).distilled for tenant in "tu"] == [9, 9]
    assert distiller.distill(whole=True).snapshots == ()
    check(store, history=False)
