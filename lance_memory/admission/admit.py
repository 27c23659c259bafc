"""Is it new? The same memory added twice is one memory.

See `record/sameness.py` for when two rows are. So importing a conversation again stores nothing,
also after it was consolidated away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.admission.known import KnownContents
from lance_memory.record.filters import any_of, is_one_of
from lance_memory.record.intake import Taken
from lance_memory.record.rows import one_array
from lance_memory.record.sameness import IDENTITY, Register, Row
from lance_memory.storage import Snapshot

__all__ = ["Admitted", "admit"]

_FEW = 200
"""Up to as many rows, their hashes are listed in a predicate; beyond, columns are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """`rows` are new; `known` maps the other positions to (id that is there, reason)."""

    rows: pa.Table
    known: Mapping[int, tuple[str, str]]


def admit(
    snapshot: Snapshot, taken: Taken, *, known_contents: KnownContents, now: datetime
) -> Admitted:
    """Part the rows that are new from the ones that `snapshot`, or the batch itself, holds.

    Raises:
        ConflictError: an id of the batch is taken by another content.
    """
    rows = taken.rows
    if not len(rows):
        return Admitted(rows=rows, known={})
    named = "id" in taken.given or rows["key"].null_count < len(rows)
    look = named or known_contents.may_hold(snapshot, taken.words)
    candidates = _candidates(snapshot, taken) if look else []
    if not candidates and _all_distinct(taken):
        return Admitted(rows=rows, known={})
    register = Register(now)
    for row in candidates:
        register.add(row)
    known: dict[int, tuple[str, str]] = {}
    for i, row in enumerate(rows.select(list(IDENTITY)).to_pylist()):
        found = register.find(row)
        if found is None:
            register.add(row)
        else:
            known[i] = found
    if not known:
        return Admitted(rows=rows, known={})
    keep = pa.array([i not in known for i in range(len(rows))], pa.bool_())
    return Admitted(rows=rows.filter(keep), known=known)


def _candidates(snapshot: Snapshot, taken: Taken) -> list[Row]:
    """The rows of the table that share an id, a key or a content hash with the batch."""
    rows, columns = taken.rows, list(IDENTITY)
    names = [name for name in ("id", "key") if name in taken.given] + ["content_hash"]
    wanted = {name: one_array(rows[name].drop_null()) for name in names}
    if len(rows) <= _FEW:
        parts = [is_one_of(n, values.to_pylist()) for n, values in wanted.items() if len(values)]
        few: list[Row] = snapshot.scan(any_of(*parts), columns=columns).to_pylist()
        return few
    found: list[Row] = []
    for batch in snapshot.batches(None, columns=columns, batch_size=65_536):
        masks = [pc.is_in(batch[name], values) for name, values in wanted.items()]
        found += batch.filter(reduce(pc.or_, masks)).to_pylist()
    return found


def _all_distinct(taken: Taken) -> bool:
    """Whether no two rows have a content or a key in common. True is certain."""
    if len(taken.rows) == 1:
        return True
    keys = taken.rows["key"].drop_null()
    same = (taken.words[1:] == taken.words[:-1]).any()
    return not same and bool(pc.count_distinct(keys).as_py() == len(keys))
