"""export-store, import-store, archive, backup, backups, restore: memories in other places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from lmem.command import Call, Command, approved
from lmem.options import At, Filters, Gate, Reasoned, Scoped, instant
from lmem.output import complain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Backup, BackupSet, DamagedFile, ImportResult, Retain

__all__ = ["register"]

_SHOWN = 20

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be.")]
TargetOf = Annotated[str, typer.Argument(metavar="TARGET", help="The directory of the backups.")]


class Clash(StrEnum):
    """The library's `OnConflict`, which is slow to import."""

    REFUSE = "refuse"
    SKIP = "skip"
    FRESH = "fresh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Which backups stay."""

    keep_last: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep so many of the newest.")
    ] = None
    keep_daily: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="And the newest of so many days.")
    ] = None
    keep_weekly: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="And the newest of so many weeks.")
    ] = None
    keep_monthly: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="And the newest of so many months.")
    ] = None

    def retain(self) -> Retain | None:
        """As the library's; None where nothing was asked for, and all stay."""
        from lance_memory import Retain

        if all(getattr(self, field.name) is None for field in fields(self)):
            return None
        return Retain(
            last=self.keep_last or 1,
            hours=0,
            days=self.keep_daily or 0,
            weeks=self.keep_weekly or 0,
            months=self.keep_monthly or 0,
        )


def export_store(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A new directory, or a file x.zip.")],
    scope: Scoped,
    filters: Filters,
    at: At,
    *,
    dry_run: DryRun = False,
) -> None:
    """Write memories as a lossless archive.

    Every column of every memory in every state, as Parquet files with checksums; `import-store`
    reads it. (`lmem export` makes training data.)
    """
    view = call.view(scope, at.at)
    with call.out.progress("writing the archive"):
        made = view.export_store(path, dry_run=dry_run, **filters.where())
    told = {
        "archive": None if dry_run else path,
        "memories": made.memories,
        **made.states,
        "version": made.version,
        "embedding model": f"{made.embedding_model} ({made.dimension} numbers)",
        "bytes": sum(file.bytes for file in made.files) or None,
        "checksum": None if dry_run else made.checksum,
    }
    call.out.show(made, human=lambda: call.draw.pairs(told), quiet=[made.version])
    if not made.memories:
        call.out.note(f"note: nothing matches; the archive {'would be' if dry_run else 'is'} empty")
    if dry_run:
        call.out.note("dry run: nothing was written")


def import_store(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="PATH", help="What `export-store` has made.")],
    scope: Scoped,
    *,
    on_conflict: Annotated[
        Clash,
        typer.Option(
            help="An id or key that is taken by another content: refuse all, skip it, or store it "
            "fresh (under a new id, without the key)."
        ),
    ] = Clash.REFUSE,
    embed: Annotated[
        bool, typer.Option("--embed", help="Embed anew where the archive's model is another.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Store the memories of an archive, as one version or not at all.

    Everything is checked first. What is there already is not stored again. A store that is not
    there is made, with the archive's embedding model.
    """
    if (dry_run or scope.given()) and call.is_new:
        planned = _rehearsed(call, path, scope, embed=embed)
        if dry_run or not planned.stored:
            _show_import(call, planned)
            call.out.note(f"{'dry run: ' if dry_run else ''}nothing was written")
            return
    store = call.open(scope, create=True, like=path)
    with call.out.progress("embedding") as progress:
        done = store.import_store(
            path, on_conflict=on_conflict.value, embed=embed, dry_run=dry_run, progress=progress
        )
    _show_import(call, done)
    if dry_run:
        call.out.note("dry run: nothing was written")


def archive(
    call: Call,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="A new file x.jsonl, x.parquet or x.zip, or directory."
        ),
    ],
    scope: Scoped,
    filters: Filters,
    gate: Reasoned,
) -> None:
    """Write old memories to a file, and retire them.

    `lmem archive 2024.parquet --user ann --until 2025-01-01`. The file is read back before they are
    retired, as one version; unretire or revert brings them back.
    """
    store = call.open(scope)
    where = filters.where()
    plan = store.archive(path, dry_run=True, **where)
    sized = call.draw.count(plan.memories)
    agreed = approved(
        call,
        gate,
        plan=plan,
        human=lambda: call.draw.line(f"write {sized} to {plan.path}, and retire them"),
        quiet=[plan.memories],
        question=f"archive {sized}?",
    )
    if not agreed:
        return
    with call.out.progress("archiving"):
        done = store.archive(path, reason=gate.reason, **where)
    text = (
        f"version {done.version}: {call.draw.count(done.retired)} retired, and written to "
        f"{done.path}"
        if done.memories
        else "nothing matches; nothing was written"
    )
    call.out.show(done, human=lambda: call.draw.line(text), quiet=[done.version])


def backup(
    call: Call,
    target: TargetOf,
    keeping: Keeping,
    gate: Gate,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all backups again, and mend what is damaged.")
    ] = False,
) -> None:
    """Add a backup of the whole store to a directory.

    Versions, tags, branches and side tables; files that an earlier backup has are not copied again.
    With --keep-... the others are removed after it. Best on another disk.
    """
    store = call.open()
    keep = keeping.retain()
    gone = _backups_at(target).surplus(keep, now=datetime.now(UTC)) if keep else []
    if gone or gate.dry_run:
        agreed = approved(
            call,
            gate,
            plan={"target": target, "backups_to_remove": gone},
            human=lambda: call.draw.line(
                f"back up to {target}, and remove "
                f"{call.draw.count(len(gone), 'backup', 'backups')} there: "
                f"{', '.join(one.name for one in gone) or 'none'}"
            ),
            quiet=[one.name for one in gone],
            question="remove them for good, once the new one is made?",
        )
        if not agreed:
            return
    with call.out.progress("backing up"):
        done = store.backup(target, keep=keep, verify=verify)
    told = {
        "backup": done.backup.name,
        "target": done.target,
        "version": done.backup.version,
        "memories": done.backup.memories,
        "files": _sized(call, done.backup.files, done.backup.bytes),
        "copied": _sized(call, done.copied, done.copied_bytes),
        "removed": ", ".join(done.removed),
        "left out": ", ".join(done.left_out),
    }
    call.out.show(done, human=lambda: call.draw.pairs(told), quiet=[done.backup.name])
    _complain_of(done.damaged, failing=verify)


def backups(
    call: Call,
    target: TargetOf,
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all their files again (exit code 1 on damage).")
    ] = False,
) -> None:
    """List the backups in a directory, newest first."""
    kept = _backups_at(target)
    found = kept.backups()
    with call.out.progress("reading the backups"):
        damaged = kept.verify() if verify else kept.damaged()
    answer: Any = {"backups": found, "damaged": damaged} if verify else found
    call.out.show(answer, human=lambda: _listed(call, found), quiet=[one.name for one in found])
    if verify and not damaged:
        call.out.note("every file is as it was")
    _complain_of(damaged, failing=verify)


def restore(
    call: Call,
    target: TargetOf,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A new directory.")],
    *,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME|NAME", help="The newest backup by then; else the newest."),
    ] = None,
) -> None:
    """Make a store of a backup, in a new directory.

    It appears there once every checksum and every line of versions was looked at.
    """
    kept = _backups_at(target)
    _complain_of(kept.damaged(), failing=False)
    wanted = None if at is None else _which(kept, at)
    with call.out.progress("restoring"):
        done = kept.restore(path, at=wanted)
    text = (
        f"{done.uri} is the store of the backup {done.backup.name}: version "
        f"{done.backup.version}, {call.draw.count(done.backup.memories)}"
    )
    call.out.show(done, human=lambda: call.draw.line(text), quiet=[done.backup.version])


def register(app: TyperGroup) -> None:
    """Add these commands to `app`."""
    for name, function in (
        ("export-store", export_store),
        ("import-store", import_store),
        ("archive", archive),
        ("backup", backup),
        ("backups", backups),
        ("restore", restore),
    ):
        app.add_command(Command(function, name))


def _backups_at(target: str) -> BackupSet:
    from lance_memory import BackupSet

    return BackupSet(target)


def _which(kept: BackupSet, at: str) -> str | datetime:
    """A name or the beginning of one, or a time."""
    from lance_memory import NotFoundError

    names = [one.name for one in kept.backups()]
    damaged = [name for one in kept.damaged() for name in one.backups]
    if any(name.startswith(at) for name in (*names, *damaged)):
        return at
    try:
        return instant(at, "--at")
    except typer.BadParameter:
        raise NotFoundError(
            f"--at {at!r} is no time, and no backup has such a name; write a time like 2025-01-31, "
            f"or the beginning of a name (the newest is {names[0] if names else 'none'})"
        ) from None


def _rehearsed(call: Call, path: str, scope: Scoped, *, embed: bool) -> ImportResult:
    """What an import into a store that is not there would be; none is made."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="lmem-") as folder:
        store = call.rehearsal(f"{folder}/store", scope, like=path)
        planned = store.import_store(path, embed=embed, dry_run=True)
    place = call.common.store or ""
    return replace(
        planned, uri=place if "://" in place else str(Path(place).expanduser().absolute())
    )


def _show_import(call: Call, done: ImportResult) -> None:
    call.out.show(done, human=lambda: _imported(call, done), quiet=[done.version])


def _imported(call: Call, done: ImportResult) -> RenderableType:
    clashes = [f"{c.id}: {c.reason}" for c in done.conflicts[:_SHOWN]]
    more = len(done.conflicts) - len(clashes)
    told = {
        "stored": done.stored,
        "already there": done.already_there,
        "outside the scope": done.outside or None,
        "embedded anew": done.embedded or None,
        "version": done.version,
        **{f"conflict {n}": text for n, text in enumerate(clashes, 1)},
        "more conflicts": more or None,
    }
    drawn: RenderableType = call.draw.pairs(told)
    return drawn


def _listed(call: Call, found: Sequence[Backup]) -> RenderableType:
    columns = ["BACKUP", "VERSION", "MEMORIES", "FILES", "BYTES", "STORE"]
    values = [(b.name, b.version, b.memories, b.files, b.bytes, b.uri) for b in found]
    drawn: RenderableType = call.draw.rows(columns, values, width=call.out.width).table
    return drawn


def _sized(call: Call, files: int, size: int) -> str:
    count = call.draw.count
    return f"{count(files, 'file', 'files')}, {count(size, 'byte', 'bytes')}"


def _complain_of(damaged: Sequence[DamagedFile], *, failing: bool) -> None:
    """Say which files of the target are damaged, and fail where that was asked for."""
    for one in damaged:
        complain(_told_of(one), label="error: " if failing else "warning: ")
    if damaged and failing:
        raise typer.Exit(1)


def _told_of(one: DamagedFile) -> str:
    names = ", ".join(one.backups)
    if one.paths:
        return f"{one.file} is damaged: {one.reason}; it is {', '.join(one.paths[:3])} of {names}"
    return (
        f"{one.reason}; the backup {names} cannot be restored, and no backup is removed, until "
        "another copy of this file is put there, or it is removed"
    )
