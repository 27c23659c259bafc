"""What versions are called and kept by: tags, branches, holds, and stores that begin as one."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lance_memory.errors import (
    ConflictError,
    InvalidInputError,
    LanceMemoryError,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.files import make_private
from lance_memory.storage.disk.named import torn_refs
from lance_memory.storage.engine import UnexplainedError, translated
from lance_memory.storage.log.audit import AuditLog
from lance_memory.storage.opening import MAIN, TABLE_NAME, refuse_other_things
from lance_memory.storage.rewritten import place_of
from lance_memory.storage.table import Table
from lance_memory.storage.upkeep.state import drop_state

__all__ = [
    "HOLD",
    "RESERVED",
    "Branch",
    "all_branches",
    "all_tags",
    "branches",
    "clone",
    "create_branch",
    "create_tag",
    "delete_branch",
    "delete_tag",
    "holding",
    "holds",
    "tags",
]

RESERVED = "lmem-"
"""Tags and branches whose names begin so are the store's own: no list shows them."""

HOLD = f"{RESERVED}hold-"
"""Tags that keep a version for as long as something reads it; see `holding`."""

MERGED = f"{RESERVED}merged-"
"""Tags that keep what another line has merged; see `keep_merged`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A line of versions beside main. `parent_version` is where it left `parent`."""

    name: str
    parent: str
    parent_version: int
    created_at: datetime


@contextmanager
def _naming_refs(table: Table, action: str) -> Iterator[None]:
    """`translated`; a tag or branch that says nothing hides all others, and is named."""
    try:
        with translated(action):
            yield
    except UnexplainedError as error:
        torn = [] if table.is_remote else torn_refs(table.root)
        if not torn:
            raise
        torn = [f"{TABLE_NAME}/_refs/{file.rpartition('/_refs/')[2]}" for file in torn]
        raise StorageError(
            f"could not {action}: damaged: {', '.join(torn)}; `lmem doctor --fix` sets it aside"
        ) from error


def tags(table: Table) -> dict[str, int]:
    """Tag → version, of this branch, without the store's own."""
    return {
        name: version for name, version in all_tags(table).items() if not name.startswith(RESERVED)
    }


def all_tags(table: Table) -> dict[str, int]:
    """Tag → version, of this branch, the store's own included."""
    with _naming_refs(table, "list tags"):
        found = table.tag_refs()
    places = {name: place_of(t["branch"], int(t["version"])) for name, t in sorted(found.items())}
    return {name: version for name, (line, version) in places.items() if line == table.branch}


@contextmanager
def holding(table: Table, version: int) -> Iterator[None]:
    """Keep clean-up, of whatever process, from removing `version` while the block lasts.

    By a tag of the store's own. That of a killed process is dropped by clean-up after a day.
    Where none can be made the block runs all the same, and nothing is held: a store that this
    process may not write to, or a full disk, which another process's clean-up may make room on. A
    version that is removed meanwhile is then told by an error of whatever reads it.

    Raises:
        NotFoundError: the version is gone already.
    """
    name = f"{HOLD}{uuid.uuid4().hex}"
    held = False
    with suppress(StorageError, StoreFormatError):
        _create_tag(table, name, version)
        held = True
    try:
        yield
    finally:
        if held:
            with suppress(LanceMemoryError), translated("let go of a version"):
                table.own().dataset.tags.delete(name)


def holds(table: Table) -> dict[str, datetime]:
    """The tags of `holding`, of every branch, and since when they are there."""
    with translated("list tags"):
        found = table.tag_refs()
    return {
        name: tag["created_at"].astimezone(UTC)
        for name, tag in sorted(found.items())
        if name.startswith(HOLD)
    }


def create_tag(table: Table, name: str, version: int, *, move: bool = False) -> None:
    """Name a version; cleanup never removes it.

    Raises:
        ConflictError: the tag exists, and `move` is not set.
        InvalidInputError: the name has other characters than ASCII letters, digits, `.`, `-`,
            `_`, or is one of the store's own.
    """
    table.refuse_writes()
    _refuse_name("tag", name)
    _create_tag(table, name, version, move=move)


def _create_tag(table: Table, name: str, version: int, *, move: bool = False) -> None:
    reference = table.reference(version)
    exists = name in all_tags(table)
    if exists and not move:
        raise ConflictError(f"tag {name!r} is on version {all_tags(table)[name]} already")
    with translated(f"tag version {version} as {name!r}"):
        refs = table.for_refs().tags
        if exists:
            refs.update(name, reference)
        else:
            refs.create(name, reference)
    _refuse_gone(table, name, version, reference)
    table.settle_version(version)
    table.settle_files([f"{table.root}/_refs/tags/{name}.json"])
    if exists:
        _drop_unheld(table)


def _refuse_gone(table: Table, name: str, version: int, reference: tuple[str | None, int]) -> None:
    """Drop a tag that was just made, where clean-up looked before and took its version after.

    Raises:
        NotFoundError: it did.
    """
    try:
        if table.reference(version) == reference:
            return
        told = NotFoundError(f"version {version} of {table.uri} was cleaned up; name another")
    except NotFoundError as error:
        told = error
    with suppress(LanceMemoryError), translated(f"remove tag {name!r}"):
        table.own().dataset.tags.delete(name)
    raise told


def delete_tag(table: Table, name: str) -> int:
    """Remove a tag, and return the version it was on.

    Raises:
        NotFoundError: no such tag.
    """
    table.refuse_writes()
    found = tags(table)
    if name not in found:
        raise NotFoundError(f"there is no tag {name!r}; there are: {_listed(found)}")
    with translated(f"remove tag {name!r}"):
        table.own().dataset.tags.delete(name)
    _drop_unheld(table)
    return found[name]


def _drop_unheld(table: Table) -> None:
    """Remove the rewritten versions that no tag is on any more."""
    with translated("list tags and branches"):
        names = [name for name in table.branch_refs() if place_of(name, 0)[1]]
        held = {tag["branch"] for tag in table.tag_refs().values()}
    for name in (name for name in names if name not in held):
        with suppress(ConflictError), translated(f"remove {name}"):  # a branch began there
            table.own().dataset.branches.delete(name)


def branches(table: Table) -> list[Branch]:
    """All branches but main and the store's own."""
    return [one for one in all_branches(table) if not one.name.startswith(RESERVED)]


def all_branches(table: Table) -> list[Branch]:
    """All branches but main, the store's own included."""
    with _naming_refs(table, "list branches"):
        found = table.branch_refs()
    return [
        Branch(
            name=name,
            parent=place[0],
            parent_version=place[1],
            created_at=datetime.fromtimestamp(branch["create_at"], UTC),
        )
        for name, branch in sorted(found.items())
        for place in [place_of(branch["parent_branch"], int(branch["parent_version"]))]
    ]


def identity(table: Table, branch: str) -> str:
    """What tells a branch from others that had its name, or will."""
    with _naming_refs(table, "list branches"):
        found = table.branch_refs()[branch]
    # Branches that an earlier release of the engine made have no identifier.
    unique = found.get("branch_identifier") or [branch, found["parent_version"], found["create_at"]]
    return hashlib.sha256(json.dumps(unique).encode()).hexdigest()[:32]


def keep_merged(table: Table, branch: str, version: int) -> None:
    """Keep a version that another line has merged, in place of the one that was kept for it before.

    Args:
        table: the line that has the version.
        branch: the identity of the branch of the two lines; for as long as that is there.
        version: which.
    """
    _create_tag(table, f"{_merged(branch)}{_side(table)}", version, move=True)


def _merged(branch: str) -> str:
    return f"{MERGED}{branch}-"


def _side(table: Table) -> str:
    return "main" if table.branch == MAIN else "branch"


def create_branch(table: Table, name: str, version: int) -> Table:
    """A branch that starts at `version`.

    Raises:
        ConflictError: there is one of that name.
    """
    table.refuse_writes()
    if name in {branch.name for branch in branches(table)} or name == "main":
        raise ConflictError(f"there is a branch {name!r} already; name another, or open that one")
    if not name:
        raise InvalidInputError("a branch needs a name")
    _refuse_name("branch", name)
    reference = table.reference(version)
    with translated(f"create branch {name!r}"):
        table.for_refs().create_branch(name, reference)
    made = table.on_branch(name)
    made.settle_version(made.latest().version)
    table.settle_files([f"{table.root}/_refs/branches/{name}.json"])
    return made


def delete_branch(table: Table, name: str) -> None:
    """Remove a branch and the versions that only it has.

    Raises:
        NotFoundError: no such branch.
        ConflictError: a tag holds one of its versions.
    """
    table.refuse_writes()
    names = {branch.name for branch in branches(table)}
    if name not in names:
        raise NotFoundError(f"there is no branch {name!r}; there are: {_listed(names)}")
    merged = _merged(identity(table, name))
    for tag in (tag for tag in table.tag_refs() if tag.startswith(merged)):
        with translated(f"remove tag {tag!r}"):
            table.own().dataset.tags.delete(tag)
    with translated(f"delete branch {name!r}"):
        table.own().dataset.branches.delete(name)
    AuditLog.of(table).drop(name)
    drop_state(table.place, name)


def clone(table: Table, version: int, uri: str) -> None:
    """A store at `uri` that starts as `version` of this one and shares its data files.

    The version gets a tag of its own, so that clean-up never removes these files.

    Raises:
        InvalidInputError: `uri` is in another kind of place, from where files are not shared.
        ConflictError: there is a store at `uri`.
        StoreFormatError: there is something else.
    """
    table.refuse_writes()
    if _kind_of_place(uri) != _kind_of_place(table.uri):
        raise InvalidInputError(
            f"{uri} is in another kind of place than {table.uri}, whose files a checkout reads "
            "where they are; name a place of the same kind, or copy the memories with export_store"
        )
    refuse_other_things(uri)
    name = (
        f"checkout-v{version}" if table.branch == "main" else f"checkout-{table.branch}-v{version}"
    )
    fresh = name not in tags(table)
    if fresh:
        create_tag(table, name, version)
    reference = table.reference(version)
    target = f"{uri.rstrip('/')}/{TABLE_NAME}"
    try:
        with translated(f"check out version {version} to {uri}"):
            if "://" not in uri:
                make_private(Path(uri))
            table.at(version).dataset.shallow_clone(
                target, reference, storage_options=table.storage_options
            )
        made = Table.open(uri, storage_options=table.storage_options, durability=table.durability)
        made.settle_version(made.latest().version)
    except LanceMemoryError:
        if fresh:
            delete_tag(table, name)
        raise


def _kind_of_place(uri: str) -> str:
    """The scheme; "" for a local path."""
    scheme, mark, _ = uri.partition("://")
    return scheme.lower() if mark else ""


def _refuse_name(what: str, name: str) -> None:
    """Refuse the store's own names, and letters that the engine takes and then cannot list.

    With one tag of other letters than ASCII's, pylance 14.0.2 lists no tag any more.
    """
    if not name.isascii():
        raise InvalidInputError(
            f"the {what} {name!r}: a name has the letters a to z, digits, '.', '-' and '_'"
        )
    if name.startswith(RESERVED):
        raise InvalidInputError(
            f"the {what} {name!r}: names that begin with {RESERVED!r} are the store's own; "
            "choose another"
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
