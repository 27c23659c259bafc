"""The mark of a forgetting that has begun: what a run that was killed is finished from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.forget.results import Unfinished
from lance_memory.storage.place import Place
from lance_memory.storage.table import Table

__all__ = ["MARKER", "Marker", "is_mark", "place_of_store", "unfinished", "waiting"]

MARKER = "forget.json"
_WAITING, _JSON = "forget-", ".json"
_MANY = ("ids", "scopes", "texts", "plans", "left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """`forget.json` in the store's directory, there from the first change to the proof.

    It has ids, and the beginnings of texts: a later run has to prove as much as the first would
    have, and the rows are gone by then. It is for the owner alone, and goes when all is done.
    Where files that are not the store's hold something, it waits as `forget-<op_id>.json`, and
    other memories can be forgotten meanwhile.

    Attributes:
        op_id: names the forgetting, in the log too.
        at, actor, reason: who, when, why.
        ids: what goes.
        texts: the beginnings of what they say, see `Needles`.
        asked: SHA-256 of what was asked for, by which the same command is known again.
        scopes: sha256 of each scope that has no memory left.
        rebuilt: branch → the version from which on its indices have nothing of them.
        versions: branch → its versions that held the memories when it began.
        queries, plans: recorded queries, and saved plans, that were removed so far.
        left: files that are not the store's, and hold something still.
    """

    op_id: str
    at: datetime
    actor: str
    reason: str
    ids: tuple[str, ...]
    scopes: tuple[str, ...]
    rebuilt: dict[str, int]
    versions: dict[str, tuple[int, ...]]
    queries: int = 0
    plans: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    asked: str = ""
    left: tuple[str, ...] = ()

    @classmethod
    def read(cls, place: Place, name: str = MARKER) -> Marker | None:
        """The mark in the store's directory, if there is one.

        Raises:
            StorageError: it cannot be read, or is none.
        """
        try:
            return cls(**_told(json.loads(place.read(name))))
        except NotFoundError:
            return None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StorageError(
                f"{place.uri}/{name} says which forgetting was begun, and is damaged ({error!r}): "
                "restore it from a backup; or remove it, and forget the same memories again"
            ) from error

    def write(self, place: Place) -> Marker:
        """Put it there, in the place of the one before."""
        place.write(MARKER, self._json())
        return self

    def wait(self, place: Place, left: tuple[str, ...]) -> None:
        """All is done but for files that are not the store's: let others be forgotten meanwhile."""
        place.write(self._waiting, replace(self, left=left)._json())
        place.remove(MARKER)

    def remove(self, place: Place) -> None:
        """All is done."""
        place.remove(self._waiting)
        place.remove(MARKER)

    @property
    def _waiting(self) -> str:
        return f"{_WAITING}{self.op_id}{_JSON}"

    def _json(self) -> bytes:
        return json.dumps({**asdict(self), "at": self.at.isoformat()}).encode()

    def with_rebuilt(self, line: str, version: int) -> Marker:
        """The same, with one line's indices built again."""
        return replace(self, rebuilt={**self.rebuilt, line: version})


def is_mark(name: str) -> bool:
    """Whether a file of the store's directory is such a mark."""
    return name == MARKER or (
        name.startswith(_WAITING) and name.endswith(_JSON) and "/" not in name
    )


def waiting(place: Place) -> list[Marker]:
    """The forgettings that wait for files to be removed which are not the store's, oldest first.

    Raises:
        StorageError: a mark cannot be read.
    """
    names = [name for name in place.names() if is_mark(name) and name != MARKER]
    found = [marker for name in names if (marker := Marker.read(place, name))]
    return sorted(found, key=lambda marker: marker.at)


def place_of_store(table: Table) -> Place:
    """The store's directory."""
    return table.place


def unfinished(table: Table) -> Unfinished | None:
    """A forgetting of this store that has begun and is not done; None where there is none.

    One that another process is at just now is told too.
    """
    found = Marker.read(table.place) or next(iter(waiting(table.place)), None)
    if found is None:
        return None
    return Unfinished(
        op_id=found.op_id,
        at=found.at,
        actor=found.actor,
        reason=found.reason,
        ids=found.ids,
        left=found.left,
    )


def _told(told: Any) -> Mapping[str, Any]:
    """The fields of a mark; raises what is wrong with one."""
    if not isinstance(told, dict) or not isinstance(told.get("op_id"), str) or "ids" not in told:
        raise TypeError("no mark of a forgetting")
    many = {name: told[name] for name in _MANY if name in told}
    if not all(isinstance(v, list) and all(isinstance(i, str) for i in v) for v in many.values()):
        raise TypeError("its lists are none of texts")
    at = datetime.fromisoformat(told["at"])
    if at.tzinfo is None or not told["ids"] or not isinstance(told["rebuilt"], dict):
        raise TypeError("it has no ids, no time of a zone, or no account of what was done")
    if not isinstance(told["versions"], dict):
        raise TypeError("its versions are no object")
    versions = {name: tuple(numbers) for name, numbers in told["versions"].items()}
    return {
        **told,
        **{name: tuple(values) for name, values in many.items()},
        "at": at,
        "versions": versions,
    }
