"""Workspace: what an agent is told, changed a version at a time."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, Literal, Unpack, overload

from lance_memory.agent.workspace.files import read_files
from lance_memory.agent.workspace.item import MEMORY_MODE, WorkspacePart, named
from lance_memory.agent.workspace.place import refuse_narrower
from lance_memory.agent.workspace.result import ItemResult, WorkspaceResult
from lance_memory.agent.workspace.state import ItemChange, WorkspacePlan, differences
from lance_memory.agent.workspace.values import MemoryMode, checked_value
from lance_memory.agent.workspace.view import WorkspaceView
from lance_memory.agent.workspace.writing import (
    ItemDetails,
    Present,
    Wanted,
    WorkspaceWriting,
    refuse_doubtful,
)
from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.record.arguments import instance

__all__ = ["Workspace"]


class Workspace(WorkspaceWriting):
    """What an agent is told: prompts, skills, memory mode, policies, flags; see `WorkspaceView`.

    Every change is a new version of its item (1, 2, 3, ...) and one version of the store, with who
    made it, when and why; none is lost. Each takes `expected_version`, the version of the item that
    was read, 0 for none of this workspace's own: where another one stands by now, `ConflictError`
    names it, and nothing is written.

    A `rollback` or `revert` of the *store* takes versions of items back, and their numbers are
    given again: an `expected_version` that was read before it may then stand for another value.
    """

    def at(self, when: int | str | datetime) -> WorkspaceView:
        """What the agent was told at a version, a tag or a moment of the store."""
        return WorkspaceView(self._store.at(when))

    # -- each part with its types -----------------------------------------------------------

    def set_prompt(self, name: str, text: str, **change: Unpack[ItemDetails]) -> ItemResult:
        """Set the text of a prompt; an agent's first one is "system".

        Args:
            name: letters (a-z), digits, - _ and ., for it is also a file's.
            text: not blank, at most 262,144 bytes.
            change: `expected_version` (see `Workspace`; None: whichever stands) and `reason`
                (kept with the version, and shown by `log`).

        Raises:
            InvalidInputError: the name or the text is none.
            ConflictError: another version stands.
            ScopeError: the handle is a user's, a session's or a run's.
        """
        return self.set(WorkspacePart.PROMPT, name, text, **change)

    def set_skill(
        self,
        name: str,
        text: str,
        *,
        kind: str = "",
        enabled: bool = True,
        **change: Unpack[ItemDetails],
    ) -> ItemResult:
        """Set a skill: its text, its kind (the caller's own word), and whether it is enabled.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        value = {"text": text, "kind": kind, "enabled": enabled}
        return self.set(WorkspacePart.SKILL, name, value, **change)

    def enable(self, name: str, **change: Unpack[ItemDetails]) -> ItemResult:
        """Tell a skill from now on. One of the tenant's becomes the agent's own.

        Raises:
            NotFoundError: there is no such skill.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        return self._switched(name, change, enabled=True)

    def disable(self, name: str, **change: Unpack[ItemDetails]) -> ItemResult:
        """Tell a skill no more. One of the tenant's becomes the agent's own.

        Raises:
            NotFoundError: there is no such skill.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        return self._switched(name, change, enabled=False)

    def set_memory_mode(self, mode: MemoryMode | str, **change: Unpack[ItemDetails]) -> ItemResult:
        """Set how context is made: "vector", "hybrid" or "distilled".

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(*MEMORY_MODE, mode, **change)

    def set_policy(self, name: str, value: Any, **change: Unpack[ItemDetails]) -> ItemResult:
        """Set a policy: any JSON value but null, at most 65,536 bytes.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(WorkspacePart.POLICY, name, value, **change)

    def set_flag(
        self,
        name: str,
        value: bool | float | str,  # noqa: FBT001 - a flag's value
        **change: Unpack[ItemDetails],
    ) -> ItemResult:
        """Set a flag: true, false, a number or a text.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(WorkspacePart.FLAG, name, value, **change)

    # -- an item of whatever part -----------------------------------------------------------

    def set(
        self, part: WorkspacePart | str, name: str, value: Any, **change: Unpack[ItemDetails]
    ) -> ItemResult:
        """Set an item of whatever part; one that has this value already stays as it is.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        key = named(part, name)
        checked = checked_value(key[0], value)
        return self._changed(key, lambda _: {key: checked}, change)

    def plan(
        self,
        part: WorkspacePart | str,
        name: str,
        value: Any,
        *,
        expected_version: int | None = None,
    ) -> ItemChange:
        """What `set` would do, without doing it; `before` is what is told, maybe by the tenant.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        key = named(part, name)
        wanted = {key: checked_value(key[0], value)}
        present, own, _ = self._planned(lambda _: wanted, {key: expected_version})
        self._refuse_kept_by_others(wanted)
        return ItemChange(
            part=key[0],
            name=key[1],
            version=own[key].version if key in own else 0,
            before=present[key].value if key in present else None,
            after=wanted[key],
        )

    def remove(
        self, part: WorkspacePart | str, name: str, **change: Unpack[ItemDetails]
    ) -> ItemResult:
        """Take an item away. Its history stays, and `rollback` brings a version of it back.

        Of an agent's workspace what its tenant says stands again.

        Raises:
            NotFoundError: there is none of this workspace's own.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        key = named(part, name)

        def planned(present: Present) -> Wanted:
            if key not in present or present[key].scope != self._owner:
                raise NotFoundError(
                    f"the workspace of {self._owner} has no {key[0]} {name!r} of its own; nothing "
                    "was written"
                )
            return {key: None}

        return self._changed(key, planned, change)

    def rollback(
        self, part: WorkspacePart | str, name: str, version: int, **change: Unpack[ItemDetails]
    ) -> ItemResult:
        """Give an item the value of an earlier version, as a new version.

        Raises:
            NotFoundError: there is no such version.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        found = self.get(part, name, version=version)
        why = change.get("reason") or f"rollback to version {version}"
        expected = change.get("expected_version")
        return self.set(part, name, found.value, expected_version=expected, reason=why)

    # -- all of it, by files ------------------------------------------------------------------

    @overload
    def import_files(
        self, directory: str | os.PathLike[str], *, dry_run: Literal[True], reason: str = ...
    ) -> WorkspacePlan: ...

    @overload
    def import_files(
        self,
        directory: str | os.PathLike[str],
        *,
        dry_run: Literal[False] = ...,
        reason: str = ...,
    ) -> WorkspaceResult: ...

    def import_files(
        self, directory: str | os.PathLike[str], *, dry_run: bool = False, reason: str = ""
    ) -> WorkspacePlan | WorkspaceResult:
        """Make this workspace what a directory of `export_files` says, as one version.

        What the directory has no file of is removed, so `workspace.json` has to be there.

        Args:
            directory: with `workspace.json`, and `prompts/*.md` and `skills/*.md`.
            dry_run: only plan; `apply` carries exactly that plan out.
            reason: as for `set_prompt`.

        Raises:
            NotFoundError: there is no directory, or no workspace.json in it.
            InvalidInputError: a file is none of a workspace's, is too long, or is a link; or there
                would be too many items, or two whose names differ in case alone.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        refuse_narrower(self._store.scope)
        wanted = read_files(directory)
        version, items = self._read()
        own = {item.key: item for item in items if item.scope == self._owner}
        refuse_doubtful(own, {**dict.fromkeys(own), **wanted})
        plan = differences(own.values(), wanted, version=version, scope=self._owner)
        return plan if dry_run else self.apply(plan, reason=reason)

    def apply(self, plan: WorkspacePlan, *, reason: str = "") -> WorkspaceResult:
        """Carry a plan of `import_files(dry_run=True)` out, as one version.

        Raises:
            ConflictError: an item has another version by now; nothing was written.
            InvalidInputError: it is no plan, or of another workspace.
            ScopeError: as for `set_prompt`.
        """
        instance("plan", plan, WorkspacePlan, "a WorkspacePlan")
        if plan.scope != self._owner:
            raise InvalidInputError(
                f"the plan is of the workspace of {plan.scope}, and this one is of {self._owner}"
            )
        changes = {c.key: c for c in (*plan.added, *plan.changed, *plan.removed)}
        wanted = {key: change.after for key, change in changes.items()}
        expected = {key: change.version for key, change in changes.items()}
        why = reason or "import of files"
        done = self._written(lambda _: wanted, expected=expected, reason=why)
        return WorkspaceResult(
            uri=self._store.uri,
            version=done.commit.version,
            plan=plan,
            upkeep=done.commit.upkeep,
            warnings=done.commit.warnings,
        )

    def _switched(self, name: str, change: ItemDetails, *, enabled: bool) -> ItemResult:
        key = named(WorkspacePart.SKILL, name)

        def planned(present: Present) -> Wanted:
            skill = present.get(key) or self.get(*key)  # which says what there is
            return {key: {**skill.value, "enabled": enabled}}

        return self._changed(key, planned, change)
