"""What ranking asks of rows, in memory: sessions, actors, times, importance, expiry.

The physical rows of a fragment never change, they only get deleted; so each fragment is read once,
and what a version has deleted of it is looked up besides. About 40 bytes a row.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_memory.record.memory import Scope
from lance_memory.storage.engine import translated
from lance_memory.storage.ranking.parts import NO_TIME, PART_COLUMNS, Integers, Part, number_of

if TYPE_CHECKING:
    from lance_memory.storage.snapshot import Snapshot

__all__ = ["KeptColumns", "RankingColumns", "SessionRows"]

Addresses: TypeAlias = NDArray[np.uint64]
Live: TypeAlias = NDArray[np.bool_]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SPARE_ROWS = 100_000


class _Fragment(NamedTuple):
    """What a fragment of one version consists of: its data files, and which deletions."""

    number: int
    files: tuple[str, ...]
    deletion: tuple[int, int] | None
    rows: int


class SessionRows(NamedTuple):
    """The rows of some sessions: addresses, number of the session, and what orders them. [n]."""

    addresses: Addresses
    sessions: NDArray[np.uint64]
    happened: Integers
    created: Integers
    seq: Integers


class KeptColumns:
    """The parts of a branch's fragments, and what was last deleted of them. Thread-safe.

    Parts that the newest version does not have are kept while they have no more rows than it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: dict[tuple[int, tuple[str, ...]], Part] = {}
        self._live: dict[int, tuple[_Fragment, Live]] = {}

    def of(self, snapshot: Snapshot) -> RankingColumns:
        """The columns of one version; reads the fragments that are new."""
        fragments = list(_fragments(snapshot))
        with self._lock:
            unknown = [one for one in fragments if (one.number, one.files) not in self._parts]
            if unknown:
                self._read(snapshot, unknown)
                self._forget_many(fragments)
            return RankingColumns(
                {
                    one.number: (self._parts[one.number, one.files], self._left(snapshot, one))
                    for one in fragments
                }
            )

    def _read(self, snapshot: Snapshot, fragments: Sequence[_Fragment]) -> None:
        """All in one pass: a table's first search reads every fragment."""
        with snapshot.naming(f"read version {snapshot.version}"):
            rows = snapshot.dataset.scanner(
                columns=PART_COLUMNS,
                fragments=[snapshot.fragment(one.number) for one in fragments],
                include_deleted_rows=True,
                with_row_id=True,
                scan_in_order=True,
            ).to_table()
        start = 0
        for one in fragments:
            part = rows.slice(start, one.rows).combine_chunks()
            start += one.rows
            self._parts[one.number, one.files] = Part.of(part)
            if one.deletion is not None:
                live = np.asarray(part["_rowid"].is_valid().to_numpy(), dtype=np.bool_)
                self._live[one.number] = one, live

    def _left(self, snapshot: Snapshot, one: _Fragment) -> Live | None:
        """Which rows the version has left of a fragment; None: all."""
        if one.deletion is None:
            return None
        known = self._live.get(one.number)
        if known is None or known[0] != one:
            known = self._live[one.number] = one, _live(snapshot, one)
        return known[1]

    def _forget_many(self, present: Sequence[_Fragment]) -> None:
        """Drop the parts of other versions once they are more than those of this one."""
        here = {(one.number, one.files) for one in present}
        others = [key for key in self._parts if key not in here]
        spare = sum(one.rows for one in present) + _SPARE_ROWS
        if sum(len(self._parts[key].group) for key in others) > spare:
            self._parts = {key: self._parts[key] for key in here}
            numbers = {one.number for one in present}
            self._live = {n: live for n, live in self._live.items() if n in numbers}


@dataclass(frozen=True)
class RankingColumns:
    """The rows of one version: fragment → its part, and which of the part's rows are there."""

    parts: Mapping[int, tuple[Part, Live | None]]
    _actors: dict[Scope, frozenset[str]] = field(default_factory=dict)

    def sessions(self, addresses: Addresses) -> NDArray[np.uint64]:
        """A number for each row's session, equal for equal whole scopes; 0 for none."""
        found = np.zeros(len(addresses), dtype=np.uint64)
        for chosen, part, rows in self._located(addresses):
            found[chosen] = part.session[part.group[rows]]
        return found

    def said_by(self, addresses: Addresses, actors: Collection[str]) -> NDArray[np.bool_]:
        """Whether each row is of one of these actors."""
        wanted = pa.array(sorted(actors), pa.string())
        found = np.zeros(len(addresses), dtype=np.bool_)
        for chosen, part, rows in self._located(addresses):
            named = pc.is_in(part.groups["actor"], wanted).to_numpy()
            found[chosen] = named[part.group[rows]]
        return found

    def happened(self, addresses: Addresses) -> NDArray[np.datetime64]:
        """`event_at` of each row, or `created_at` where there is none; datetime64[us]."""
        found = np.zeros(len(addresses), dtype="datetime64[us]")
        for chosen, part, rows in self._located(addresses):
            found[chosen] = part.happened[rows].astype("datetime64[us]")
        return found

    def importance(self, addresses: Addresses) -> NDArray[np.float64]:
        """Importance of each row, 0..1."""
        found = np.zeros(len(addresses))
        for chosen, part, rows in self._located(addresses):
            found[chosen] = part.importance[rows]
        return found

    def derived(self, addresses: Addresses) -> NDArray[np.bool_]:
        """Whether consolidation made each row."""
        found = np.zeros(len(addresses), dtype=np.bool_)
        for chosen, part, rows in self._located(addresses):
            if part.derived is not None:
                found[chosen] = part.derived[rows]
        return found

    def sources(self, ids: Sequence[str]) -> tuple[NDArray[np.intp], Addresses]:
        """The rows that these memories superseded: whose, as places in `ids`; and addresses."""
        wanted = np.fromiter(map(number_of, ids), dtype=np.uint64, count=len(ids))
        owners, found = [np.empty(0, np.intp)], [np.empty(0, np.uint64)]
        for number, (part, live) in self.parts.items():
            starts = np.searchsorted(part.successors, wanted, side="left")
            ends = np.searchsorted(part.successors, wanted, side="right")
            for place in np.flatnonzero(ends > starts):
                rows = part.replaced[starts[place] : ends[place]]
                rows = rows if live is None else rows[live[rows]]
                owners.append(np.full(len(rows), place))
                found.append(rows.astype(np.uint64) | np.uint64(number << 32))
        return np.concatenate(owners), np.concatenate(found)

    def rows_of(self, sessions: NDArray[np.uint64]) -> SessionRows:
        """Every row of these sessions, in whatever state."""
        found = [_NO_ROWS]
        for number, (part, live) in self.parts.items():
            groups = np.flatnonzero(np.isin(part.session, sessions))
            slices = [part.by_group[part.starts[g] : part.starts[g + 1]] for g in groups]
            if slices:
                rows = np.concatenate(slices)
                found.append(_rows(number, part, rows if live is None else rows[live[rows]]))
        return SessionRows(
            addresses=np.concatenate([one.addresses for one in found]),
            sessions=np.concatenate([one.sessions for one in found]),
            happened=np.concatenate([one.happened for one in found]),
            created=np.concatenate([one.created for one in found]),
            seq=np.concatenate([one.seq for one in found]),
        )

    def actors(self, scope: Scope) -> frozenset[str]:
        """Who has said or done something within `scope`."""
        known = self._actors.get(scope)
        if known is None:
            names: set[str] = set()
            for part, live in self.parts.values():
                names.update(_actors(part, live, scope))
            known = self._actors[scope] = frozenset(names - {""})
        return known

    def actors_of(self, addresses: Addresses) -> frozenset[str]:
        """Who has said or done what these rows say."""
        names: set[str] = set()
        for _, part, rows in self._located(addresses):
            groups = np.unique(part.group[rows])
            names.update(part.groups["actor"].take(pa.array(groups)).to_pylist())
        return frozenset(names - {""})

    def latest_expiry(self, moment: datetime) -> datetime | None:
        """The latest time, up to `moment`, at which an active or pending memory has expired.

        None while none has. Between two expiries it stays the same, and so do the predicates
        that name it in place of the moment.
        """
        until = (moment - _EPOCH) // timedelta(microseconds=1)
        past = int(np.searchsorted(self._expiries, until, side="right"))
        return _EPOCH + timedelta(microseconds=int(self._expiries[past - 1])) if past else None

    @cached_property
    def _expiries(self) -> Integers:
        """When active and pending rows expire or have expired, ascending."""
        found = [np.empty(0, dtype=np.int64)]
        for part, live in self.parts.values():
            if part.expires is not None:
                found.append(part.expires if live is None else part.expires[live])
        every = np.concatenate(found)
        return np.sort(every[every != NO_TIME])

    def _located(
        self, addresses: Addresses
    ) -> Iterator[tuple[NDArray[np.bool_], Part, NDArray[np.uint64]]]:
        """For each fragment among them: which of the addresses, its part, and the rows in it."""
        numbers = addresses >> np.uint64(32)
        rows = addresses & np.uint64(0xFFFFFFFF)
        for number in np.unique(numbers):
            chosen = numbers == number
            yield chosen, self.parts[int(number)][0], rows[chosen]


_NO_ROWS = SessionRows(
    addresses=np.empty(0, dtype=np.uint64),
    sessions=np.empty(0, dtype=np.uint64),
    happened=np.empty(0, dtype=np.int64),
    created=np.empty(0, dtype=np.int64),
    seq=np.empty(0, dtype=np.int64),
)


def _fragments(snapshot: Snapshot) -> Iterator[_Fragment]:
    with translated(f"list the fragments of version {snapshot.version}"):
        for number in sorted(snapshot.fragment_ids):
            told = snapshot.fragment(number).metadata
            gone = told.deletion_file
            yield _Fragment(
                number,
                tuple(file.path for file in told.files),
                None if gone is None else (gone.read_version, gone.id),
                told.physical_rows,
            )


def _live(snapshot: Snapshot, one: _Fragment) -> NDArray[np.bool_]:
    with snapshot.naming(f"read version {snapshot.version}"):
        rows = snapshot.dataset.scanner(
            columns=[], fragments=[snapshot.fragment(one.number)], with_row_address=True
        ).to_table()
    live = np.zeros(one.rows, dtype=np.bool_)
    live[rows["_rowaddr"].to_numpy() & np.uint64(0xFFFFFFFF)] = True
    return live


def _actors(part: Part, live: Live | None, scope: Scope) -> list[str]:
    chosen = np.ones(len(part.groups), dtype=np.bool_)
    if live is not None:
        chosen = np.bincount(part.group[live], minlength=len(part.groups)) > 0
    for level, name in scope.given().items():
        chosen &= pc.equal(part.groups[level], name).to_numpy()
    names: list[str] = pc.unique(part.groups["actor"].filter(pa.array(chosen))).to_pylist()
    return names


def _rows(number: int, part: Part, rows: NDArray[np.uint32]) -> SessionRows:
    return SessionRows(
        addresses=rows.astype(np.uint64) | np.uint64(number << 32),
        sessions=part.session[part.group[rows]],
        happened=part.happened[rows],
        created=part.created[rows],
        seq=part.seq[rows],
    )
