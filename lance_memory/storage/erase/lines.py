"""Take memories out of one line: its rows, its files, its indices, its earlier versions."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import ConflictError
from lance_memory.record.lineage import SUPERSEDED_BY
from lance_memory.record.memory import SCOPE_LEVELS, State
from lance_memory.record.rows import changed, one_array
from lance_memory.storage.change import Audit, ChangeSet
from lance_memory.storage.engine import translated
from lance_memory.storage.erase.stains import Stains
from lance_memory.storage.rewritten import branch_of

if TYPE_CHECKING:
    from datetime import datetime

    from lance_memory.storage.snapshot import Snapshot
    from lance_memory.storage.table import Table

__all__ = ["LOST_SUCCESSOR", "drop_tag", "erase", "move_tag", "rewritten", "unpointed"]

LOST_SUCCESSOR = "the memory that took its place was forgotten"
"""Why a source is retired whose successor is gone."""

_PATIENCE = 8
"""So many times as many attempts as another write has: it has no caller who would try again."""


def erase(
    table: Table, ids: Collection[str], stains: Stains, audit: Callable[[], Audit], *, apart: bool
) -> int:
    """One version of the line without these memories; also where it has none of them.

    The files that hold rows of theirs, deleted ones too, or rows that point to them, are replaced
    by files without. A row that points to one of them points there no more (see `unpointed`).

    Args:
        table: the line.
        ids: what goes.
        stains: knows which files hold them.
        audit: made for each attempt.
        apart: replace also the files that lie with another line.

    Returns:
        The version that it made.

    Raises:
        ConflictError: other writers were faster too often; nothing was written.
        StorageError: the disk is full, or a file is damaged.
    """
    look = _Look(table, ids, stains, apart=apart)

    def plan(snapshot: Snapshot) -> ChangeSet:
        made = audit()
        afresh = look.stained(snapshot)
        going, pointing = look.touched(snapshot, afresh)
        updates = unpointed(pointing, ids, now=made.at)
        return ChangeSet(audit=made, updates=updates, deletes=going, afresh=afresh)

    for _ in range(_PATIENCE):
        with suppress(ConflictError):
            return table.commit(plan, any_schema=True)[1].version
    return table.commit(plan, any_schema=True)[1].version


def unpointed(rows: pa.Table, ids: Collection[str], *, now: datetime) -> pa.Table:
    """The rows without what points to these ids, notes included.

    What was superseded by one of them is retired: it does not come back by itself, and `unretire`
    brings it back.
    """
    gone = pa.array(sorted(ids), pa.string())
    lost = pc.is_in(rows[SUPERSEDED_BY], gone)

    def instead(name: str, value: Any) -> Any:
        kind = rows.schema.field(name).type
        return pc.if_else(lost, pa.scalar(value, kind), rows[name])

    away = frozenset(ids)
    edges = [
        None if told is None else [edge for edge in told if edge["target"] not in away]
        for told in rows["relationships"].to_pylist()
    ]
    values = {
        SUPERSEDED_BY: instead(SUPERSEDED_BY, None),
        "state": instead("state", str(State.RETIRED)),
        "state_at": instead("state_at", now),
        "state_reason": instead("state_reason", LOST_SUCCESSOR),
        "relationships": pa.array(edges, rows.schema.field("relationships").type),
    }
    return changed(rows, values, now=now)


def rewritten(table: Table, version: int) -> str:
    """The branch, made where there is none, on which a tagged version is to be rewritten."""
    name = branch_of(table.branch, version)
    with translated(f"rewrite version {version}"):
        if name not in table.branch_refs():
            table.for_refs().create_branch(name, table.reference(version))
    return name


def move_tag(table: Table, name: str, branch: str, version: int) -> None:
    """Put a tag, the store's own too, on a version of a branch, and both on the disk.

    The version that it was on is removed next.
    """
    with translated(f"move tag {name!r}"):
        table.for_refs().tags.update(name, (branch, version))
    table.on_branch(branch).settle()
    table.settle_files([f"{table.root}/_refs/tags/{name}.json"])


def drop_tag(table: Table, name: str) -> None:
    """Remove a tag, the store's own too."""
    with translated(f"remove tag {name!r}"):
        table.own().dataset.tags.delete(name)


class _Look:
    """What is there to take out of a line, kept from one attempt to the next.

    Writers make versions as fast as a look that begins anew. So a later attempt looks at nothing
    that it knows; fragments that came meanwhile are left to the next round.
    """

    def __init__(self, table: Table, ids: Collection[str], stains: Stains, *, apart: bool) -> None:
        self._table = table
        self._ids = pa.array(sorted(ids), pa.string())
        self._stains = stains
        self._apart = apart
        self._stained: frozenset[int] | None = None
        self._read: tuple[list[str], tuple[pa.Table, pa.Table]] | None = None

    def stained(self, snapshot: Snapshot) -> frozenset[int]:
        """The fragments with a file that names one of the memories, or has to be left behind."""
        if self._stained is None:
            self._stained = frozenset(
                number
                for number in snapshot.fragment_ids
                if _stained(self._table, snapshot, number, self._stains, apart=self._apart)
            )
        if not self._stained <= snapshot.fragment_ids:  # somebody compacted
            self._stained = None
            return self.stained(snapshot)
        return self._stained

    def touched(self, snapshot: Snapshot, fragments: Collection[int]) -> tuple[pa.Table, pa.Table]:
        """The rows that go, with their scopes, and the whole rows that point to one of them."""
        key = [json.dumps(snapshot.fragment(i).metadata.to_json()) for i in sorted(fragments)]
        if self._read is None or self._read[0] != key:
            self._read = key, self._touched(snapshot, fragments)
        return self._read[1]

    def _touched(self, snapshot: Snapshot, fragments: Collection[int]) -> tuple[pa.Table, pa.Table]:
        columns = ["id", *SCOPE_LEVELS, SUPERSEDED_BY, "relationships"]
        if not fragments:
            empty = snapshot.scan(columns=snapshot.schema.names, limit=0)
            return empty, empty
        rows = snapshot.of_fragments(fragments, columns=columns).combine_chunks()
        gone = pc.is_in(rows["id"], self._ids)
        named = set(rows["id"].filter(pc.is_in(rows[SUPERSEDED_BY], self._ids)).to_pylist())
        edges = one_array(rows["relationships"])
        targets = pc.struct_field(pc.list_flatten(edges), "target")
        parents = pc.list_parent_indices(edges).filter(pc.is_in(targets, self._ids))
        named.update(rows["id"].take(parents).to_pylist())
        going = rows.filter(gone).select(["id", *SCOPE_LEVELS])
        others = sorted(named - set(going["id"].to_pylist()))
        return going, snapshot.by_ids(others, columns=snapshot.schema.names)


def _stained(table: Table, snapshot: Snapshot, number: int, stains: Stains, *, apart: bool) -> bool:
    """Whether a file of the fragment names one of the memories, or has to be left behind."""
    files = snapshot.fragment(number).metadata.files
    if apart and any(file.base_id is not None for file in files):
        return True
    bases = snapshot.dataset.base_paths() if any(f.base_id is not None for f in files) else {}
    homes = {None: table.home, **{n: base.path.rstrip("/") for n, base in bases.items()}}
    return any(stains.in_rows(f"{homes[file.base_id]}/data/{file.path}") for file in files)
