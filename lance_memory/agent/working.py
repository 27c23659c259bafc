"""The working layer: what is said just now, and what it is about."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from lance_memory.agent.flush import Flushed, Flushing, flushed
from lance_memory.agent.hot import HotTier
from lance_memory.agent.importance import Heuristic, ImportanceAssessor
from lance_memory.agent.recent import Recent
from lance_memory.agent.session_state import SessionState, session_states
from lance_memory.agent.values import cleaned_values, small_enough
from lance_memory.errors import ScopeError
from lance_memory.ingest import Conversation, Message, Role
from lance_memory.ingest.sessions import Said, SessionContext, Sessions
from lance_memory.record.arguments import duration, instance, mapping, one_of, real, whole
from lance_memory.record.memory import SAID, Kind, Scope
from lance_memory.record.results import WriteResult
from lance_memory.record.times import LATEST, utc
from lance_memory.store import MemoryStore
from lance_memory.telemetry import count, observe

__all__ = ["WorkingMemory"]

_TICK = timedelta(microseconds=1)
_REMEMBERED = 1_024
"""Sessions of which a handle remembers what they are called in the ledger."""


class WorkingMemory:
    """The messages of sessions while they are fresh, and a few values of each: its context.

    **What is guaranteed, and when.** A message is in the ledger beside the store when `append`
    returns: it survives that any process is killed, and every process of the store sees it at once.
    Several that append to one session lose and double nothing; messages are in the order in which
    they were numbered, and a number is never given twice. Each message is one write of its own, so
    of a batch that is interrupted the first ones are there. A power cut may take the messages of
    the last moments, unless the store was opened with `durability="power"`: then each is on the
    disk before `append` returns, for one fsync more (0.6 ms on a disk with a safe cache, 5 to 10
    without one). A Redis server keeps what its settings say (`appendfsync always`); a store in an
    object store that was opened without `ledger=` keeps messages in this process's memory alone,
    until they hibernate or are flushed. Secrets and personal data are taken out before anything is
    kept, as the store's write path says. A message ends `ttl` after it was appended: from then on
    nothing returns it, whenever it is removed.

    Reading recent messages and appending one take well below a millisecond (`bench/working.py`):
    the last messages of a session are held in memory, bounded, and two short reads of the ledger
    say whether they still are the last ones.

    **From the ledger to the table.** `hibernate` puts the messages of idle sessions into the table
    as rows of `kind=working` that end when the messages do; `recent` reads them from there. `flush`
    makes those of a session that matter episodes. Either is one version. A process that is killed
    in between loses and doubles nothing: rows have ids that are made from the messages. `rollback`
    does not bring messages back that became rows later: the ledger has no versions.

    A session is a name within the handle's scope: the same name of another user, agent or tenant is
    another session.

    Args:
        store: a handle that is scoped to a tenant, a user or an agent.
        ttl: how long a message, and the context, is to be seen.
        assessor: how much an exchange matters, unless `flush` is told otherwise; by default
            `Heuristic`.
        hot: where recent messages are held; by default the tier that handles of an opened store
            share.
        whole_store: take a handle that is not scoped. `sessions` and `hibernate` are then about
            everybody's sessions, as an operator wants it; `append` and `recent` are about sessions
            that are nobody's, so only for a program that has no users.

    Raises:
        ScopeError: the handle is not scoped to a tenant, user or agent, and `whole_store` is off.
        InvalidInputError: the store's ledger is elsewhere (see `MemoryStore.open`), or a time to
            live that is not above 0.
    """

    TTL: Final = timedelta(hours=24)
    IDLE: Final = timedelta(minutes=5)

    def __init__(
        self,
        store: MemoryStore,
        *,
        ttl: timedelta = TTL,
        assessor: ImportanceAssessor | None = None,
        hot: HotTier | None = None,
        whole_store: bool = False,
    ) -> None:
        scope = store.scope
        if not (scope.tenant or scope.user or scope.agent or whole_store):
            raise ScopeError(
                "working memory is somebody's: give store.scoped(tenant=..., user=..., agent=...), "
                "or say whole_store=True where the sessions of everybody are meant"
            )
        self._store = store
        self._ttl = duration("ttl", ttl)
        self._assess = Heuristic() if assessor is None else assessor
        self._sessions = Sessions(store._whole_ledger())
        self._recent = Recent(self._sessions, HotTier.of(store) if hot is None else hot)
        self._known: dict[str, MemoryStore] = {}
        self._begun = False

    # -- messages -------------------------------------------------------------------------

    def append_message(
        self,
        session: str,
        role: Role | str,
        content: str,
        *,
        actor: str = "",
        at: datetime | None = None,
        ref: str = "",
    ) -> int:
        """`append`, from its parts."""
        said = Role(one_of("role", role, Role))
        return self.append(
            session, Message(content=content, role=said, actor=actor, at=at, ref=ref)
        )

    def append(self, session: str, message: Message) -> int:
        """Add a message to a session; its number there, from 1 on.

        A message without a time was said now. One with a `ref` or a `seq` is known by it: said
        again with the same content, it counts once.

        Raises:
            InvalidInputError: no name of a session, or no message.
            RejectedError: the message is blank, or may not be kept at all.
            StorageError: the ledger cannot be written to.
        """
        return self.append_many(session, [message])[0]

    def append_many(self, session: str, messages: Iterable[Message]) -> tuple[int, ...]:
        """Add messages to a session, in order; the numbers of those that are kept.

        Left out is what is blank, and what redaction takes out as a whole. What it finds in one of
        them it takes out of all.

        Raises:
            InvalidInputError: no name of a session, or what is no message.
            RejectedError: none of them is kept.
            StorageError: the ledger cannot be written to; those before are there.
        """
        begun = time.perf_counter()
        handle, now = self._handle(session), self._now()
        given = [instance("a message", message, Message, "a Message") for message in messages]
        timed = [m if m.at else replace(m, at=now + n * _TICK) for n, m in enumerate(given)]
        if not timed:
            return ()
        scope = self._store.scope.narrowed(session=session)
        cleaned = self._store.cleaned(Conversation(messages=tuple(timed), scope=scope)).messages
        if not self._begun:
            self._sessions.begin()
            self._begun = True
        numbers = tuple(
            self._sessions.append(handle.scope, self._said(message, now + place * _TICK))
            for place, message in enumerate(cleaned)
        )
        count("working.messages", len(numbers), tenant=scope.tenant)
        _timed("append", begun, scope)
        return numbers

    def recent(self, session: str, n: int = 10) -> tuple[Message, ...]:
        """The last `n` messages of a session that have not ended, oldest first.

        Those that were flushed are episodes, and no longer here.

        Raises:
            InvalidInputError: no name of a session, or a negative number.
        """
        begun = time.perf_counter()
        handle = self._handle(session)
        wanted = whole("n", n, least=0)
        found = self._recent.last(handle, handle.scope, wanted, now=self._now()) if wanted else []
        _timed("recent", begun, handle.scope)
        return tuple(said.message for said in found)

    # -- context --------------------------------------------------------------------------

    def context(self, session: str) -> dict[str, Any]:
        """The values of a session: what it is about just now; empty, where there are none."""
        handle = self._handle(session)
        found = self._sessions.context(handle.scope)
        return dict(found.values) if found is not None and found.until > self._now() else {}

    def set_context(
        self, session: str, values: Mapping[str, Any], *, replace_all: bool = False
    ) -> dict[str, Any]:
        """Set values of a session's context; all of them now, at once, also beside other writers.

        Texts in it are kept as messages are: in one form, and without secrets.

        Args:
            session: whose.
            values: names to JSON values.
            replace_all: let go of the values that are not given.

        Raises:
            InvalidInputError: what is given is no JSON, or the context would be over 64 KiB.
            RejectedError: a text in it may not be kept at all.
            StorageError: the ledger cannot be written to.
        """
        handle, now = self._handle(session), self._now()
        scope = self._store.scope.narrowed(session=session)
        given = cleaned_values(
            self._store,
            scope,
            mapping("values", values, "a mapping of names to JSON values"),
            now=now,
        )
        made = SessionContext(values={}, noted=now, until=self._end(now))

        def changed(old: SessionContext | None) -> SessionContext:
            nonlocal made
            kept = old.values if old is not None and old.until > now and not replace_all else {}
            made = replace(made, values=small_enough({**kept, **given}))
            return made

        self._sessions.set_context(handle.scope, changed)
        return dict(made.values)

    # -- sessions -------------------------------------------------------------------------

    def sessions(self) -> list[SessionState]:
        """The sessions within this handle's scope of which something is to be seen."""
        return session_states(self._store, self._sessions, self._recent, now=self._now())

    def clear(self, session: str) -> int:
        """Take a session out of working memory, its context too; how many messages there were.

        Rows of it are retired. To leave no trace, `forget` it.

        Raises:
            StorageError: the ledger, or the table, cannot be written to.
        """
        handle = self._handle(session)
        scope = handle.scope
        messages = self._recent.last(handle, scope, None, now=self._now())
        self._sessions.take_away([scope], whole=False)
        rows = handle.list(kinds=Kind.WORKING, source=SAID)
        if ids := [memory.id for memory in rows if memory.scope == scope]:
            handle.retire(ids, reason="cleared")
        return len(messages)

    # -- into the table -------------------------------------------------------------------

    def hibernate(self, idle: timedelta = IDLE) -> WriteResult:
        """Put the messages of sessions in which nothing was said for a while into the table.

        `MemoryStore.hibernate` of this handle; workers (`lmem worker`) call it by themselves. The
        sessions go on as if nothing had happened.

        Args:
            idle: how long nothing was said.

        Raises:
            InvalidInputError, EmbeddingError, StorageError: as there.
        """
        return self._store.hibernate(idle)

    def flush(
        self,
        session: str,
        min_importance: float | None = None,
        *,
        assessor: ImportanceAssessor | None = None,
        dry_run: bool = False,
    ) -> Flushed:
        """Make the messages of a session that matter memories of what happened, as one version.

        Each becomes a row of `kind=episodic` with its time, role and speaker, under the name of its
        event, which the write path gives it too (`source_ref`). Its importance is that of the
        exchange it is part of: what a person says, and the answers to it. The others stay where
        they are, and end with their time.

        By default only small talk stays: an exchange in which nobody says anything, such as
        "Thanks!" and "You're welcome." (see `Heuristic.is_small_talk`). With an assessor of your
        own everything becomes an episode, unless `min_importance` is given.

        Args:
            session: which.
            min_importance: 0..1; exchanges below it stay. 0: all of them become episodes. None: see
                above.
            assessor: says how much an exchange matters; by default the layer's.
            dry_run: write nothing, and say what would be done.

        Returns:
            The version; `ids` has the memories, and `left` how many messages became none, and why.
            A flush that finds nothing makes no version.

        Raises:
            InvalidInputError: a number out of bounds, also one that the assessor gives.
            EmbeddingError: the embedder failed; the messages are where they were.
            StorageError: the ledger, or the table, cannot be written to.
        """
        least = min_importance
        how = Flushing(
            assess=self._assess if assessor is None else assessor,
            least=None if least is None else real("min_importance", least, least=0, most=1),
            dry_run=dry_run,
        )
        handle = self._handle(session)
        made = flushed(handle, self._sessions, handle.scope, how, now=self._now())
        if made.kept and not dry_run:
            count("working.promoted", made.kept, tenant=handle.scope.tenant)
        return made

    # -- inside ---------------------------------------------------------------------------

    def _now(self) -> datetime:
        return utc(self._store.clock(), "clock()")

    def _handle(self, session: str) -> MemoryStore:
        """The store kept to a session, by the name that it is kept under.

        Names stay what they are, unless the write path takes personal data out of them too.
        """
        found = self._known.get(session) if isinstance(session, str) else None
        if found is None:
            named = self._store.scoped(session=session)
            probe = Conversation(messages=(Message(content="-"),), scope=named.scope)
            scope = self._store.cleaned(probe).scope
            found = self._store.scoped(session=scope.session)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[session] = found
        return found

    def _said(self, message: Message, noted: datetime) -> Said:
        return Said(number=0, message=message, noted=noted, until=self._end(noted))

    def _end(self, noted: datetime) -> datetime:
        """When what was noted ends; no memory ends later than the last moment that it may have."""
        return noted + self._ttl if self._ttl < LATEST - noted else LATEST - _TICK


def _timed(verb: str, begun: float, scope: Scope) -> None:
    observe("working.seconds", time.perf_counter() - begun, verb=verb, tenant=scope.tenant)
