"""What becomes of memories that wait, each as one change set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa

from lance_memory.errors import ConflictError
from lance_memory.ingest.resolve.board import OWNER, Board, Wanted
from lance_memory.ingest.resolve.held import Held
from lance_memory.ingest.resolve.resolve import Resolve
from lance_memory.ingest.resolve.rows import change_of
from lance_memory.ingest.resolve.statement import Statement
from lance_memory.ingest.waiting.waiting import Answer, WaitsFor
from lance_memory.record.filters import Filter, all_of, present
from lance_memory.record.memory import Memory, Scope, State
from lance_memory.record.rows import retired, to_memories
from lance_memory.storage import Audit, ChangeSet, Snapshot

__all__ = ["answered", "approved", "expired", "rejected"]


def approved(
    snapshot: Snapshot, rows: pa.Table, *, resolve: Resolve, audit: Audit, within: Scope
) -> ChangeSet:
    """Pending memories become active; one that clashes takes the place of the other.

    Args:
        snapshot: the version that the commit builds on.
        rows: whole rows of that version.
        resolve: what the memories were resolved by.
        audit: of the commit.
        within: no memory outside of this scope is read or changed.

    Raises:
        ConflictError: one is not pending, or has expired.
    """
    return _settled(snapshot, rows, Answer.NEW, resolve=resolve, audit=audit, within=within)


def answered(
    snapshot: Snapshot,
    rows: pa.Table,
    answer: Answer,
    *,
    resolve: Resolve,
    audit: Audit,
    within: Scope,
) -> ChangeSet:
    """A clash is answered: the new one, the old one, or both are true. Else as `approved`.

    Raises:
        ConflictError: a memory waits for no answer.
    """
    silent = [m.id for m in to_memories(rows) if WaitsFor.of(m) is WaitsFor.CONFIDENCE]
    if silent:
        raise ConflictError(
            f"{silent[0]} clashes with nothing that an answer is asked about; approve or reject it",
            ids=silent,
        )
    if answer is Answer.OLD:
        return rejected(rows, audit=audit)
    return _settled(snapshot, rows, answer, resolve=resolve, audit=audit, within=within)


def rejected(rows: pa.Table, *, audit: Audit) -> ChangeSet:
    """Pending memories are retired, with the reason of the audit.

    Raises:
        ConflictError: one is not pending.
    """
    _refuse_others(to_memories(rows), "reject")
    reason = audit.reason or "rejected"
    return ChangeSet(audit=audit, updates=retired(rows, reason=reason, now=audit.at))


def expired(snapshot: Snapshot, scope: Scope, *, audit: Audit) -> ChangeSet:
    """Pending memories whose time is over are retired."""
    pending = Filter(scope=scope, states=(State.PENDING,)).predicate(None)
    rows = snapshot.scan(all_of(pending, present("expires_at")), columns=snapshot.schema.names)
    over = [end <= audit.at for end in rows["expires_at"].to_pylist()]
    gone = rows.filter(pa.array(over, pa.bool_()))
    return ChangeSet(audit=audit, updates=retired(gone, reason="expired", now=audit.at))


def _settled(
    snapshot: Snapshot,
    rows: pa.Table,
    answer: Answer,
    *,
    resolve: Resolve,
    audit: Audit,
    within: Scope,
) -> ChangeSet:
    memories = to_memories(rows)
    _refuse_others(memories, "approve", at=audit.at)
    owners: dict[tuple[str, ...], list[Memory]] = {}
    for memory in memories:
        owners.setdefault(tuple(getattr(memory, level) for level in OWNER), []).append(memory)
    boards = [
        _board(snapshot, owner, mine, now=audit.at, within=within) for owner, mine in owners.items()
    ]
    for board, mine in zip(boards, owners.values(), strict=True):
        for memory in mine:
            held = board.find(memory.id)
            if held is not None:
                _let_in(board, held, answer, resolve)
    return change_of(snapshot, boards, audit=audit, now=audit.at)


def _let_in(board: Board, held: Held, answer: Answer, resolve: Resolve) -> None:
    held.settled = str(answer)
    held.state, held.reason, held.expires_at = State.ACTIVE, "approved", None
    resolve.settle(board, held)


def _board(
    snapshot: Snapshot,
    owner: Sequence[str],
    memories: Sequence[Memory],
    *,
    now: datetime,
    within: Scope,
) -> Board:
    topics = [topic for m in memories if (topic := Statement.held(m).topic) is not None]
    wanted = Wanted(
        ids=[memory.id for memory in memories],
        hashes=[],
        topics=topics,
        texts=[],
        vectors=np.zeros((0, snapshot.dimension), np.float32),
        valid=np.zeros(0, np.bool_),
    )
    return Board(snapshot, owner, wanted, now=now, within=within)


def _refuse_others(memories: Sequence[Memory], action: str, *, at: datetime | None = None) -> None:
    def over(memory: Memory) -> bool:
        return at is not None and memory.expires_at is not None and memory.expires_at <= at

    bad = [m for m in memories if m.state is not State.PENDING or over(m)]
    if bad:
        how = "has expired" if bad[0].state is State.PENDING else f"is {bad[0].state}"
        raise ConflictError(
            f"cannot {action} {bad[0].id}: it {how}, not pending; nothing was written",
            ids=[memory.id for memory in bad],
        )
