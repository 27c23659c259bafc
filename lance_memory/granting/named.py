"""One row by what names it, of those that a predicate lets be found."""

from __future__ import annotations

import pyarrow as pa

from lance_memory.errors import AmbiguousError, InvalidInputError, NotFoundError
from lance_memory.record.filters import all_of, equals, prefixed
from lance_memory.storage import Snapshot
from lance_memory.wording import some

__all__ = ["one_named"]


def one_named(snapshot: Snapshot, ref: str, *, within: str | None, nothing: str) -> pa.Table:
    """The one row within a predicate that has this id, this key, or this beginning of an id.

    Raises:
        NotFoundError, AmbiguousError: none, or several.
    """
    if not isinstance(ref, str) or not ref:
        raise InvalidInputError(f"a memory is named by its id or key, not by {ref!r}")
    for named in (equals("id", ref), equals("key", ref), prefixed("id", ref)):
        rows = snapshot.scan(all_of(named, within), columns=snapshot.schema.names)
        if len(rows) == 1:
            return rows
        if len(rows) > 1:
            ids = sorted(rows["id"].to_pylist())
            raise AmbiguousError(
                f"{ref!r} names {len(ids)}: {some(ids, 5)}; give a full id", candidates=ids
            )
    raise NotFoundError(nothing)
