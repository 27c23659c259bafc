"""What lies beside the table and names memories: the audit, state files, saved plans, orphans."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_memory.errors import NotFoundError
from lance_memory.govern.forget.marker import MARKER
from lance_memory.govern.forget.round import Round, scrubbed, texts_of
from lance_memory.storage.erase.stains import Needles
from lance_memory.storage.files.lines import StoredFile, lines_of, stored_files
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.place import Place

__all__ = ["clear_beside", "naming_plans", "remove_orphans"]

_JSON = ".json"
_TABLE = ".lance/"
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
            text = json.dumps(scrubbed(document, work.needles), indent=1)
            work.place.write(name, text.encode())
    return tuple(gone)


def remove_orphans(work: Round) -> None:
    """Remove files with memories in them that no version needs: those of killed writers.

    A young one is waited for: a writer that is alive may be about to commit it.
    """
    while orphans := list(_orphans(work)):
        now = datetime.now(UTC)
        for file in orphans:
            if now - file.modified >= _IN_FLIGHT:
                work.place.remove(file.name)
        if any(now - file.modified < _IN_FLIGHT for file in orphans):
            time.sleep(1.0)


def _orphans(work: Round) -> Iterator[StoredFile]:
    files = stored_files(work.table)
    needed = {
        path
        for line in lines_of(work.table).values()
        for version in line.versions.values()
        for path in version.files
    }
    for file in files:
        if file.path not in needed and _stained(work, file):
            yield file


def _stained(work: Round, file: StoredFile) -> bool:
    folder = f"/{file.name}"
    if "/data/" in folder:
        return work.stains.in_rows(file.path)
    if "/_indices/" in folder:
        return work.stains.in_index(file.path)
    if "/_versions/" in folder or "/_transactions/" in folder:
        return work.stains.in_record(file.path)
    return False


def _naming(place: Place, needles: Needles) -> Iterable[tuple[str, Any]]:
    """The JSON files beside the tables that name one of the memories, and what they hold."""
    for name in place.names():
        if not name.endswith(_JSON) or _TABLE in name or name == MARKER:
            continue
        try:
            document = json.loads(place.read(name))
        except (NotFoundError, ValueError):
            continue  # removed meanwhile, or no JSON
        if needles.within(texts_of(document)):
            yield name, document


def _is_plan(document: Any) -> bool:
    """Whether it is a saved plan, and not a state file of the store."""
    return isinstance(document, dict) and {"format", "op_id"} <= document.keys()
