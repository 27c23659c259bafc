"""What lies beside the table and names memories: the audit, state files, saved plans, orphans."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.errors import NotFoundError
from lance_memory.govern.forget.marker import is_mark
from lance_memory.govern.forget.round import Round, scrubbed, texts_of
from lance_memory.storage.erase.needles import Needles
from lance_memory.storage.files.lines import (
    Line,
    StoredFile,
    indices_of_branches,
    lines_of,
    stored_files,
)
from lance_memory.storage.files.readable import unreadable
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.place import Place

__all__ = ["clear_beside", "naming_plans", "remove_orphans"]

_JSON = ".json"
_BEGINS = (b"{", b"[", b'"')
_TABLE = ".lance/"
_OF_UPKEEP = "upkeep"
_DATA, _INDICES, _RECORDS = "/data/", "/_indices/", ("/_versions/", "/_transactions/")
_WHOLE = ".lance"
"""Data files end so once they are whole; until then they have another name."""

_LOOK_AGAIN = 0.5
_IN_FLIGHT = timedelta(seconds=30)
"""A file that no version needs may be one that a writer is about to commit; it has so long."""


def naming_plans(place: Place, needles: Needles) -> tuple[str, ...]:
    """The saved plans in the store's directory that name one of the memories."""
    return tuple(name for name, document in _naming(place, needles) if _is_plan(document))


def clear_beside(work: Round) -> tuple[str, ...]:
    """Rewrite the audit and the state files without the memories, and remove plans of them.

    Returns:
        The plans that were removed.
    """
    AuditLog.of(work.table).rewrite(work.redacted)
    gone = []
    for name, document in _naming(work.place, work.needles):
        if _is_plan(document):
            work.place.remove(name)
            gone.append(name)
        else:
            text = json.dumps(scrubbed(document, _meant(name, document, work.needles)), indent=1)
            work.place.write(name, text.encode())
    return tuple(gone)


def remove_orphans(work: Round) -> None:
    """Remove the files that no version needs and that hold memories, or may: of killed writers.

    A young one is waited for: a writer that is alive may be about to commit it. Clocks may jump,
    so it is young no longer either once it was seen for as long; and what comes up after the first
    look is of writers who began when the memories were gone, and is not waited for.
    """
    seen: dict[str, float] = {}
    waiting = first = True
    while waiting:
        now, clock, waiting = time.monotonic(), datetime.now(UTC), False
        for file in _orphans(work):
            if first:
                seen[file.path] = now
            long = now - seen.get(file.path, now) >= _IN_FLIGHT.total_seconds()
            if long or clock - file.modified >= _IN_FLIGHT:
                work.place.remove(file.name)
            else:
                waiting |= file.path in seen
        first = False
        if waiting:
            time.sleep(_LOOK_AGAIN)


def _orphans(work: Round) -> Iterator[StoredFile]:
    files = stored_files(work.table)
    lines = lines_of(work.table)
    versions = [version for line in lines.values() for version in line.versions.values()]
    needed = frozenset[str]().union(*(version.files for version in versions))
    loose = [file for file in files if file.path not in needed]
    yield from _data(work, [file for file in loose if _is_in(file, _DATA)])
    yield from _of_indices(work, [file for file in loose if _is_in(file, _INDICES)], lines)
    for file in loose:
        if _is_in(file, *_RECORDS) and work.stains.in_record(file.path):
            yield file


def _data(work: Round, loose: Sequence[StoredFile]) -> Iterator[StoredFile]:
    """Those that are of the memories, and those of whom that cannot be told."""
    whole = [file.path for file in loose if file.name.endswith(_WHOLE)]
    broken = unreadable(whole, storage_options=work.table.storage_options)
    for file in loose:
        part = not file.name.endswith(_WHOLE) or file.path in broken
        if part or work.stains.in_orphan(file.path):
            yield file


def _of_indices(
    work: Round, loose: Sequence[StoredFile], lines: Mapping[str, Line]
) -> Iterator[StoredFile]:
    """Those that are of no index: their words are in no form that can be read.

    An index that is being built is as young as the youngest of its files. Where no lock keeps those
    who build away, in an object store, only what has one of the ids goes.
    """
    if work.place.local is None:
        yield from (file for file in loose if work.stains.in_index(file.path))
        return
    used = indices_of_branches(lines) if loose else frozenset()
    newest: dict[str, datetime] = {}
    for file in loose:
        folder = _folder(file)
        newest[folder] = max(file.modified, newest.get(folder, file.modified))
    for file in loose:
        if _folder(file) not in used:
            yield replace(file, modified=newest[_folder(file)])


def _folder(file: StoredFile) -> str:
    """The directory of an index, which is named by its id."""
    return file.name.partition(_INDICES)[2].partition("/")[0]


def _is_in(file: StoredFile, *folders: str) -> bool:
    return any(folder in file.name for folder in folders)


def _naming(place: Place, needles: Needles) -> Iterable[tuple[str, Any]]:
    """The JSON files beside the tables that name one of the memories, and what they hold.

    Plans are among them under whatever name.
    """
    for name in place.names():
        if _TABLE in name or is_mark(name):
            continue
        try:
            raw = place.read(name)
            document = json.loads(raw) if raw.lstrip()[:1] in _BEGINS else None
        except (NotFoundError, ValueError, RecursionError):
            continue  # removed meanwhile, or no JSON
        if not name.endswith(_JSON) and not _is_plan(document):
            continue
        if _meant(name, document, needles).named(document):
            yield name, document


def _meant(name: str, document: Any, needles: Needles) -> Needles:
    """What to look for: the store's own state has words that may be ids, and no ids."""
    near = needles.among(texts_of(document))
    return near.telling if name.startswith(_OF_UPKEEP) else near


def _is_plan(document: Any) -> bool:
    """Whether it is a saved plan, and not a state file of the store."""
    return isinstance(document, dict) and {"format", "op_id"} <= document.keys()
