"""The hot tier: what users who are at it read again and again, in this process's memory."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np

from lance_memory.record.arguments import whole
from lance_memory.record.memory import Memory
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore
from lance_memory.telemetry import count
from lance_memory.view import MemoryView

__all__ = ["HotFigures", "HotTier", "visible"]

_T = TypeVar("_T")

_LOOK: Final = 8
"""Versions in between whose log is read; a read of the table costs as much as reading about ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HotFigures:
    """What a tier has done so far, and what it holds.

    Attributes:
        hits: reads that were answered from memory.
        misses: reads that went to the store.
        entries: values that are held.
        bytes: what they take, roughly; 0 where nobody asked for a bound.
    """

    hits: int = 0
    misses: int = 0
    entries: int = 0
    bytes: int = 0

    @property
    def rate(self) -> float:
        """The share of reads that were answered from memory, 0..1; 0 where there were none."""
        return self.hits / (self.hits + self.misses) if self.hits else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A value, and the version that it was read at, or a later one."""

    version: int
    value: Any


class HotTier:
    """A bounded read-through cache of values that follow from a store. Safe to share by threads.

    A value is known by the store, the branch, the handle's scope, and what it is. It is right in
    whatever process: at each read the store is asked for its newest version (some 15 µs), and where
    there is another one, the log of the versions in between is read. A value stays as long as none
    of them wrote within its scope, so what other users do costs a user nothing; beyond 8 versions,
    or where the log does not tell, it is read anew. The value that was used longest ago goes first.

    `telemetry` counts `hot.hits` and `hot.misses`, by what was read and by tenant.

    Args:
        max_entries: values at most.
        max_bytes: what they take at most, roughly: texts, vectors and 64 bytes for each part. None:
            it is not looked at. A value that is larger by itself is never kept.

    Raises:
        InvalidInputError: a bound is below 1.
    """

    def __init__(self, *, max_entries: int = 4_096, max_bytes: int | None = None) -> None:
        self._most = whole("max_entries", max_entries, least=1)
        self._room = None if max_bytes is None else whole("max_bytes", max_bytes, least=1)
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = 0

    @classmethod
    def of(cls, store: MemoryStore) -> HotTier:
        """The tier of an opened store, which all its scoped handles share; gone when they are."""
        ledger = store._whole_ledger()
        with _OWN_LOCK:
            found = _OWN.get(ledger)
            if found is None:
                found = _OWN[ledger] = cls()
            return found

    @property
    def figures(self) -> HotFigures:
        """Hits, misses, and what is held."""
        with self._lock:
            return HotFigures(
                hits=self._hits,
                misses=self._misses,
                entries=len(self._held),
                bytes=self._bytes,
            )

    def read(
        self,
        store: MemoryView,
        what: str | tuple[Hashable, ...],
        load: Callable[[], _T],
        *,
        shown: Callable[[_T, datetime], _T] | None = None,
    ) -> _T:
        """The value that `load` gives, from memory where it can still be no other.

        Args:
            store: the handle that `load` reads through; of a view `at` a version nothing is kept.
            what: which value; of a tuple, the first part is what figures call it.
            load: reads it. It is shared: give what nobody changes, such as a tuple.
            shown: what of a value is to be seen at a moment. Time passes without a version, so
                where it matters (`expires_at`, `valid_*`), `load` reads whatever the moment
                (`states=("active",)`), and this leaves out what has ended: see `visible`.

        Returns:
            The value as of the newest version, at the store's present moment.
        """
        if not isinstance(store, MemoryStore):
            return _at(load(), shown, store)
        name = what if isinstance(what, str) else str(what[0])
        key = (store.store_id, store.uri, store.branch_name, store.scope, what)
        version = store.version  # before it is loaded: the value is of this version, or a later one
        found = cast("_Read | None", self.find(key))
        if found is not None and self._is_still_right(store, found.version, version):
            if found.version != version:
                self.keep(key, _Read(version=version, value=found.value))
            self.tell(name, store.scope.tenant, hit=True)
            return _at(cast("_T", found.value), shown, store)
        self.tell(name, store.scope.tenant, hit=False)
        value = load()
        self.keep(key, _Read(version=version, value=value))
        return _at(value, shown, store)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    # -- for layers that know themselves when a value is outdated ------------------------------

    def find(self, key: Hashable) -> object | None:
        """What is held under a key."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return cast("object", found[0])

    def keep(self, key: Hashable, value: object) -> None:
        """Hold a value, and let go of those that were used longest ago."""
        size = 0 if self._room is None else _size(value)
        with self._lock:
            _, before = self._held.pop(key, (None, 0))
            self._bytes -= before
            if self._room is not None and size > self._room:
                return
            self._held[key] = value, size
            self._bytes += size
            while len(self._held) > self._most or self._bytes > (self._room or sys.maxsize):
                _, (_, gone) = self._held.popitem(last=False)
                self._bytes -= gone

    def tell(self, what: str, tenant: str, *, hit: bool) -> None:
        """Count one read."""
        with self._lock:
            self._hits += hit
            self._misses += not hit
        count("hot.hits" if hit else "hot.misses", what=what, tenant=tenant)

    def _is_still_right(self, store: MemoryStore, read: int, newest: int) -> bool:
        return read == newest or not store.changed_since(read, look=_LOOK)


_OWN: WeakKeyDictionary[Any, HotTier] = WeakKeyDictionary()
"""Of opened stores, by their ledgers, which all handles of one share."""

_OWN_LOCK = threading.Lock()


def visible(memories: tuple[Memory, ...], moment: datetime) -> tuple[Memory, ...]:
    """Those that are visible at the moment: active, and not expired."""
    return tuple(memory for memory in memories if memory.visible_at(moment))


def _at(value: _T, shown: Callable[[_T, datetime], _T] | None, store: MemoryView) -> _T:
    return value if shown is None else shown(value, utc(store.clock(), "clock()"))


def _size(value: object) -> int:
    """Bytes, roughly."""
    match value:
        case str() | bytes():
            return 64 + len(value)
        case np.ndarray():
            return 128 + int(value.nbytes)
        case Mapping():
            return 64 + sum(_size(key) + _size(one) for key, one in value.items())
        case _ if is_dataclass(value):
            return 64 + sum(_size(getattr(value, field.name)) for field in fields(value))
        case Iterable():
            return 64 + sum(map(_size, value))
        case _:
            return 64
