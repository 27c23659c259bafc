"""Whether anybody gives a scope a grant: the cheap look before all else.

The rows of a fragment never change, they only go, and come back with a rollback. So each fragment
is looked at once in a process, its deleted rows too, and where there is no grant a look costs what
listing the fragments does: 0.3 ms of 26, where a read of the grants takes 10.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from lance_memory.record.keys import GRANT
from lance_memory.record.memory import Scope
from lance_memory.storage import Snapshot

__all__ = ["may_receive"]

Place: TypeAlias = tuple[int, tuple[str, ...]]
"""A fragment, and the files that it consists of."""

Receivers: TypeAlias = frozenset[tuple[str, str, str]]
"""Of some grants: tenant, user and agent."""

_LOCK: Final = threading.Lock()
_GIVEN: Final[WeakKeyDictionary[object, dict[Place, Receivers]]] = WeakKeyDictionary()
"""Of each open branch, by what is kept of its columns: fragment → whom its grants are for."""


def may_receive(snapshot: Snapshot, scope: Scope) -> bool:
    """Whether a grant to this scope may stand at a version; False: there is certainly none."""
    places = [(number, snapshot.files(number)) for number in sorted(snapshot.fragment_ids)]
    with _LOCK:
        known = _GIVEN.setdefault(snapshot.kept.columns, {})
        new = [place for place in places if place not in known]
        found = {place: known.get(place, frozenset()) for place in places}
    if new:
        found |= _read(snapshot, new)
        with _LOCK:
            _GIVEN[snapshot.kept.columns] = found  # those of other versions go
    return any(
        tenant == scope.tenant and user in ("", scope.user) and agent in ("", scope.agent)
        for receivers in found.values()
        for tenant, user, agent in receivers
    )


def _read(snapshot: Snapshot, places: Collection[Place]) -> dict[Place, Receivers]:
    return {place: _receivers(snapshot, place[0]) for place in places}


def _receivers(snapshot: Snapshot, fragment: int) -> Receivers:
    """Whom the grants of a fragment are for; the wide column is read where there are some."""
    keys = snapshot.ever_in([fragment], columns=["key"])["key"]
    if not pc.any(pc.starts_with(keys, GRANT)).as_py():
        return frozenset()
    rows = snapshot.ever_in([fragment], columns=["key", "tenant", "metadata"])
    given = rows.filter(pc.starts_with(rows["key"], GRANT)).to_pylist()
    told = [(row["tenant"], json.loads(row["metadata"] or "{}")) for row in given]
    return frozenset(
        (tenant, str(one.get("with_user")), str(one.get("with_agent")))
        for tenant, one in told
        if isinstance(one, dict)  # else it was written by hand, and gives nothing
    )
