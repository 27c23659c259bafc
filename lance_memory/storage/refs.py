"""What a caller's name for a memory names: a full id, a live key, or the beginning of an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.errors import AmbiguousError, InvalidInputError, NotFoundError
from lance_memory.record import filters
from lance_memory.record.filters import Filter
from lance_memory.record.memory import Scope
from lance_memory.storage.snapshot import Snapshot

__all__ = ["row_named", "rows_named"]

_SHOWN = 5


def row_named(snapshot: Snapshot, ref: str, *, scope: Scope, moment: datetime) -> pa.Table:
    """The one row within `scope` that `ref` names, embedding included.

    Raises:
        NotFoundError, AmbiguousError: none, or several.
    """
    if not isinstance(ref, str) or not ref:
        raise InvalidInputError(f"a memory is named by its id or key, not by {ref!r}")
    inside = Filter(scope=scope, states="any").predicate(moment)
    live = Filter(scope=scope, states="live", equal={"key": ref})
    for predicate in (
        filters.all_of(filters.equals("id", ref), inside),
        live.predicate(moment),
        filters.all_of(filters.prefixed("id", ref), inside),
    ):
        rows = snapshot.scan(predicate, columns=snapshot.schema.names)
        if len(rows) == 1:
            return rows
        if len(rows) > 1:
            ids = sorted(rows["id"].to_pylist())
            raise AmbiguousError(
                f"{ref!r} names {len(ids)} memories: {', '.join(ids[:_SHOWN])}"
                f"{', ...' if len(ids) > _SHOWN else ''}; give a full id",
                candidates=ids,
            )
    raise NotFoundError(
        f"there is no memory {ref!r} in {scope} at version {snapshot.version}; a key finds the "
        "live memory alone, an id one in any state; `lmem list --state any` shows them all"
    )


def rows_named(
    snapshot: Snapshot, refs: str | Iterable[str], *, scope: Scope, moment: datetime
) -> pa.Table:
    """The rows within `scope` that `refs` name, embeddings included, each once.

    Raises:
        NotFoundError, AmbiguousError: for the first of them that names none, or several.
    """
    names = [refs] if isinstance(refs, str) else list(dict.fromkeys(refs))
    if not names:
        raise InvalidInputError("name at least one memory")
    direct = snapshot.by_ids(names, columns=snapshot.schema.names)
    for level, value in scope.given().items():
        direct = direct.filter(pc.equal(direct[level], value))
    found = set(direct["id"].to_pylist())
    rest = [name for name in names if name not in found]
    if len(rest) > _SHOWN:
        return _with_keys(snapshot, direct, rest, scope=scope, moment=moment)
    others = [row_named(snapshot, name, scope=scope, moment=moment) for name in rest]
    extra = {rows["id"][0].as_py(): rows for rows in others}
    return pa.concat_tables([direct, *(rows for i, rows in extra.items() if i not in found)])


def _with_keys(
    snapshot: Snapshot, direct: pa.Table, names: Sequence[str], *, scope: Scope, moment: datetime
) -> pa.Table:
    """`direct` and the rows of many keys, found in one look."""
    live = Filter(scope=scope, states="live").predicate(moment)
    one_of = filters.is_one_of("key", [name for name in names if isinstance(name, str)])
    keyed = snapshot.scan(filters.all_of(live, one_of), columns=snapshot.schema.names)
    holders = Counter(keyed["key"].to_pylist())
    others = [
        row_named(snapshot, name, scope=scope, moment=moment)
        for name in names
        if holders[name] != 1
    ]
    single = keyed.filter(pa.array([holders[k] == 1 for k in keyed["key"].to_pylist()], pa.bool_()))
    merged = pa.concat_tables([direct, single, *others])
    first = {identifier: i for i, identifier in reversed(list(enumerate(merged["id"].to_pylist())))}
    return merged.take(pa.array(sorted(first.values()), pa.int64()))
