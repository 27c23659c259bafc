"""What the checks look at: one branch of a store, each part of it read once and when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from lance_memory.govern.doctor.health import HealthFinding, Severity
from lance_memory.record import soundness
from lance_memory.storage import Snapshot, Table
from lance_memory.storage.disk.moved import Moved, look_for_moved
from lance_memory.storage.files.inventory import Inventory, VersionOf, take_stock
from lance_memory.wording import worded

__all__ = ["SHOWN", "Patient", "finding"]

SHOWN = 5


class Patient:
    """A store at its newest version.

    Attributes:
        table: the branch that is looked at; files are the whole store's.
        moment: the present.
        model: the name of the handle's embedder; None where it has none that works.
        deep: whether every file is read.
        dead_jobs: gives the ids of the jobs of the write path that have died; their ledger stands
            beside the table.
        spoiled: a file of the newest version's rows is damaged, as the deep look has found: reading
            it may end this process, so it is not read.
    """

    def __init__(
        self,
        table: Table,
        *,
        moment: datetime,
        model: str | None,
        deep: bool,
        dead_jobs: Callable[[], Sequence[str]],
    ) -> None:
        self.table = table
        self.moment = moment
        self.model = model
        self.deep = deep
        self.dead_jobs = dead_jobs
        self.spoiled = False

    @cached_property
    def snapshot(self) -> Snapshot:
        """The newest version."""
        return self.table.latest()

    @cached_property
    def rows(self) -> pa.Table:
        """The columns of it that the rules of rows are about."""
        return self.snapshot.scan(columns=soundness.COLUMNS)

    @cached_property
    def inventory(self) -> Inventory:
        """The files of the store."""
        return take_stock(self.table)

    @cached_property
    def moved(self) -> Moved:
        """The branches that look for files where the store once was."""
        return look_for_moved(self.table)

    @property
    def here(self) -> VersionOf:
        """The version that is looked at, among those of all branches."""
        return self.table.branch, self.snapshot.version


def finding(  # the parts of a sentence that every check tells
    code: str,
    severity: Severity,
    message: str,
    ids: Iterable[str],
    *,
    fixable: bool = False,
    advice: str = "",
) -> list[HealthFinding]:
    """What is true of these ids or files, as one finding; none where there are none.

    The message is worded as `worded` takes it.
    """
    listed = list(ids)
    if not listed:
        return []
    found = HealthFinding(
        code=code,
        severity=severity,
        message=worded(message, len(listed)),
        count=len(listed),
        sample=tuple(listed[:SHOWN]),
        fixable=fixable,
        advice=advice,
    )
    return [found]
