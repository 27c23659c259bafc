"""The mark of a forgetting that has begun: what a run that was killed is finished from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.forget.results import Unfinished
from lance_memory.storage.place import Place
from lance_memory.storage.table import Table

__all__ = ["MARKER", "Marker", "place_of_store", "unfinished"]

MARKER = "forget.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """`forget.json` in the store's directory, there from the first change to the proof.

    It has ids, which are no content, and nothing else of the memories; it goes when all is done.

    Attributes:
        op_id: names the forgetting, in the log too.
        at, actor, reason: who, when, why.
        ids: what goes.
        scopes: sha256 of each scope that has no memory left.
        rebuilt: branch → the version from which on its indices have nothing of them.
        versions: branch → its versions that held the memories when it began.
        queries, plans: recorded queries, and saved plans, that were removed so far.
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

    @classmethod
    def read(cls, place: Place) -> Marker | None:
        """The mark in the store's directory, if there is one.

        Raises:
            StorageError: it cannot be read.
        """
        try:
            told = json.loads(place.read(MARKER))
        except NotFoundError:
            return None
        except ValueError as error:
            raise StorageError(f"{place.uri}/{MARKER} is damaged ({error})") from error
        return cls(
            **{
                **told,
                "at": datetime.fromisoformat(told["at"]),
                "ids": tuple(told["ids"]),
                "scopes": tuple(told["scopes"]),
                "plans": tuple(told["plans"]),
                "versions": {name: tuple(numbers) for name, numbers in told["versions"].items()},
            }
        )

    def write(self, place: Place) -> Marker:
        """Put it there, in the place of the one before."""
        told = {**asdict(self), "at": self.at.isoformat()}
        place.write(MARKER, json.dumps(told).encode())
        return self

    def with_rebuilt(self, line: str, version: int) -> Marker:
        """The same, with one line's indices built again."""
        return replace(self, rebuilt={**self.rebuilt, line: version})


def place_of_store(table: Table) -> Place:
    """The store's directory."""
    return Place(table.uri, storage_options=table.storage_options)


def unfinished(table: Table) -> Unfinished | None:
    """A forgetting of this store that has begun and is not done; None where there is none.

    One that another process is at just now is told too.
    """
    found = Marker.read(place_of_store(table))
    if found is None:
        return None
    return Unfinished(
        op_id=found.op_id, at=found.at, actor=found.actor, reason=found.reason, ids=found.ids
    )
