"""From a plain function to a command: shared options, the store, interruption, confirmation."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from lmem.ending import answered
from lmem.errors import INTERRUPTED, Unconfirmed, no_branch
from lmem.files import read_json, remove_store
from lmem.options import QUOTAS, Common, Gate, Scoped, when
from lmem.output import Format, Output, complain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lance_memory import Embedder, MemoryStore, MemoryView, Quotas, WritePath
    from lmem.names import Named, Names

__all__ = ["Call", "Command", "Group", "approved"]


class Call:
    """One run of a command: the store it works on, and where its answer goes."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.out = Output(common.format or Format.HUMAN)
        self.recording = False
        self.embedding = True
        self.write_path: WritePath | None = None
        self.quotas = os.environ.get(QUOTAS) or None
        self._store: MemoryStore | None = None
        self._past: MemoryView | None = None
        self._unmake: Callable[[], None] | None = None
        self._found = 0

    def open(
        self, scope: Scoped | None = None, *, create: bool = False, like: str | None = None
    ) -> MemoryStore:
        """The store, kept to the scope that was named; a new one takes the archive `like`."""
        from lance_memory import NotFoundError

        try:
            store = self._opened(create=False)
        except NotFoundError:
            if not create or self._branch != "main":
                raise
            was_there = Path(self.common.store or "").expanduser().exists()
            store = self._opened(create=True, like=like)
            if "://" not in store.uri:
                self._unmake = partial(remove_store, store.uri, keep_directory=was_there)
            self.out.note(f"made a new store at {store.uri}")
        self._store, self._found = store, store.version
        levels = scope.given() if scope else {}
        return store.scoped(**levels) if levels else store

    @property
    def whole(self) -> MemoryStore:
        """The store that was opened, kept to no scope; it knows the tags."""
        return self._store or self.open()

    @property
    def is_new(self) -> bool:
        """Whether `open` would make the store."""
        from lance_memory import NotFoundError

        try:
            self._opened(create=False)
        except NotFoundError:
            return self._branch == "main"
        return False

    def rehearsal(self, place: str, scope: Scoped, *, like: str | None = None) -> MemoryStore:
        """A store at `place` as `open` would make it."""
        store = self._opened(create=True, like=like, at=place)
        levels = scope.given()
        return store.scoped(**levels) if levels else store

    def line(self, branch: str) -> MemoryStore:
        """The store on a line of versions, whichever was named."""
        return self._opened(create=False, branch=branch)

    def view(self, scope: Scoped | None, at: str | None) -> MemoryView:
        """What a read sees."""
        store = self.open(scope)
        if at is None:
            return store
        whole = self.whole
        self._past = whole.at(when(at, whole))
        return self._past.scoped(**store.scope.given()) if store.scope else self._past

    def names(self, shown: Sequence[Named]) -> Names:
        """What a person can type for the memories of one list."""
        from lmem.names import Names

        whole = (self._store, self._past)
        return Names(shown, *(view for view in whole if view is not None))

    @property
    def draw(self) -> ModuleType:
        """What draws for people; imported by the commands that do."""
        from lmem import render

        return render

    def interrupted(self) -> str:
        """What Ctrl-C left behind."""
        if self._store is None:
            return "interrupted: nothing was written"
        if begun := self._forgetting():
            return f"interrupted: {begun}; `lmem forget --finish` goes on"
        newest = self._store.version
        if newest == self._found:
            return f"interrupted: the store is unchanged, at version {newest}"
        return f"interrupted: version {newest} was made (before: {self._found})"

    def _forgetting(self) -> str:
        """What is told of memories whose forgetting was begun, if that is what was interrupted."""
        from lance_memory import StorageError

        try:
            begun = self._store.unfinished_forgetting() if self._store else None
        except StorageError as error:
            return str(error)
        return f"forgetting {self.draw.count(len(begun.ids))} was begun" if begun else ""

    def tell_of_upkeep(self) -> None:
        """After a write: wait until the upkeep that it started is done, and say what failed."""
        if self._store is not None and self._store.version != self._found:
            with self.out.progress("upkeep"):
                failures = self._store.wait_for_upkeep().failures
            for failure in failures:
                complain(str(failure), label="upkeep: ")

    def forget_new_store(self) -> None:
        """Remove the store, if this run has made it and nothing was written to it."""
        if self._unmake and self._store and self._store.version == self._found:
            self._unmake()
            self.out.note(f"removed the new store at {self._store.uri}: nothing was stored")
            self._store = None

    def _embedder(self) -> Embedder | None:
        """What was named; None: the default one, where that is of the store's model."""
        if not self.common.embedder or not self.embedding:
            return None
        from lance_memory import embedder_named

        return embedder_named(self.common.embedder)

    def _quotas(self) -> Quotas | None:
        """What tenants may have, as the file says; None: whatever they like."""
        if self.quotas is None:
            return None
        from lance_memory import Quotas

        return Quotas.from_json(read_json(self.quotas))

    @property
    def _branch(self) -> str:
        return self.common.branch or "main"

    def _opened(
        self,
        *,
        create: bool,
        like: str | None = None,
        at: str | None = None,
        branch: str | None = None,
    ) -> MemoryStore:
        from lance_memory import DamagedStoreWarning, MemoryStore, NotFoundError

        path, author = at or self.common.store or "", self.common.author or ""
        options = self.common.storage_options()
        warnings.simplefilter("ignore", DamagedStoreWarning)  # told in our own words
        try:
            store = MemoryStore.open(
                path,
                create=create,
                like=like,
                branch=branch or self._branch,
                author=author,
                embedder=self._embedder(),
                storage_options=options,
                record_queries=self.recording,
                durability=self.common.durability or "process",
                write_path=self.write_path,
                ledger=self.common.ledger or None,
                quotas=self._quotas(),
            )
        except NotFoundError:
            if self._branch == "main":
                raise
            main = MemoryStore.open(path, create=False, storage_options=options)
            if any(b.name == self._branch for b in main.branches()):
                raise
            raise no_branch(self._branch) from None
        if store.damage is not None:
            complain(f"{store.uri}: {store.damage}; `lmem doctor` says more", label="warning: ")
        return store


class Command(TyperCommand):
    """A function that takes a `Call` first, as a command.

    Parameters that are option groups (dataclasses) become one option for each of their fields;
    `Common` is added to all. All of that is made when it is first asked for: a run needs one of
    about a hundred commands, and a list of them only their names and first sentences.
    """

    def __init__(self, function: Callable[..., None], name: str | None = None) -> None:
        super().__init__(
            name or function.__name__.replace("_", "-"),
            help=inspect.getdoc(function),
            rich_markup_mode=None,
        )
        self._function = function
        del self.params, self.callback

    def __getattr__(self, name: str) -> Any:
        """The options and what they call, for the rest of this command's life."""
        if name not in ("params", "callback"):
            raise AttributeError(name)
        alone = typer.Typer(add_completion=False)
        alone.command()(_called(self._function))
        made = get_command(alone)
        self.params, self.callback = made.params, made.callback
        return getattr(self, name)


class Group(TyperGroup):
    """Commands under one word; the word alone shows its help."""

    def __init__(self, name: str, *, help: str, epilog: str | None = None) -> None:
        super().__init__(name=name, help=help, epilog=epilog, rich_markup_mode=None)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What comes after the word."""
        return super().parse_args(ctx, args or ["--help"])


def _called(function: Callable[..., None]) -> Callable[..., None]:
    """The same with each option as a parameter of its own, as typer reads them."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}

    def called(**given: Any) -> None:
        outer = given.pop("context").find_root().obj
        call = Call(_taken(Common, given).over(outer))
        collected = {n: _taken(group, given) for n, group in groups.items()}
        _guarded(call, lambda call: function(call, **given, **collected))

    signature = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *_parameters(function, hints),
        *_options(Common),
    ]
    called.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    called.__annotations__ = {}
    return called


def approved(
    call: Call,
    gate: Gate,
    *,
    plan: Any,
    human: Callable[[], RenderableType],
    quiet: Iterable[object],
    question: str,
) -> bool:
    """Show a plan; whether it is to be carried out.

    Raises:
        Unconfirmed: it was declined, or there is no terminal to ask on.
    """
    if gate.dry_run:
        call.out.show(plan, human=human, quiet=quiet)
        call.out.note("dry run: nothing was written")
        return False
    asking = not gate.yes
    if asking or call.out.is_human:
        call.out.preview(human)
    if asking and not sys.stdin.isatty():
        raise Unconfirmed(
            "not confirmed, nothing was written: there is no terminal to ask on; "
            "add --yes to do it, or --dry-run to only look"
        )
    if asking and not _agreed(question):
        raise Unconfirmed("not confirmed, nothing was written")
    return True


def _agreed(question: str) -> bool:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _guarded(call: Call, action: Callable[[Call], None]) -> None:
    try:
        action(call)
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):  # what upkeep has left is due again
            call.tell_of_upkeep()
        answered()
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except BaseException as error:
        if not _interrupted(error):
            call.forget_new_store()
            raise
        complain(call.interrupted(), label="")
        raise typer.Exit(INTERRUPTED) from None


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: an import that it hits fails with an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _taken(group: type[Any], given: dict[str, Any]) -> Any:
    return group(**{field.name: given.pop(field.name) for field in fields(group)})


def _parameters(function: Callable[..., None], hints: dict[str, Any]) -> list[inspect.Parameter]:
    """The function's own parameters but the call, groups spread out."""
    found: list[inspect.Parameter] = []
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        if is_dataclass(hints[name]):
            found += _options(hints[name])
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            found.append(parameter.replace(kind=kind, annotation=hints[name]))
    return found


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
