"""Versioning: going back, naming versions, and lines of versions beside this one."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Literal, Self, overload

import numpy as np
import pyarrow as pa

from lance_memory.beside import Beside
from lance_memory.embed import fitting_or_missing
from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.record.arguments import one_of
from lance_memory.record.results import MergePlan, RollbackPlan, WriteResult
from lance_memory.record.rows import valid_vectors, with_vectors
from lance_memory.record.schema import STORE_ID
from lance_memory.storage import (
    FORGET,
    Audit,
    ChangeSet,
    Comparison,
    Prefer,
    Snapshot,
    Table,
    absolute,
    history,
    merging,
    naming,
    refuse_taken,
    say,
    undo,
)
from lance_memory.usage import QueryLog
from lance_memory.waiting import Pending

__all__ = ["Versioning"]

_PATIENCE = 60.0
"""Seconds to wait for whoever forgets, merges or goes back."""


class Versioning(Pending):
    """The verbs of the history: rollback, revert, tags, branches, checkouts."""

    @overload
    def rollback(
        self, version: int | str | datetime, *, dry_run: Literal[True]
    ) -> RollbackPlan: ...

    @overload
    def rollback(
        self, version: int | str | datetime, *, dry_run: Literal[False] = ..., reason: str = ...
    ) -> WriteResult: ...

    def rollback(
        self, version: int | str | datetime, *, dry_run: bool = False, reason: str = ""
    ) -> RollbackPlan | WriteResult:
        """Make the store what it was at a version, tag or moment. Nothing of the history goes.

        Through a scoped handle only that scope goes back. The embedding model stays what it is:
        memories that come back from before a `reembed` are embedded anew.

        Raises:
            NotFoundError: there is no such version, or it was cleaned up.
            EmbeddingError: memories are to be embedded anew, and the embedder failed or is missing.
        """
        target = self._snapshot(self._resolved(version))

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            return undo.rollback(
                present, target, audit=audit, predicate=self._boundary(), refit=self._refitted
            )

        return self._undone("rollback", target.version, back, dry_run=dry_run, reason=reason)

    @overload
    def revert(self, version: int | str, *, dry_run: Literal[True]) -> RollbackPlan: ...

    @overload
    def revert(
        self, version: int | str, *, dry_run: Literal[False] = ..., reason: str = ...
    ) -> WriteResult: ...

    def revert(
        self, version: int | str, *, dry_run: bool = False, reason: str = ""
    ) -> RollbackPlan | WriteResult:
        """Undo what one version changed, and keep everything that came after it.

        Args:
            version: its number; or a tag, which names the memories that the last write had made:
                where it is on a version of upkeep, that write is undone.
            dry_run: only tell what would change.
            reason: shown by `log`.

        Raises:
            NotFoundError: the version, or the one before it, is not there.
            ConflictError: memories it changed were changed again since; `ids` lists them.
            InvalidInputError: the version changed no memories within this scope; names the newest
                one below it that did.
            EmbeddingError: as for `rollback`.
        """
        after = self._snapshot(self._written(version))
        try:
            before = self._table.at(after.version - 1)
        except NotFoundError as error:
            raise NotFoundError(
                f"could not revert version {after.version} without the one before it: {error}"
            ) from error

        def back(present: Snapshot, audit: Audit) -> tuple[ChangeSet, Comparison]:
            try:
                found = undo.revert(
                    present,
                    before,
                    after,
                    audit=audit,
                    predicate=self._boundary(),
                    refit=self._refitted,
                )
            except undo.NothingToRevertError as error:
                raise InvalidInputError(f"{error}; {self._written_below(after)}") from error
            written = found[0].written()
            if written is not None:
                refuse_taken(present, written, audit.at, leaving=found[0].replaced())
            return found

        return self._undone("revert", after.version, back, dry_run=dry_run, reason=reason)

    def tag(
        self, name: str, version: int | str | datetime | None = None, *, move: bool = False
    ) -> int:
        """Name a version (the newest by default), and return it; clean-up never removes it.

        Raises:
            ConflictError: the tag is on another version, and `move` is off.
        """
        self._whole_store("tagging")
        number = self._snapshot(version).version
        naming.create_tag(self._table, name, number, move=move)
        return number

    def untag(self, name: str) -> int:
        """Remove a tag, and return the version it was on.

        Raises:
            NotFoundError: no such tag.
        """
        self._whole_store("untagging")
        return naming.delete_tag(self._table, name)

    def branch(self, name: str, version: int | str | datetime | None = None) -> Self:
        """A new line of versions that starts here or at `version`; writes on it stay on it.

        Raises:
            ConflictError: there is a branch of that name.
        """
        self._whole_store("branching")
        number = self._snapshot(version).version
        line = naming.create_branch(self._table, name, number)
        beside = Beside.of(line, self._beside.where, clock=self._clock)
        return self._on(line, queries=self._queries, beside=beside)

    @overload
    def merge(
        self,
        branch: str,
        *,
        prefer: Prefer | Literal["ours", "theirs"] | None = ...,
        dry_run: Literal[True],
    ) -> MergePlan: ...

    @overload
    def merge(
        self,
        branch: str,
        *,
        prefer: Prefer | Literal["ours", "theirs"] | None = ...,
        dry_run: Literal[False] = ...,
        reason: str = ...,
    ) -> WriteResult: ...

    def merge(
        self,
        branch: str,
        *,
        prefer: Prefer | Literal["ours", "theirs"] | None = None,
        dry_run: bool = False,
        reason: str = "",
    ) -> MergePlan | WriteResult:
        """Do here what was done on another line since both were the same, as one version.

        The other line is a branch that left this one, or the one that this one left; it stays as
        it is. Where both changed a memory, and not to the same, or gave one key to two, nothing is
        written unless `prefer` says who is right; of two under one key the other is then retired.
        What was merged once is not merged again, also where it was reverted since: revert that.

        Args:
            branch: the other line; "main" too.
            prefer: "ours" keeps what clashes as it is here, "theirs" makes it as it is there.
            dry_run: only tell what would be done.
            reason: shown by `log`.

        Raises:
            NotFoundError: there is no such branch.
            InvalidInputError: neither of the two lines left the other.
            ConflictError: memories were changed on both, or are live under one key; `ids` lists
                them. Or somebody was forgetting, merging or going back for a minute.
            EmbeddingError: the branch has another embedding model, and this handle's cannot embed.
        """
        self._whole_store("merging")
        side = None if prefer is None else Prefer(one_of("prefer", prefer, Prefer))

        def planned(present: Snapshot, of: merging.Lines) -> tuple[ChangeSet, MergePlan]:
            audit = self._audit(merging.OPERATION, reason, manifest=of.told())
            refit = self._refitted
            return merging.bring(present, of.tip, of.base, audit=audit, prefer=side, refit=refit)

        if dry_run:
            return planned(self._snapshot(), merging.lines(self._table, branch))[1]
        with self._nobody_forgets():
            of = merging.lines(self._table, branch)

            def plan(present: Snapshot) -> ChangeSet:
                change, found = planned(present, of)
                if side is None:
                    found.refuse_clashes()
                return change

            with naming.holding(of.theirs, of.tip.version):
                result = self._write(plan)
                of.keep_tip()
        return result

    def delete_branch(self, name: str) -> None:
        """Remove a branch and the versions that only it has.

        Danger: the branch's own versions cannot be brought back.

        Raises:
            NotFoundError: no such branch.
            ConflictError: a tag holds one of its versions.
        """
        self._whole_store("deleting a branch")
        naming.delete_branch(self._table, name)
        Beside.of(self._table, self._beside.where, clock=self._clock, branch=name).remove()

    def checkout(self, version: int | str | datetime, path: str | os.PathLike[str]) -> Self:
        """A store of its own at `path` that starts as this one was at a version, copying no data.

        It reads this store's files, so the version is tagged here (`checkout-v<number>`, on a
        branch `checkout-<branch>-v<number>`), which keeps clean-up from removing them.

        Raises:
            NotFoundError: no such version.
            InvalidInputError: one of both is on a local disk and the other in an object store, or
                they are in object stores of two kinds.
            ConflictError: `path` holds a store already.
            StoreFormatError: `path` holds something else.
        """
        self._whole_store("checkout")
        number = self._snapshot(self._resolved(version)).version
        uri = absolute(path)
        naming.clone(self._table, number, uri)
        options = self._table.storage_options
        durability = self._table.durability
        clone = Table.open(uri, storage_options=options, durability=durability)
        if not clone.is_of_earlier_schema:
            origin = {"version": number, "of": self._table.format.store_id}
            made = self._audit("checkout", manifest=origin)
            say(clone, lambda _: {STORE_ID: str(uuid.uuid4())}, audit=lambda: made)
        return self._on(Table.open(uri, storage_options=options, durability=durability))

    # -- inside --

    def _on(
        self, table: Table, *, queries: QueryLog | None = None, beside: Beside | None = None
    ) -> Self:
        return type(self)(
            table,
            embedder=fitting_or_missing(table.format, self._embedder),
            clock=self._clock,
            author=self._author,
            queries=queries,
            upkeep=self._tender.options,
            beside=beside,
            path=self._path,
            quotas=self._meter.quotas,
        )

    def _nobody_forgets(self) -> AbstractContextManager[None]:
        """Nobody forgets, merges or goes back while the block lasts; see `lock.FORGET`."""
        self._table.refuse_writes()
        return self._table.place.alone(FORGET, wait=_PATIENCE)

    def _written(self, version: int | str) -> int | datetime:
        """The version to revert: a number as it is, of a tag the write that it stands for.

        Raises:
            NotFoundError: there is no such tag, or the write was cleaned up.
        """
        named = self._resolved(version)
        if isinstance(named, datetime) or version not in naming.tags(self._table):
            return named
        made = history.last_write(self._table, named)
        if made is None or not made.readable:
            gone = "the write below it" if made is None else f"version {made.version}"
            raise NotFoundError(
                f"tag {version!r} is on version {named}, which upkeep made, and {gone}, whose "
                "memories it holds, was cleaned up: what it changed cannot be told any more; "
                "`rollback` goes back to a version"
            )
        return made.version

    def _written_below(self, after: Snapshot) -> str:
        """Which version below changed memories of this scope, for who meant that one."""
        for entry in history.entries(self._table, until=after.version - 1):
            physical = entry.upkeep and entry.operation in history.PHYSICAL
            ours = entry.scopes is None or any(map(self._scope.holds, entry.scopes))
            if physical or not ours:
                continue
            try:
                before, there = (self._table.at(entry.version - back) for back in (1, 0))
            except NotFoundError:
                return f"version {entry.version} may have, but it or the one before is cleaned up"
            if history.compare(before, there, self._boundary()):
                return f"the newest below it that did is version {entry.version}"
        return "none below it did"

    def _refitted(self, rows: pa.Table) -> pa.Table:
        """Rows of another embedding model, with the vectors that this handle's gives them."""
        valid = valid_vectors(rows)
        vectors = np.zeros((len(rows), self._table.format.dimension), np.float32)
        vectors[valid] = self._embed(rows["content"].filter(pa.array(valid)).to_pylist())
        return with_vectors(rows, vectors, valid=valid, schema=self._table.schema)

    def _undone(
        self,
        operation: str,
        target: int,
        back: Callable[[Snapshot, Audit], tuple[ChangeSet, Comparison]],
        *,
        dry_run: bool,
        reason: str,
    ) -> RollbackPlan | WriteResult:

        def audit() -> Audit:
            return self._audit(operation, reason, manifest={"target": target})

        if not dry_run:
            with self._nobody_forgets():
                return self._write(lambda present: back(present, audit())[0])
        present = self._snapshot()
        _, found = back(present, audit())
        return RollbackPlan(
            operation=operation,
            version=present.version,
            target=target,
            reappear=found.removed,
            change=found.updated,
            disappear=found.inserted,
        )
