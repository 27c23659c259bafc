"""Workspace: what an agent is told, changed a version at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias, overload

from lance_memory.agent.keyed import KeptByAnotherError, holder
from lance_memory.agent.workspace.files import read_files
from lance_memory.agent.workspace.item import (
    MEMORY_MODE,
    Key,
    WorkspaceItem,
    WorkspacePart,
    item_of,
    key_of,
    named,
    row_of,
)
from lance_memory.agent.workspace.place import refuse_narrower
from lance_memory.agent.workspace.state import WorkspacePlan, differences
from lance_memory.agent.workspace.values import MOST_ITEMS, MemoryMode, checked_value
from lance_memory.agent.workspace.view import WorkspaceView
from lance_memory.errors import ConflictError, InvalidInputError, NotFoundError
from lance_memory.record.arguments import whole
from lance_memory.record.compare import same_json
from lance_memory.record.memory import Kind
from lance_memory.record.values import text_value
from lance_memory.store import MemoryStore

__all__ = ["ItemOutcome", "ItemResult", "Workspace", "WorkspaceResult"]

_TRIES = 60
"""Of one change against others of the same item; each failed try is another's success."""


class ItemOutcome(StrEnum):
    """What became of an item."""

    SET = "set"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """A change of one item that is durable.

    Attributes:
        uri: of the store.
        version: of the store: the one that was made, or found where nothing changed.
        outcome: what became of the item.
        item: as it stands; of a removed one, as it stood.
    """

    uri: str
    version: int
    outcome: ItemOutcome
    item: WorkspaceItem


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceResult:
    """A plan that was carried out as version `version` of the store, or had nothing to do."""

    uri: str
    version: int
    plan: WorkspacePlan

    def __str__(self) -> str:
        return f"version {self.version}: {self.plan}"


Wanted: TypeAlias = Mapping[Key, Any]
"""WorkspacePart and name → the new value; None: it goes."""

Present: TypeAlias = Mapping[Key, WorkspaceItem]


class Workspace(WorkspaceView):
    """What an agent is told: prompts, skills, memory mode, policies, flags; see `WorkspaceView`.

    Every change is a new version of its item (1, 2, 3, ...) and one version of the store, with who
    made it, when and why; none is lost. `expected_version` is the version of the item that was
    read, 0 for none of this workspace's own: where another one stands by now, `ConflictError`
    names it, and nothing is written.
    """

    def __init__(self, store: MemoryStore) -> None:
        """What the store handle's tenant or agent is told."""
        super().__init__(store)
        self._store = store

    def at(self, when: int | str | datetime) -> WorkspaceView:
        """What the agent was told at a version, a tag or a moment of the store."""
        return WorkspaceView(self._store.at(when))

    def set_prompt(
        self, name: str, text: str, *, expected_version: int | None = None, reason: str = ""
    ) -> ItemResult:
        """Set the text of a prompt; an agent's first one is "system".

        Args:
            name: letters (a-z), digits, - _ and ., for it is also a file's.
            text: not blank, at most 262,144 bytes.
            expected_version: see `Workspace`; None: whichever stands.
            reason: kept with the version, and shown by `log`.

        Raises:
            InvalidInputError: the name or the text is none.
            ConflictError: another version stands.
            ScopeError: the handle is a user's, a session's or a run's.
        """
        return self.set(
            WorkspacePart.PROMPT, name, text, expected_version=expected_version, reason=reason
        )

    def set_skill(
        self,
        name: str,
        text: str,
        *,
        kind: str = "",
        enabled: bool = True,
        expected_version: int | None = None,
        reason: str = "",
    ) -> ItemResult:
        """Set a skill: its text, its kind (the caller's own word), and whether it is enabled.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        value = {"text": text, "kind": kind, "enabled": enabled}
        return self.set(
            WorkspacePart.SKILL, name, value, expected_version=expected_version, reason=reason
        )

    def enable(
        self, name: str, *, expected_version: int | None = None, reason: str = ""
    ) -> ItemResult:
        """Tell a skill from now on. One of the tenant's becomes the agent's own.

        Raises:
            NotFoundError: there is no such skill.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        return self._switched(name, enabled=True, expected_version=expected_version, reason=reason)

    def disable(
        self, name: str, *, expected_version: int | None = None, reason: str = ""
    ) -> ItemResult:
        """Tell a skill no more. One of the tenant's becomes the agent's own.

        Raises:
            NotFoundError: there is no such skill.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        return self._switched(name, enabled=False, expected_version=expected_version, reason=reason)

    def set_memory_mode(
        self, mode: MemoryMode | str, *, expected_version: int | None = None, reason: str = ""
    ) -> ItemResult:
        """Set how context is made: "vector", "hybrid" or "distilled".

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(*MEMORY_MODE, mode, expected_version=expected_version, reason=reason)

    def set_policy(
        self, name: str, value: Any, *, expected_version: int | None = None, reason: str = ""
    ) -> ItemResult:
        """Set a policy: any JSON value but null, at most 65,536 bytes.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(
            WorkspacePart.POLICY, name, value, expected_version=expected_version, reason=reason
        )

    def set_flag(
        self,
        name: str,
        value: bool | float | str,  # noqa: FBT001 - a flag's value
        *,
        expected_version: int | None = None,
        reason: str = "",
    ) -> ItemResult:
        """Set a flag: true, false, a number or a text.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        return self.set(
            WorkspacePart.FLAG, name, value, expected_version=expected_version, reason=reason
        )

    def set(
        self,
        part: WorkspacePart | str,
        name: str,
        value: Any,
        *,
        expected_version: int | None = None,
        reason: str = "",
    ) -> ItemResult:
        """Set an item of whatever part; one that has this value already stays as it is.

        Raises:
            InvalidInputError, ConflictError, ScopeError: as for `set_prompt`.
        """
        key = named(part, name)
        checked = checked_value(key[0], value)
        expected = None if expected_version is None else {key: expected_version}
        return self._one(key, lambda _: {key: checked}, expected=expected, reason=reason)

    def remove(
        self,
        part: WorkspacePart | str,
        name: str,
        *,
        expected_version: int | None = None,
        reason: str = "",
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

        expected = None if expected_version is None else {key: expected_version}
        return self._one(key, planned, expected=expected, reason=reason)

    def rollback(
        self,
        part: WorkspacePart | str,
        name: str,
        version: int,
        *,
        expected_version: int | None = None,
        reason: str = "",
    ) -> ItemResult:
        """Give an item the value of an earlier version, as a new version.

        Raises:
            NotFoundError: there is no such version.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        found = self._version(self.history(part, name), part, name, whole("version", version))
        why = reason or f"rollback to version {version}"
        return self.set(part, name, found.value, expected_version=expected_version, reason=why)

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
            InvalidInputError: a file is none of a workspace's, is too long, or is a link.
            ConflictError, ScopeError: as for `set_prompt`.
        """
        refuse_narrower(self._store.scope)
        wanted = read_files(directory)
        version, items = self._read()
        own = [item for item in items if item.scope == self._owner]
        plan = differences(own, wanted, version=version, scope=self._owner)
        return plan if dry_run else self.apply(plan, reason=reason)

    def apply(self, plan: WorkspacePlan, *, reason: str = "") -> WorkspaceResult:
        """Carry a plan of `import_files(dry_run=True)` out, as one version.

        Raises:
            ConflictError: an item has another version by now; nothing was written.
            InvalidInputError: the plan is of another workspace.
            ScopeError: as for `set_prompt`.
        """
        if plan.scope != self._owner:
            raise InvalidInputError(
                f"the plan is of the workspace of {plan.scope}, and this one is of {self._owner}"
            )
        changes = {c.key: c for c in (*plan.added, *plan.changed, *plan.removed)}
        wanted = {key: change.after for key, change in changes.items()}
        expected = {key: change.version for key, change in changes.items()}
        why = reason or "import of files"
        version, _ = self._written(lambda _: wanted, expected=expected, reason=why)
        return WorkspaceResult(uri=self._store.uri, version=version, plan=plan)

    # -- inside ---------------------------------------------------------------------------

    def _switched(
        self, name: str, *, enabled: bool, expected_version: int | None, reason: str
    ) -> ItemResult:
        key = named(WorkspacePart.SKILL, name)

        def planned(present: Present) -> Wanted:
            skill = present.get(key) or self.get(*key)  # which says what there is
            return {key: {**skill.value, "enabled": enabled}}

        expected = None if expected_version is None else {key: expected_version}
        return self._one(key, planned, expected=expected, reason=reason)

    def _one(
        self,
        key: Key,
        planned: Callable[[Present], Wanted],
        *,
        expected: Mapping[Key, int] | None,
        reason: str,
    ) -> ItemResult:
        version, made = self._written(planned, expected=expected, reason=reason)
        outcome, item = made[key]
        return ItemResult(uri=self._store.uri, version=version, outcome=outcome, item=item)

    def _written(
        self,
        planned: Callable[[Present], Wanted],
        *,
        expected: Mapping[Key, int] | None,
        reason: str,
    ) -> tuple[int, Mapping[Key, tuple[ItemOutcome, WorkspaceItem]]]:
        """Commit what is planned from the present items; planned anew where somebody was faster."""
        refuse_narrower(self._store.scope)
        text_value("reason", reason)
        for _ in range(_TRIES):
            _, items = self._read()
            present = {item.key: item for item in items}
            wanted = planned(present)
            own = {key: item for key, item in present.items() if item.scope == self._owner}
            _refuse_others(own, expected or {})
            _refuse_doubtful(own, wanted)
            try:
                return self._commit(own, wanted, reason)
            except ConflictError:
                self._refuse_kept_by_others(wanted)
        raise ConflictError(
            f"the workspace of {self._owner} was changed {_TRIES} times meanwhile; nothing was "
            "written: try again"
        )

    def _refuse_kept_by_others(self, wanted: Wanted) -> None:
        """Refuse a key that a memory has which is no item; trying again would not help.

        Raises:
            KeptByAnotherError: says which memory.
        """
        for key in wanted:
            held = holder(self._store, key_of(key))
            if held is not None and held.kind is not Kind.WORKSPACE:
                raise KeptByAnotherError(
                    f"memory {held.id} has the key {held.key!r} and is none of a workspace; "
                    "nothing was written: give it another key first",
                    ids=[held.id],
                )

    def _commit(
        self, own: Present, wanted: Wanted, reason: str
    ) -> tuple[int, Mapping[Key, tuple[ItemOutcome, WorkspaceItem]]]:
        """One commit, from the items as they were read.

        Raises:
            ConflictError: one of them was changed since.
        """
        fresh = {k: v for k, v in wanted.items() if v is not None and not _is_same(own.get(k), v)}
        gone = [own[key] for key, value in wanted.items() if value is None and key in own]
        numbers = self._numbers(fresh)
        by = self._store.author
        rows = [
            row_of(key, value, version=numbers.get(key, 0) + 1, by=by, reason=reason)
            for key, value in fresh.items()
        ]
        written = self._store.upsert_many(
            rows,
            expected=[own[key].id if key in own else "" for key in fresh],
            retire=[item.id for item in gone],
            made_from=[self._store.get(item.id) for item in gone],
            reason=reason,
        )
        ids = dict(zip(fresh, written.ids, strict=True))
        made: dict[Key, tuple[ItemOutcome, WorkspaceItem]] = {
            item.key: (ItemOutcome.REMOVED, item) for item in gone
        }
        for key, value in wanted.items():
            if key in ids:
                made[key] = ItemOutcome.SET, self._item(ids[key])
            elif value is not None:
                made[key] = ItemOutcome.UNCHANGED, own[key]
        return written.version, made

    def _item(self, id: str) -> WorkspaceItem:
        item = item_of(self._store.get(id))
        assert item is not None  # noqa: S101 - it was just written so
        return item

    def _numbers(self, keys: Wanted) -> Mapping[Key, int]:
        """The greatest version that each item ever had."""
        if not keys:
            return {}
        one = next(iter(keys)) if len(keys) == 1 else None
        found: dict[Key, int] = {}
        for item in self._kept(key=one):
            found[item.key] = max(item.version, found.get(item.key, 0))
        return found


def _is_same(item: WorkspaceItem | None, value: Any) -> bool:
    return item is not None and same_json(item.value, value)


def _refuse_others(own: Present, expected: Mapping[Key, int]) -> None:
    for key, version in expected.items():
        present = own[key].version if key in own else 0
        if present != whole("expected_version", version, least=0):
            stands = f"version {present}" if present else "nothing"
            raise ConflictError(
                f"{key[0]}/{key[1]}: {stands} stands, and not "
                f"{f'version {version}' if version else 'nothing'}; nothing was written: read it "
                "again",
                ids=[own[key].id] if key in own else [],
            )


def _refuse_doubtful(own: Present, wanted: Wanted) -> None:
    """Refuse names that a file system may not tell apart, and more items than a read should take.

    Raises:
        InvalidInputError: says which, or how many.
    """
    left = {key for key in {*own, *wanted} if wanted.get(key, own.get(key)) is not None}
    if len(left) > MOST_ITEMS:
        raise InvalidInputError(
            f"the workspace would have {len(left):,} items; it takes {MOST_ITEMS:,} at most"
        )
    first: dict[tuple[WorkspacePart, str], str] = {}
    for part, name in sorted(left):
        other = first.setdefault((part, name.casefold()), name)
        if other != name:
            raise InvalidInputError(
                f"{part} {name!r} and {part} {other!r} differ in case alone, which not every file "
                "system tells apart; take another name"
            )
