"""What stands right before and after some memories in their sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from lance_memory.record.filters import all_of, is_one_of
from lance_memory.record.results import Neighbour
from lance_memory.record.rows import to_memories
from lance_memory.search.candidates import Addresses
from lance_memory.search.places import places
from lance_memory.storage import Snapshot

__all__ = ["around"]

_NONE = np.empty(0, dtype=np.uint64)

_FURTHER = 8
"""Rows beyond those that are asked for, on each side, in case that some do not pass."""


class _Window(NamedTuple):
    """The addresses around one memory, nearest first."""

    of: str
    earlier: Addresses
    later: Addresses


def around(
    snapshot: Snapshot, ids: Collection[str], *, before: int, after: int, predicate: str | None
) -> list[Neighbour]:
    """The nearest rows that pass, on each side of each memory, in the order of `ids`.

    A session is one whole scope, as for ranking. On each side a few rows that do not pass are
    stepped over, not any number.
    """
    windows = list(_windows(snapshot, ids, before, after))
    every = [part for window in windows for part in (window.earlier, window.later)]
    near = np.unique(np.concatenate([_NONE, *every]))
    if not len(near):
        return []
    names = dict(zip(near.tolist(), snapshot.take(near, ["id"])["id"].to_pylist(), strict=True))
    asked = all_of(is_one_of("id", names.values()), predicate)
    passing = set(snapshot.scan(asked, columns=["id"])["id"].to_pylist())
    chosen = [
        (window.of, sign * place, address)
        for window in windows
        for addresses, count, sign in ((window.earlier, before, -1), (window.later, after, 1))
        for place, address in enumerate(
            islice((a for a in addresses.tolist() if names[a] in passing), count), start=1
        )
    ]
    shown = np.unique(np.array([address for *_, address in chosen], dtype=np.uint64))
    rows = to_memories(snapshot.take(shown, snapshot.columns)) if len(shown) else []
    memories = dict(zip(shown.tolist(), rows, strict=True))
    return [
        Neighbour(memory=memories[address], of=of, offset=offset) for of, offset, address in chosen
    ]


def _windows(
    snapshot: Snapshot, ids: Collection[str], before: int, after: int
) -> Iterator[_Window]:
    located = snapshot.locate(ids)
    addresses = dict(zip(located.rows["id"].to_pylist(), located.addresses.tolist(), strict=True))
    columns = snapshot.ranking_columns
    own = columns.sessions(located.addresses)
    every = places(columns, np.unique(own[own > 0]))
    order = np.lexsort((every.positions, columns.sessions(every.addresses)))
    stand = every.addresses[order]
    sessions = columns.sessions(stand)
    place_of = {address: place for place, address in enumerate(stand.tolist())}
    for identifier in dict.fromkeys(ids):
        place = place_of.get(addresses.get(identifier))
        if place is None:  # no such memory, or one of no session
            continue
        same = sessions == sessions[place]
        begin, end = place - before - _FURTHER, place + after + _FURTHER + 1
        first, later = slice(max(0, begin), place), slice(place + 1, end)
        yield _Window(
            identifier,
            earlier=stand[first][same[first]][::-1] if before else _NONE,
            later=stand[later][same[later]] if after else _NONE,
        )
