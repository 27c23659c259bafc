"""One round of forgetting: replace what is newest, move the tags, clean the versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from lance_memory.errors import NotFoundError, StorageError
from lance_memory.govern.forget.marker import Marker
from lance_memory.govern.forget.survey import Survey, survey
from lance_memory.index.build import IndexKind, build_index
from lance_memory.record.memory import Scope
from lance_memory.storage import Audit, history, naming
from lance_memory.storage.engine import MissingFileError
from lance_memory.storage.erase.indices import drop_vector_index, renew
from lance_memory.storage.erase.lines import drop_tag, erase, move_tag, rewritten
from lance_memory.storage.erase.needles import Needles
from lance_memory.storage.erase.stains import Stains
from lance_memory.storage.files.inventory import manifest_of
from lance_memory.storage.files.lines import Line, lines_of, torn_versions
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.log.entry import LogEntry
from lance_memory.storage.place import Place
from lance_memory.storage.rewritten import place_of
from lance_memory.storage.table import Table
from lance_memory.storage.upkeep.races import remove_versions
from lance_memory.storage.vector.facts import describe

__all__ = ["FORGOTTEN", "Round", "scope_digest", "scrubbed", "texts_of"]

FORGOTTEN = "(forgotten)"
_OPERATION = "forget"


@dataclass(slots=True)
class Round:
    """What every step needs; `marker` goes on as the steps are done."""

    table: Table
    place: Place
    stains: Stains
    needles: Needles
    marker: Marker
    torn: frozenset[str] = frozenset()

    def run(self) -> None:
        """Do what the survey says is to be done; a killed round is begun again from the start."""
        found = self.look()
        for name, (line, version) in found.tags.items():
            if name.startswith(naming.HOLD):
                drop_tag(self.table, name)  # who reads it learns that it was cleaned up
            elif place_of(line, version) == (line, version):
                rewritten(found.lines[line].table, version)
        found = self.look()
        for name, apart in found.newest.items():
            self._replace(found.lines[name], apart=apart)
        found = self.look()
        self._move_tags(found)
        self._clean(self.look())

    def drop_torn(self) -> None:
        """Remove the manifests that cannot be read: nothing can be cleaned while there is one."""
        for line in lines_of(self.table).values():
            unknown = set(history.versions(line.table)) - line.versions.keys()
            gone = unknown & set(torn_versions(line.table)) if unknown else set()
            for version in gone:
                self.place.remove(manifest_of(line.name, version))
            self.torn |= {f"{self.place.uri}/{manifest_of(line.name, v)}" for v in gone}

    def look(self) -> Survey:
        """What is still to be done."""
        return survey(self.table, self.stains, self.marker.rebuilt)

    def keep(self, marker: Marker) -> None:
        """Remember how far this is, on the disk too."""
        self.marker = marker.write(self.place)

    def redacted(self, entry: LogEntry) -> LogEntry:
        """A log entry without what it says of the memories."""
        scopes = entry.scopes
        if scopes is not None:
            hidden = set(self.marker.scopes)
            scopes = tuple(s for s in scopes if scope_digest(s) not in hidden)
        reason = FORGOTTEN if self.needles.quoted(entry.reason) else entry.reason
        manifest = entry.manifest
        if self.needles.named(manifest):
            manifest = scrubbed(manifest, self.needles)
        return replace(entry, reason=reason, manifest=manifest, scopes=scopes)

    def _replace(self, line: Line, *, apart: bool) -> None:
        table = line.table
        erase(table, self.marker.ids, self.stains, lambda: self._audit(line.name), apart=apart)
        renew(table)
        _renew_vectors(table)
        self.keep(self.marker.with_rebuilt(line.name, table.latest().version))

    def _audit(self, line: str) -> Audit:
        digests = [hashlib.sha256(i.encode()).hexdigest() for i in self.marker.ids]
        manifest = {"forgotten": len(digests), "sha256": digests} if line == "main" else {}
        return Audit(
            operation=_OPERATION,
            at=self.marker.at,
            actor=self.marker.actor,
            reason=self.marker.reason,
            manifest=manifest,
            op_id=self.marker.op_id,
        )

    def _move_tags(self, found: Survey) -> None:
        for name, (line, version) in found.tags.items():
            plain = place_of(line, version) == (line, version)
            there = rewritten(found.lines[line].table, version) if plain else line
            if there in self.marker.rebuilt:
                move_tag(self.table, name, there, self.table.on_branch(there).latest().version)

    def _clean(self, found: Survey) -> None:
        """Keep the log entries, then remove the versions; those of branches before main's."""
        for name in reversed(list(found.dirty)):
            line, held = found.lines[name], {v for n, v in found.tags.values() if n == name}
            versions = [v for v in found.dirty[name] if v != line.newest and v not in held]
            if not versions:
                continue
            if place_of(name, 0) == (name, 0):
                entries = map(self.redacted, _entries(line.table, versions))
                AuditLog.of(self.table).keep(name, list(entries))
            remove_versions(line.table, versions)


def scrubbed(value: Any, needles: Needles) -> Any:
    """A JSON value in which every text that names one of the needles is replaced."""
    if isinstance(value, str):
        return FORGOTTEN if needles.named(value) else value
    if isinstance(value, dict):
        return {
            FORGOTTEN if needles.key(key) else key: scrubbed(item, needles)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [scrubbed(item, needles) for item in value]
    return value


def texts_of(value: Any) -> bytes:
    """All texts of a JSON value, one after the other, as they are before they are escaped."""
    if isinstance(value, str):
        return value.encode()
    parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    return b"\0".join(map(texts_of, parts)) if isinstance(parts, list | tuple) else b""


def scope_digest(scope: Scope) -> str:
    """What names a scope in the mark, where no names are."""
    return hashlib.sha256(json.dumps(scope.names(), sort_keys=True).encode()).hexdigest()


def _entries(table: Table, versions: Iterable[int]) -> Iterable[LogEntry]:
    for version in versions:
        try:
            yield history.entry(table, version)
        except (NotFoundError, MissingFileError):
            continue  # somebody's clean-up was faster
        except StorageError:
            if table.is_remote:
                raise
            continue  # damaged: it told of nobody any more


def _renew_vectors(table: Table) -> None:
    facts = describe(table.own())
    if facts is None:
        return
    try:
        build_index(table, kind=IndexKind(facts.kind.lower()))
    except ValueError:  # too few vectors are left, another tool's kind, or an earlier schema
        drop_vector_index(table)
