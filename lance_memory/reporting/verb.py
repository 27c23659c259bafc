"""The verb: a store's report is gathered, drawn, and written to a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lance_memory.errors import InvalidInputError
from lance_memory.files import make_private, saving, write_whole
from lance_memory.move.private import local_place, refuse_inside_a_store
from lance_memory.record.arguments import whole
from lance_memory.reporting.gather import Asking, Progress, Steps, findings
from lance_memory.storage import naming
from lance_memory.view import MemoryView

__all__ = ["ReportResult", "Reporting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportResult:
    """A report that was written.

    Attributes:
        uri: of the store.
        version: that it is about.
        at: the moment that it is about.
        path: of the file, absolute.
        bytes: of the file.
        sections: the titles of those that have something to show.
        empty: the titles of the others.
    """

    uri: str
    version: int
    at: datetime
    path: str
    bytes: int
    sections: tuple[str, ...]
    empty: tuple[str, ...]


class Reporting(MemoryView):
    """A handle that shows what its memories are like."""

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        at: int | str | datetime | None = None,
        question: str = "",
        ref: str | None = None,
        before: int | str | datetime | None = None,
        sample: int = 2_000,
        seed: int = 0,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> ReportResult:
        """Write pictures and tables of this scope as one HTML page, to be read offline.

        Growth and churn, the flow of states, near-duplicates and ages, scopes, consolidation
        passes, what is recalled, a map of the embeddings, one memory's lineage, two versions, and
        one question at five versions. Of a version or tag it is the same page again, as long as
        those versions and the recorded queries are there. Makes no version; of large stores it
        compares the newest 20,000 visible memories, and says so.

        Args:
            path: of the file; for its owner alone, as is a directory that is made for it.
            at: the version, tag or moment that it is about; by default the present.
            question: that is asked at five versions; by default the newest recorded one.
            ref: the memory whose lineage is shown, as for `get`; by default the visible one that
                was made from most others.
            before: the version, tag or moment that `at` is compared with; by default the one
                before the newest consolidation pass, or before the newest write.
            sample: memories on the map at most.
            seed: of the choice of that sample.
            overwrite: replace a file that is there.
            progress: called with (done, in all, what is being done).

        Raises:
            InvalidInputError: something is at `path` already, or it is inside a store; `sample` is
                below 2.
            NotFoundError, AmbiguousError: as for `get` and `at`.
            MissingExtraError: Altair or vl-convert is not installed (extra `analysis`).
            StorageError: the file cannot be written. Nothing is left of it.

        Danger: the page has contents of memories, for whoever opens it.
        """
        from lance_memory.report import page

        place = _place(path, overwrite=overwrite)
        whole("sample", sample, least=2)
        self._queries.flush()
        view = self._present() if at is None else MemoryView.at(self, at)
        asked = Asking(question=question, ref=ref, before=before, sample=sample, seed=seed)
        steps = Steps(progress)
        with naming.holding(self._table, view.version):
            found = findings(view, asked, steps)
        steps("drawing")
        made = page(found)
        with saving(f"write the report {place}"):
            make_private(place.parent)
            write_whole(place, made.html)
        steps("written")
        return ReportResult(
            uri=self.uri,
            version=found.version,
            at=found.at,
            path=str(place),
            bytes=len(made.html.encode()),
            sections=made.shown,
            empty=made.empty,
        )

    def _present(self) -> MemoryView:
        """This version at this moment, whatever is written or asked meanwhile."""
        return MemoryView(
            self._table,
            embedder=self._embedder,
            clock=self._clock,
            scope=self._scope,
            pinned=self._snapshot(),
            moment=self._moment(),
            actors=self._actors,
            queries=self._queries.reading(),
        )


def _place(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Where the file is to be; refused where something is, and among the files of a store."""
    place = local_place(path, "a report")
    with saving(f"look at {place}"):
        refuse_inside_a_store(place, "a report")
        directory, there = place.is_dir(), place.exists()
    if directory:
        raise InvalidInputError(f"{place} is a directory; name a file, such as report.html")
    if there and not overwrite:
        raise InvalidInputError(f"{place} is there already; name another file, or overwrite it")
    return place
