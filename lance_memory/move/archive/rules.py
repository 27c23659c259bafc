"""The rules that rows of a store keep among each other, for those that come out of an archive."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa

from lance_memory.errors import RejectedError
from lance_memory.record import soundness
from lance_memory.record.soundness import FOLLOWED, Edge
from lance_memory.storage import Snapshot
from lance_memory.wording import some, worded

__all__ = ["refuse_unsound"]

_SHOWN = 5
_ENDS = ["id", "superseded_by", "relationships"]


def refuse_unsound(rows: pa.Table, snapshot: Snapshot, *, where: str, moment: datetime) -> None:
    """Refuse rows that a store could only have by mistake, by the rules of the doctor.

    References to memories that are nowhere are none: deletion leaves them, and a filter.

    Args:
        rows: those that are new to the store, under the ids that they are to have.
        snapshot: the store's.
        where: the archive, for messages.
        moment: decides which memories are live.

    Raises:
        RejectedError: names the rule, and the memories that break it.
    """
    for told, ids in (
        (
            "{n} [memory shares its|memories share their] key with another live one",
            soundness.keys_held_twice(rows, moment),
        ),
        (
            "{n} [memory is|memories are] superseded and without successor, or the reverse",
            soundness.unlike_their_state(rows),
        ),
        (
            "{n} [memory leads back to itself|memories lead back to themselves] by successors",
            _in_circles(rows, snapshot),
        ),
    ):
        if ids:
            raise RejectedError(
                f"{where}: {worded(told, len(ids))}: {some(ids, _SHOWN)}; nothing was written: "
                "mend the store that it was made from (`lmem doctor`), and export it again"
            )


def _in_circles(rows: pa.Table, snapshot: Snapshot) -> list[str]:
    """Those of the rows that lead back to themselves, by way of rows of the store too."""
    own = set(rows["id"].to_pylist())
    found = _followed(rows)
    waiting, seen = {edge.target for edge in found} - own, own
    while waiting:
        seen = seen | waiting
        there = _followed(snapshot.by_ids(sorted(waiting), columns=_ENDS))
        found += there
        waiting = {edge.target for edge in there} - seen
    circles = (soundness.in_circles(_of(found, names)) for names in (("superseded_by",), FOLLOWED))
    return sorted(own.intersection(i for ids in circles for i in ids))


def _followed(rows: pa.Table) -> list[Edge]:
    return soundness.successions(rows) + _of(soundness.edges(rows), FOLLOWED)


def _of(found: Collection[Edge], relations: Collection[str]) -> list[Edge]:
    return [edge for edge in found if edge.relation in relations]
