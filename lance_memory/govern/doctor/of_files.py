"""Checks of the files on the disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from lance_memory.govern.doctor.health import HealthFinding, Severity, VersionBytes
from lance_memory.govern.doctor.patient import SHOWN, Patient, finding
from lance_memory.storage.disk import whole
from lance_memory.storage.files.beside import side_tables
from lance_memory.storage.files.inventory import Inventory, VersionOf, manifest_of
from lance_memory.storage.files.lines import StoredFile
from lance_memory.storage.files.readable import OTHER_CONTENTS, unreadable
from lance_memory.storage.opening import TABLE_NAME
from lance_memory.storage.rewritten import place_of
from lance_memory.wording import counted

__all__ = [
    "NOBODYS",
    "damaged",
    "modes",
    "moved",
    "old_orphans",
    "orphans",
    "sizes",
    "torn",
    "weigh",
]

NOBODYS = timedelta(days=7)
"""A file that no version refers to may be a writer's at work; after as long the engine, too, takes
it for nobody's."""

_INDEX = "_indices/"
_TRANSACTIONS = "/_transactions/"
_READ = (".lance", ".idx", ".arrow")


def torn(patient: Patient) -> Iterator[HealthFinding]:
    """Newest versions that a power cut has torn; the store is read at the last whole one."""
    found = whole.damage(patient.table)
    if found is None:
        return
    gone = found.version if found.version == found.opened + 1 else f"to {found.version}"
    lost = (
        f"versions {found.opened + 1} {gone}, and the tags and branches on them, are moved to "
        'torn/, and nothing is deleted; with durability="process" acknowledged writes may be among '
        'them, with "power" none is. Clean-up takes their data files after seven days: copy the '
        "store before, to have a look at them"
    )
    kept = "no row is lost: the indices are built anew"
    every = (*found.files, *found.indices)
    yield HealthFinding(
        code="torn",
        severity=Severity.ERROR,
        message=str(found),
        count=len(every),
        sample=every[:SHOWN],
        fixable=True,
        advice=lost if found.opened != found.version else kept if found.indices else "",
    )


def moved(patient: Patient) -> Iterator[HealthFinding]:
    """Branches that look for files where the store was before it was moved or copied."""
    yield from finding(
        "moved",
        Severity.ERROR,
        "{n} [branch looks|branches look] for files elsewhere that are in this store",
        [f"{name}: in {', '.join(places)}" for name, places in sorted(patient.moved.items())],
        fixable=True,
    )


def damaged(patient: Patient) -> Iterator[HealthFinding]:
    """Files that are not there, or cannot be read.

    Manifests, and the sizes and ends of the newest version's rows, always; all files when deep.
    """
    stock = patient.inventory
    yield from finding(
        "damaged_manifest",
        Severity.ERROR,
        "{n} [version|versions] cannot be opened: [its manifest is|their manifests are] damaged",
        sorted(stock.damaged.keys() - {f"{TABLE_NAME}/tree/{name}" for name in patient.moved}),
        advice="other versions can be read; restore the store from a backup to have these back",
    )
    lost = [path for path in stock.missing if _TRANSACTIONS in path]
    yield from finding(
        "missing_file",
        Severity.ERROR,
        "{n} [file|files] that versions refer to [is|are] not there",
        _with_versions(stock, [path for path in stock.missing if path not in lost]),
        advice="restore the store from a backup; versions without these files can be read",
    )
    yield from finding(
        "missing_transaction",
        Severity.NOTE,
        "{n} transaction [file is|files are] not there; each version has a copy of its own",
        _with_versions(stock, lost),
        advice="nothing is lost by it; what has removed them may have removed other files",
    )
    parted = _unreadable(patient) if patient.deep else _not_whole(patient)
    yield from finding(
        "damaged_file",
        Severity.ERROR,
        "{n} [file|files] cannot be read, or not as what was written",
        parted["file"],
        advice="restore the store from a backup; versions without these files can be read",
    )
    yield from finding(
        "damaged_index",
        Severity.ERROR,
        "{n} [file|files] of indices cannot be read",
        parted["index"],
        fixable=True,
    )
    yield from finding(
        "damaged_old_index",
        Severity.WARNING,
        "{n} [file|files] of indices that only other versions have cannot be read",
        parted["old index"],
        advice="they go with their versions: `lmem optimize`",
    )


def _not_whole(patient: Patient) -> dict[str, list[str]]:
    """The files of the newest version's rows that are not of their size, or without their end."""
    stock = patient.inventory
    found = [path for path in whole.torn_rows(patient.table) if path not in stock.missing]
    patient.spoiled = bool(found)
    return {"file": _with_versions(stock, found), "index": [], "old index": []}


def _unreadable(patient: Patient) -> dict[str, list[str]]:
    """The damaged files, each with the versions that refer to it and why, by what they are of."""
    stock, home = patient.inventory, patient.table.uri.rstrip("/")
    options = patient.table.storage_options
    manifests = {manifest_of(*version): version for version in stock.versions}
    others = sorted(p for p in stock.referring if p in stock.present and p not in manifests)
    others += _of_side_tables(patient)
    found = _of(home, unreadable([f"{home}/{p}" for p in others], storage_options=options))
    sound = [p for p, v in manifests.items() if not stock.versions[v] & found.keys()]
    found |= _of(home, unreadable([f"{home}/{p}" for p in sorted(sound)], storage_options=options))
    live = stock.versions.get(patient.here, frozenset())
    patient.spoiled = any(
        path in live and _INDEX not in path and OTHER_CONTENTS not in why
        for path, why in found.items()
    )
    parted: dict[str, list[str]] = {"file": [], "index": [], "old index": []}
    for path, why in sorted(found.items()):
        of_index = "index" if path in live else "old index"
        kind = of_index if _INDEX in path else "file"
        parted[kind] += [f"{text}: {why}" for text in _with_versions(stock, [path])]
    return parted


def _of_side_tables(patient: Patient) -> list[str]:
    place = patient.table.place
    tables = tuple(f"{name}/" for name in side_tables(place))
    return [p for p in place.names() if p.startswith(tables) and p.endswith(_READ)]


def _of(home: str, complaints: dict[str, str]) -> dict[str, str]:
    return {file.removeprefix(f"{home}/"): why for file, why in complaints.items()}


def orphans(patient: Patient) -> Iterator[HealthFinding]:
    """Files that no version refers to: of killed writers, and of changes that were only tried."""
    if patient.inventory.damaged:
        return  # what these versions refer to is not known
    old = old_orphans(patient)
    young = [f for f in patient.inventory.orphans if f not in old]
    yield from finding(
        "orphans",
        Severity.WARNING,
        f"{{n}} [file|files] of {_bytes(old)} that no version refers to, for {NOBODYS.days} days "
        "or more",
        [file.name for file in old],
        fixable=True,
    )
    yield from finding(
        "young_orphans",
        Severity.NOTE,
        f"{{n}} [file|files] of {_bytes(young)} that no version refers to, maybe a writer's work",
        [file.name for file in young],
        advice=f"when they are {NOBODYS.days} days old they are taken for nobody's",
    )


def old_orphans(patient: Patient) -> list[StoredFile]:
    """Those that are nobody's."""
    end = patient.moment - NOBODYS
    return [file for file in patient.inventory.orphans if file.modified < end]


def sizes(patient: Patient) -> Iterator[HealthFinding]:
    """How many versions there are, and what each takes."""
    told = weigh(patient.inventory)
    dearest = sorted(told, key=lambda one: -one.own_bytes)[:SHOWN]
    files = patient.inventory.present.values()
    yield HealthFinding(
        code="versions",
        severity=Severity.NOTE,
        message=f"{counted(len(told), 'version')} can be read; {counted(len(files), 'file')} of "
        f"{_bytes(files)} in all",
        count=len(told),
        sample=tuple(
            f"{_named((v.branch, v.version))}: {v.own_bytes:,} of its own" for v in dearest
        ),
    )


def weigh(stock: Inventory) -> tuple[VersionBytes, ...]:
    """What each version takes."""
    found = []
    for place in stock.versions:
        branch, version = place_of(*place)  # one that was rewritten is told of by its own number
        every, own = stock.bytes_of(place)
        found.append(VersionBytes(branch=branch, version=version, bytes=every, own_bytes=own))
    return tuple(sorted(found, key=lambda one: (one.branch, one.version)))


def modes(patient: Patient) -> Iterator[HealthFinding]:
    """Whether other users of the machine can look into the store."""
    table = patient.table
    if "://" in table.uri or not hasattr(os, "getuid"):
        return
    mode = stat.S_IMODE(Path(table.uri).stat().st_mode)
    if mode & (stat.S_IROTH | stat.S_IXOTH | stat.S_IWOTH):
        yield HealthFinding(
            code="readable_by_others",
            severity=Severity.WARNING,
            message=f"every user of this machine can look into the store: its mode is {mode:o}",
            advice=f"chmod o= {table.uri!r}",
        )


def _with_versions(stock: Inventory, paths: Iterable[str]) -> list[str]:
    """The paths, each with the versions that need it."""
    return [
        f"{p} (of {_several(stock.referring[p])})" if p in stock.referring else p for p in paths
    ]


def _several(versions: Iterable[VersionOf]) -> str:
    listed = [_named(version) for version in versions]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"{', '.join(listed[-SHOWN:])}{more}" or "no version"


def _named(version: VersionOf) -> str:
    branch, number = place_of(*version)
    return str(number) if branch == "main" else f"{branch}:{number}"


def _bytes(files: Iterable[StoredFile]) -> str:
    return counted(sum(file.size for file in files), "byte")
