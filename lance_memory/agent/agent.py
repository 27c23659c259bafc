"""Agent: what an agent developer calls once per turn, over the layers of one user's memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from lance_memory.agent.context import ContextOptions, ContextPack
from lance_memory.agent.context.build import build
from lance_memory.agent.context.sources import Layers
from lance_memory.agent.distill import Distiller, DistillResult
from lance_memory.agent.episodic import EpisodicMemory
from lance_memory.agent.flush import Flushed
from lance_memory.agent.importance import Heuristic, ImportanceAssessor
from lance_memory.agent.interaction import Interaction, Observed, ObservedMany
from lance_memory.agent.procedural import ProceduralMemory
from lance_memory.agent.profile import ProfileMemory
from lance_memory.agent.semantic import SemanticMemory
from lance_memory.agent.working import WorkingMemory
from lance_memory.agent.workspace import Workspace
from lance_memory.errors import LanceMemoryError, RejectedError, ScopeError
from lance_memory.granting import Sharing
from lance_memory.ingest import Conversation, IngestResult, IngestStatus, Message
from lance_memory.record.arguments import instance, real, text
from lance_memory.record.times import utc
from lance_memory.store import MemoryStore

__all__ = ["Agent"]

_UNKNOWN = 0.5
"""The importance of an interaction where the assessor failed; the default of a memory."""

_NOT_STORED = (IngestStatus.REFUSED, IngestStatus.FAILED)


class Agent:
    """The memory of one user's agent.

    Before a turn `context` gives what it is to know, after it `observe` takes what was said.
    Safe to share between threads.

    Args:
        store: a handle that is scoped to a tenant, a user or an agent.
        assessor: says how much an interaction matters; by default `Heuristic`.
        options: how context packs are made; by default `ContextOptions()`.

    Raises:
        ScopeError: the handle is not scoped.
        InvalidInputError: the store's ledger is elsewhere (see `MemoryStore.open`).
    """

    def __init__(
        self,
        store: MemoryStore,
        *,
        assessor: ImportanceAssessor | None = None,
        options: ContextOptions | None = None,
    ) -> None:
        scope = store.scope
        if not (scope.tenant or scope.user or scope.agent):
            raise ScopeError(
                "an agent is somebody's: give store.scoped(tenant=..., user=..., agent=...), with "
                "one of them at least, in place of the whole store"
            )
        self._store = store
        self._assess = Heuristic() if assessor is None else assessor
        self._options = options or ContextOptions()
        instance("options", self._options, ContextOptions, "ContextOptions")
        self._working = WorkingMemory(store, assessor=self._assess)

    def __repr__(self) -> str:
        return f"<Agent {self._store.uri} scope {self._store.scope}>"

    # -- the layers -----------------------------------------------------------------------

    @property
    def store(self) -> MemoryStore:
        """The handle that all of it goes through."""
        return self._store

    @property
    def working(self) -> WorkingMemory:
        """What is said just now."""
        return self._working

    @cached_property
    def episodic(self) -> EpisodicMemory:
        """What happened."""
        return EpisodicMemory(self._store, assessor=self._assess)

    @cached_property
    def semantic(self) -> SemanticMemory:
        """What is true."""
        return SemanticMemory(self._store)

    @cached_property
    def procedural(self) -> ProceduralMemory:
        """What works."""
        return ProceduralMemory(self._store)

    @cached_property
    def profile(self) -> ProfileMemory:
        """What is known of the user."""
        return ProfileMemory(self._store)

    @cached_property
    def workspace(self) -> Workspace:
        """What the agent is told.

        Raises:
            ScopeError: the handle is scoped to no tenant and no agent.
        """
        return Workspace(self._store)

    @property
    def sharing(self) -> Sharing:
        """What this scope lets others see, and what others let it see."""
        return self._store.sharing

    # -- a turn ---------------------------------------------------------------------------

    def observe(
        self,
        session: str,
        user_input: str,
        agent_output: str = "",
        *,
        at: datetime | None = None,
        ref: str = "",
        actor: str = "",
        wait: bool = True,
    ) -> Observed:
        """Take in one interaction: its messages into working memory, its facts by the write path.

        The messages are kept first (see `WorkingMemory` for what that guarantees). Whatever goes
        wrong after that is told in `failures`, and the turn goes on.

        Args:
            session: which conversation.
            user_input: what was said to the agent; blank: nothing.
            agent_output: what it said; blank: nothing.
            at: when, timezone-aware; None: now.
            ref: the caller's own id: observed again, the interaction counts once.
            actor: who spoke to it, by name.
            wait: run the write path now; else it is queued for a worker.

        Raises:
            InvalidInputError: see `Interaction`.
            ScopeError: the handle is kept to another session.
            StorageError: working memory cannot be written to, so the messages are not kept.
        """
        one = Interaction(
            session=session,
            user_input=user_input,
            agent_output=agent_output,
            at=at,
            ref=ref,
            actor=actor,
        )
        many = self.observe_many([one], wait=wait)
        (observed,) = many.observed
        failures = {**observed.failures, **many.failures}
        return replace(observed, ingest=many.ingest, failures=failures)

    def observe_many(
        self, interactions: Iterable[Interaction], *, wait: bool = True
    ) -> ObservedMany:
        """Take in many interactions: one job of the write path, embedded once, as one version.

        Raises:
            InvalidInputError: something else than interactions.
            ScopeError, StorageError: as for `observe`; of a batch that is interrupted the first
                messages are there.
        """
        given = [instance("an interaction", o, Interaction, "an Interaction") for o in interactions]
        now = utc(self._store.clock(), "clock()")
        for one in given:
            self._store.scope.narrowed(session=one.session)
        turns = [(one.session, one.messages(now=now)) for one in given]
        observed = tuple(self._kept(session, messages) for session, messages in turns)
        if not turns:
            return ObservedMany(observed=())
        result, failures = self._ingested(turns, wait=wait)
        return ObservedMany(observed=observed, ingest=result, failures=failures)

    def context(
        self,
        session: str,
        query: str,
        budget_tokens: int | None = None,
        *,
        options: ContextOptions | None = None,
    ) -> ContextPack:
        """What the agent is to know for its next turn, within a budget of tokens.

        A source that fails or is late is left out, and `degraded` names it.

        Args:
            session: which conversation.
            query: what is asked.
            budget_tokens: of the whole text; None: that of the options.
            options: in place of the agent's own.

        Raises:
            InvalidInputError: a blank query or session, or a budget below 1.
            ScopeError: the handle is kept to another session.
        """
        layers = Layers(store=self._store, working=self._working, procedural=self.procedural)
        return build(
            layers,
            session=session,
            query=query,
            options=self._options if options is None else options,
            budget_tokens=budget_tokens,
        )

    def flush(
        self, session: str, *, min_importance: float | None = None, dry_run: bool = False
    ) -> Flushed:
        """Make what was said in a session memories of what happened; see `WorkingMemory.flush`.

        All of it, but for small talk and what is below `min_importance`; the result says how much
        that was.

        Raises:
            InvalidInputError, EmbeddingError, StorageError: as there.
        """
        return self._working.flush(session, min_importance, dry_run=dry_run)

    def distill(self, session: str | None = None) -> DistillResult:
        """Make snapshots: of one session, or of all sessions and days that have news.

        For other transforms, topics and options see `Distiller`.

        Raises:
            InvalidInputError: no name of a session.
            ScopeError: the handle is kept to another session.
            EmbeddingError, ConflictError: as for `Distiller.distill`.
        """
        distiller = Distiller(self._store)
        if session is None:
            return distiller.distill()
        return distiller.snapshot(session=text("session", session))

    # -- inside ---------------------------------------------------------------------------

    def _kept(self, session: str, messages: Sequence[Message]) -> Observed:
        """The messages in working memory, and how much they matter."""
        failures: dict[str, str] = {}
        numbers: tuple[int, ...] = ()
        try:
            numbers = self._working.append_many(session, messages)
        except RejectedError as error:  # what redaction leaves nothing of ends no turn
            failures["working"] = str(error)
        importance = _UNKNOWN
        try:
            importance = real("importance", self._assess(messages), least=0, most=1)
        except Exception as error:  # noqa: BLE001 - an assessor is anybody's code, and is told of
            failures["importance"] = _told(error)
        return Observed(session=session, messages=numbers, importance=importance, failures=failures)

    def _ingested(
        self, turns: Sequence[tuple[str, tuple[Message, ...]]], *, wait: bool
    ) -> tuple[IngestResult | None, dict[str, str]]:
        """What the write path makes of it, a conversation for each session; or what failed."""
        by_session: dict[str, list[Message]] = {}
        for session, messages in turns:
            by_session.setdefault(session, []).extend(messages)
        conversations = [
            Conversation(
                messages=tuple(messages), scope=self._store.scope.narrowed(session=session)
            )
            for session, messages in by_session.items()
        ]
        try:
            result = self._store.ingest(conversations, wait=wait)
        except Exception as error:  # noqa: BLE001 - steps are anybody's code, and are told of
            return None, {"ingest": _told(error)}
        if result.status not in _NOT_STORED:  # what the gate blocks is an ordinary answer
            return result, {}
        why = ": ".join(part for part in (str(result.status), result.reason) if part)
        return result, {"ingest": "; ".join([why, *result.warnings])}


def _told(error: Exception) -> str:
    known = isinstance(error, LanceMemoryError)
    return str(error) if known else f"{type(error).__name__}: {error}"
