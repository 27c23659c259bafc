"""WorkspaceView: what an agent is told, at one version."""

from __future__ import annotations

import builtins
import difflib
import os
from collections.abc import Collection
from typing import Any

from lance_memory.agent.pinned import pinned
from lance_memory.agent.workspace.files import write_files
from lance_memory.agent.workspace.item import (
    MEMORY_MODE,
    Key,
    WorkspaceItem,
    WorkspacePart,
    item_of,
    key_of,
    lines_of,
    named,
)
from lance_memory.agent.workspace.place import inherited, owner_of, reading
from lance_memory.agent.workspace.state import WorkspaceState
from lance_memory.agent.workspace.values import MemoryMode, Skill
from lance_memory.errors import NotFoundError
from lance_memory.record.arguments import whole
from lance_memory.record.filters import Where
from lance_memory.record.memory import Kind, Scope
from lance_memory.view import MemoryView

__all__ = ["WorkspaceView"]


class WorkspaceView:
    """What an agent is told: prompts, skills, memory mode, policies, flags. It reads only.

    A workspace is a tenant's (`store.scoped(tenant=...)`), or an agent's of a tenant
    (`store.scoped(tenant=..., agent=...)`), which has what its tenant's has where it says nothing
    itself. The handle of a user, a session or a run reads the workspace around it.

    Raises:
        ScopeError: the handle is scoped to no tenant and no agent.
    """

    def __init__(self, view: MemoryView) -> None:
        """What the view's tenant or agent is told; `store.at(...)` gives a past one."""
        self._owner = owner_of(view.scope)
        self._reading = reading(view, self._owner)

    @property
    def scope(self) -> Scope:
        """Whose workspace it is."""
        return self._owner

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._owner} version {self._reading.version}>"

    def state(self) -> WorkspaceState:
        """All of it."""
        version, items = self._read()
        return WorkspaceState(version=version, scope=self._owner, items=items)

    def prompt(self, name: str = "system") -> str:
        """The text of a prompt.

        Raises:
            NotFoundError: there is none of that name.
        """
        return str(self.get(WorkspacePart.PROMPT, name).value)

    def skills(self, *, enabled: bool | None = None) -> builtins.list[Skill]:
        """The skills by name; all of them, or the enabled or disabled ones alone."""
        found = self.state().skills.values()
        return [one for one in found if enabled is None or one.enabled is enabled]

    @property
    def memory_mode(self) -> MemoryMode:
        """How context is made; "hybrid" where nothing is set. It reads that item alone."""
        found = self.find(*MEMORY_MODE)
        return MemoryMode.HYBRID if found is None else MemoryMode(found.value)

    def policy(self, name: str) -> Any:
        """The JSON value of a policy.

        Raises:
            NotFoundError: there is none of that name.
        """
        return self.get(WorkspacePart.POLICY, name).value

    def flag(self, name: str, default: Any = False) -> Any:  # noqa: FBT002 - as dict.get
        """The value of a flag, or the default where it is not set."""
        found = self.find(WorkspacePart.FLAG, name)
        return default if found is None else found.value

    def get(
        self, part: WorkspacePart | str, name: str, *, version: int | None = None
    ) -> WorkspaceItem:
        """One item as it stands.

        Args:
            part: of the item.
            name: of the item.
            version: of this workspace's own item, whether it stands or not; None: what is told.

        Raises:
            NotFoundError: there is none.
            InvalidInputError: there is no such part, or the name is none.
        """
        if version is not None:
            of = whole("version", version, least=1)
            return self._version(self.history(part, name), part, name, of)
        found = self.find(part, name)
        if found is None:
            chosen, _ = named(part, name)
            there = [i.name for i in self.state().items if i.part is chosen]
            raise NotFoundError(
                f"there is no {chosen} {name!r} in the workspace of {self._owner}; there are: "
                f"{', '.join(there) or 'none'}"
            )
        return found

    def find(self, part: WorkspacePart | str, name: str) -> WorkspaceItem | None:
        """Like `get`, but None where there is none."""
        key = named(part, name)
        _, items = self._read(key=key)
        return next(iter(items), None)

    def history(self, part: WorkspacePart | str, name: str) -> builtins.list[WorkspaceItem]:
        """Every version of an item of this workspace, oldest first, also after it was removed.

        Versions stay however often upkeep removes those of the store: each is a memory of its own.
        """
        key = named(part, name)
        return sorted(self._kept(key=key), key=lambda item: (item.version, item.id))

    def diff(
        self, part: WorkspacePart | str, name: str, before: int, after: int | None = None
    ) -> builtins.list[str]:
        """What differs between two versions of an item, as lines of a unified diff.

        Args:
            part: of the item.
            name: of the item.
            before: a version of it.
            after: another one; None: the last.

        Raises:
            NotFoundError: there is no such version.
        """
        history = self.history(part, name)
        old = self._version(history, part, name, before)
        new = self._version(history, part, name, after)
        lines = difflib.unified_diff(
            lines_of(old.part, old.value),
            lines_of(new.part, new.value),
            f"{old} version {old.version}",
            f"{new} version {new.version}",
            lineterm="",
        )
        return builtins.list(lines)

    def export_files(
        self, directory: str | os.PathLike[str], *, overwrite: bool = False
    ) -> builtins.list[str]:
        """Write what this workspace has of its own to a directory, for `Workspace.import_files`.

        `prompts/NAME.md`, `skills/NAME.md` with a header of kind and enabled, and
        `workspace.json` with the memory mode, the policies and the flags.

        Args:
            directory: a new one; or, with `overwrite`, one that may have such files.
            overwrite: replace the files of a workspace that are there, and remove those of what
                there is none of any more. Other files stay.

        Returns:
            The names of the files.

        Raises:
            InvalidInputError: such files are there; or the directory is in a store, or a link
                leads out of it.
            StorageError: they cannot be written.
        """
        own = {i.key: i.value for i in self._read()[1] if i.scope == self._owner}
        return write_files(directory, own, overwrite=overwrite)

    # -- inside ---------------------------------------------------------------------------

    def _read(self, *, key: Key | None = None) -> tuple[int, tuple[WorkspaceItem, ...]]:
        """The version, and the items that stand at it, of each the nearest, by part and name."""
        view = pinned(self._reading)
        below = inherited(self._owner)
        standing: dict[Key, WorkspaceItem] = {}
        for item in _items(view, of=(self._owner, below), key=key):
            if item.scope == self._owner or item.key not in standing:
                standing[item.key] = item
        return view.version, tuple(standing[key] for key in sorted(standing))

    def _kept(self, *, key: Key | None = None) -> builtins.list[WorkspaceItem]:
        """Every version of the items of this workspace alone."""
        return _items(self._reading, of=(self._owner,), key=key, states="any")

    def _version(
        self, history: builtins.list[WorkspaceItem], part: str, name: str, version: int | None
    ) -> WorkspaceItem:
        """A version of an item, by its number; None: the last."""
        found = [item for item in history if version is None or item.version == version]
        if not found:
            there = ", ".join(str(item.version) for item in history)
            raise NotFoundError(
                f"there is no version {version or ''} of the {part} {name!r} in the workspace of "
                f"{self._owner}; there are: {there or 'none'}"
            )
        return found[-1]


def _items(
    view: MemoryView,
    *,
    of: Collection[Scope | None],
    key: Key | None,
    states: str = "visible",
) -> list[WorkspaceItem]:
    """The items of these workspaces alone.

    What others have under such a key, as the users of a tenant may, is not even looked into.
    """
    chosen: Where = {"kinds": Kind.WORKSPACE, "states": states}
    if key is not None:
        chosen["key"] = key_of(key)
    found = (item_of(memory) for memory in view.list(**chosen) if memory.scope in of)
    return [item for item in found if item is not None]
