"""The query log of a store: what was asked, and which memories answered."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_memory.record.decay import Uses
from lance_memory.record.memory import SCOPE_LEVELS, Scope
from lance_memory.record.results import SearchResult
from lance_memory.storage import Table
from lance_memory.storage.journal import Journal
from lance_memory.usage.counts import COUNTED, recalls, uses
from lance_memory.usage.options import QueryRecording
from lance_memory.usage.recorded import (
    ABOUT,
    SCHEMA,
    Chosen,
    Entry,
    RecordedQuery,
    about,
    holding,
    to_values,
)
from lance_memory.usage.recorder import Recorder, RecordingStatus

__all__ = ["QueryLog", "Recording"]

_NAME = "queries"


class Recording:
    """How a store's searches are written down. What was, `MemoryStore.queries` tells.

    It is shared by the handles of a store, whatever their scope, so nothing is read through it.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder

    @property
    def status(self) -> RecordingStatus | None:
        """How it goes; None where nothing is recorded."""
        return self._recorder.status if self._recorder else None

    def flush(self) -> None:
        """Write what is pending, and wait until it is durable; `status` tells what was lost."""
        if self._recorder:
            self._recorder.flush()

    def close(self) -> None:
        """`flush`, and record nothing more."""
        if self._recorder:
            self._recorder.close()


class QueryLog:
    """The recorded queries of one store, in its side table `queries`. Thread-safe.

    It is shared by the handles of a store; it records if they were opened with `record_queries`.
    It knows every scope, and is told by its caller which one is meant.

    Attributes:
        recording: what may be handed out.
    """

    def __init__(self, journal: Journal, *, recorder: Recorder | None = None) -> None:
        self._journal = journal
        self._recorder = recorder
        self.recording = Recording(recorder)
        self._known: dict[tuple[Scope, datetime | None], Uses] = {}
        self._known_version = -1
        self._lock = threading.Lock()

    @classmethod
    def of(cls, table: Table, *, recording: QueryRecording | None = None) -> QueryLog:
        """The log beside a table; without `recording` it is only read."""
        journal = Journal(table.uri, _NAME, schema=SCHEMA, storage_options=table.storage_options)
        return cls(journal, recorder=Recorder(journal, recording) if recording else None)

    def reading(self) -> QueryLog:
        """The same log for a handle that records nothing."""
        return QueryLog(self._journal)

    @property
    def records(self) -> bool:
        """Whether searches are recorded."""
        return self._recorder is not None

    def record(
        self,
        results: Sequence[SearchResult],
        *,
        texts: Sequence[str],
        scope: Scope,
        branch: str,
        at: datetime,
        k: int,
        offset: int,
    ) -> None:
        """Take the answers of a search; they are written later, see `Recorder`."""
        if self._recorder is None or not k:
            return
        self._recorder.add(
            [
                Entry(
                    at=at,
                    query=text,
                    mode=result.mode,
                    scope=scope,
                    branch=branch,
                    version=result.version,
                    k=k,
                    offset=offset,
                    memory_ids=[hit.memory.id for hit in result.hits],
                    scores=[hit.score for hit in result.hits],
                )
                for text, result in zip(texts, results, strict=True)
            ]
        )

    def flush(self) -> None:
        """See `Recording.flush`."""
        self.recording.flush()

    def queries(self, chosen: Chosen, *, limit: int | None = None) -> list[RecordedQuery]:
        """The chosen queries, newest first."""
        rows = self._journal.scan(chosen.predicate)
        rows = rows.filter(pa.array(chosen.mask(rows)))
        return to_values(rows.sort_by([("id", "descending")]).slice(0, limit))

    def forget(self, chosen: Chosen) -> int:
        """Remove the chosen queries, also from the files; how many."""
        return self._journal.delete(chosen.mask, columns=chosen.columns, predicate=chosen.predicate)

    def count_about(self, ids: Sequence[str], texts: Sequence[str], scopes: Sequence[Scope]) -> int:
        """How many queries have to do with these memories, see `about`."""
        self.flush()
        return int(np.count_nonzero(about(self._journal.scan(columns=ABOUT), ids, texts, scopes)))

    def forget_about(
        self, ids: Sequence[str], texts: Sequence[str], scopes: Sequence[Scope]
    ) -> int:
        """Remove the queries that have to do with these memories, also from the files; how many."""
        self.flush()
        return self._journal.delete(lambda rows: about(rows, ids, texts, scopes), columns=ABOUT)

    def answered(
        self, ids: Collection[str], *, within: Scope
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The recorded questions that these memories answered, newest first, and what answered."""
        rows = self._journal.scan(
            Chosen(scope=within).predicate, columns=["id", "query", "memory_ids"]
        )
        rows = rows.filter(pc.not_equal(rows["query"], ""))
        rows = rows.filter(pa.array(holding(rows, ids))).sort_by([("id", "descending")])
        for row in rows.to_pylist():
            yield row["query"], tuple(row["memory_ids"])

    def rows(self, scope: Scope, *, until: datetime | None) -> pa.Table:
        """What is counted of the queries that were kept to `scope` or to a part of it."""
        chosen = Chosen(scope=scope, until=until)
        rows = self._journal.scan(chosen.predicate, columns=[*COUNTED, *SCOPE_LEVELS])
        return rows.filter(pa.array(chosen.mask(rows)))

    def uses(self, scope: Scope, *, until: datetime | None) -> Uses:
        """How often each memory was recalled by them; kept until something is written."""
        version = self._journal.version
        with self._lock:
            if version != self._known_version:
                self._known, self._known_version = {}, version
            known = self._known.get((scope, until))
        if known is None:
            known = uses(recalls(self.rows(scope, until=until)))
            with self._lock:
                if version == self._known_version:
                    self._known[scope, until] = known
        return known
