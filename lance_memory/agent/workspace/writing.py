"""How a workspace is changed: wanted values become one version, from the items that were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypedDict

from lance_memory.agent.keyed import held, persistently, refuse_stale
from lance_memory.agent.workspace.item import (
    Key,
    WorkspaceItem,
    WorkspacePart,
    item_of,
    key_of,
    row_of,
)
from lance_memory.agent.workspace.place import refuse_narrower
from lance_memory.agent.workspace.result import ItemOutcome, ItemResult
from lance_memory.agent.workspace.values import MOST_ITEMS
from lance_memory.agent.workspace.view import WorkspaceView
from lance_memory.errors import ConflictError, InvalidInputError
from lance_memory.record.compare import same_json
from lance_memory.record.memory import Kind, Memory, State
from lance_memory.record.results import AddManyResult
from lance_memory.record.values import text_value
from lance_memory.store import MemoryStore

__all__ = ["ItemDetails", "Present", "Wanted", "WorkspaceWriting", "refuse_doubtful"]


class ItemDetails(TypedDict, total=False):
    """What every change of one item takes besides.

    Attributes:
        expected_version: of the item that was read, 0 for none of this workspace's own: where
            another one stands by now, nothing is written. None: whichever stands.
        reason: kept with the version, and shown by `log`.
    """

    expected_version: int | None
    reason: str


Wanted: TypeAlias = Mapping[Key, Any]
"""WorkspacePart and name → the new value; None: it goes."""

Present: TypeAlias = Mapping[Key, WorkspaceItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """A commit, what became of each item, and what was told before."""

    commit: AddManyResult
    made: Mapping[Key, tuple[ItemOutcome, WorkspaceItem]]
    before: Present


class WorkspaceWriting(WorkspaceView):
    """A workspace that can be changed; it has no verb of its own."""

    def __init__(self, store: MemoryStore) -> None:
        """What the store handle's tenant or agent is told."""
        super().__init__(store)
        self._store = store

    def _changed(
        self, key: Key, planned: Callable[[Present], Wanted], change: ItemDetails
    ) -> ItemResult:
        """Commit what is planned of one item."""
        expected = {key: change.get("expected_version")}
        done = self._written(planned, expected=expected, reason=change.get("reason", ""))
        outcome, item = done.made[key]
        return ItemResult(
            uri=self._store.uri,
            version=done.commit.version,
            outcome=outcome,
            item=item,
            before=done.before.get(key),
            upkeep=done.commit.upkeep,
            warnings=done.commit.warnings,
        )

    def _written(
        self,
        planned: Callable[[Present], Wanted],
        *,
        expected: Mapping[Key, int | None],
        reason: str,
    ) -> _Written:
        """Commit what is planned from the present items; planned anew where somebody was faster."""
        text_value("reason", reason)

        def attempt() -> _Written:
            present, own, wanted = self._planned(planned, expected)
            try:
                commit, made = self._commit(own, wanted, reason)
            except ConflictError:
                self._refuse_kept_by_others(wanted)
                raise
            return _Written(commit=commit, made=made, before=present)

        return persistently(attempt)

    def _planned(
        self, planned: Callable[[Present], Wanted], expected: Mapping[Key, int | None]
    ) -> tuple[Present, Present, Wanted]:
        """The items that are told, those of them that are this workspace's own, what is wanted.

        Raises:
            ScopeError: the handle is a user's, a session's or a run's.
            StaleVersionError: another version stands than is expected.
            InvalidInputError: there would be too many items, or two that no file system tells
                apart.
        """
        refuse_narrower(self._store.scope)
        _, items = self._read()
        present = {item.key: item for item in items}
        wanted = planned(present)
        own = {key: item for key, item in present.items() if item.scope == self._owner}
        for key, version in expected.items():
            one = own.get(key)
            standing = (0, None) if one is None else (one.version, one.id)
            refuse_stale(f"{key[0]}/{key[1]}", standing[0], version, id=standing[1])
        refuse_doubtful(own, wanted)
        return present, own, wanted

    def _refuse_kept_by_others(self, wanted: Wanted) -> None:
        """Refuse a key that a memory has which is no item; trying again would not help.

        Raises:
            KeptByAnotherError: says which memory.
        """
        for key in wanted:
            held(self._store, key_of(key), other="none of a workspace", is_one=_is_of_a_workspace)

    def _commit(
        self, own: Present, wanted: Wanted, reason: str
    ) -> tuple[AddManyResult, Mapping[Key, tuple[ItemOutcome, WorkspaceItem]]]:
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
            made_from=[self._standing(item) for item in gone],
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
        return written, made

    def _standing(self, item: WorkspaceItem) -> Memory:
        """The memory of an item that is to go.

        Raises:
            ConflictError: somebody else has taken it away since it was read.
        """
        memory = self._store.find(item.id)
        if memory is None or memory.state is not State.ACTIVE:
            raise ConflictError(
                f"{item} was changed or removed meanwhile; nothing was written: read it again",
                ids=[item.id],
            )
        return memory

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


def _is_of_a_workspace(memory: Memory) -> bool:
    return memory.kind is Kind.WORKSPACE


def _is_same(item: WorkspaceItem | None, value: Any) -> bool:
    return item is not None and same_json(item.value, value)


def refuse_doubtful(own: Present, wanted: Wanted) -> None:
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
