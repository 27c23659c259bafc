"""The profile layer: what is known of somebody, a JSON value under each key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from lance_memory.agent.keyed import held, of_key, of_own_scope, persistently, refuse_stale
from lance_memory.errors import NotFoundError
from lance_memory.record.arguments import real
from lance_memory.record.compare import same_json
from lance_memory.record.keys import PROFILE, checked_name
from lance_memory.record.memory import Kind, Memory, Scope, State
from lance_memory.record.results import WriteResult
from lance_memory.record.values import json_text
from lance_memory.store import MemoryStore
from lance_memory.wording import shown

__all__ = ["Fact", "ProfileMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One version of one fact.

    Attributes:
        fact_key: its name.
        value: any JSON value.
        confidence: 0..1.
        version: 1, 2, ...; never the same for two values that a scope had under the key, unless
            the store was rolled back in between.
        id: of the memory.
        scope: whose it is.
        state: active; superseded, where another value took its place; retired, where it was
            removed.
        updated_at: when the memory was changed last, UTC.
    """

    fact_key: str
    value: Any
    confidence: float
    version: int
    id: str
    scope: Scope
    state: State
    updated_at: datetime

    def __str__(self) -> str:
        return f"{self.fact_key}: {_shown(self.value)}"

    def __repr__(self) -> str:
        return (
            f"<Fact {shown(str(self))!r}, version {self.version}, confidence={self.confidence}, "
            f"{self.state}; {self.scope}, id {self.id}>"
        )


class ProfileMemory:
    """Facts by key, each the only one of its key in the handle's scope.

    Rows of `kind=profile` under the key `profile:<fact_key>`; the value is in `metadata`, and the
    content says "fact_key: value". A new value takes the place of the old one, which stays in the
    history. Scope the store to a user, and to an agent where agents are to know different things.

    The verbs that name one fact are about the handle's own scope, or, where that has no such fact,
    about the only narrower scope that has; `set` writes into the handle's own.

    A `rollback` or `revert` of the *store* takes versions of facts back, and their numbers are
    given again: an `expected_version` that was read before it may then stand for another value.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def set(
        self,
        fact_key: str,
        value: Any,
        *,
        confidence: float = 1.0,
        expected_version: int | None = None,
    ) -> Fact:
        """Say what is so from now on; a different value supersedes the one that was.

        The same value again is no new version; it raises the confidence, and never lowers it.

        Args:
            fact_key: not blank, one line, 200 characters at most.
            value: any JSON value; 0, False, "", None and [] are values.
            confidence: 0..1.
            expected_version: of the fact that was read, 0 where there was none. None: whatever
                there is by now. To be read anew after a `rollback` or `revert` of the store, which
                gives numbers again.

        Raises:
            InvalidInputError: a key, value or confidence that makes no sense.
            ConflictError: another version is there than the expected one, or the key is another
                memory's; nothing was written.
            EmbeddingError: the embedder failed.
        """
        key = _key(fact_key)
        stated = json.loads(json_text("value", {"value": value}))["value"]
        sure = real("confidence", confidence, least=0, most=1)

        def attempt() -> Fact:
            old = held(self._store, key, is_one=_is_fact, other="no fact of a profile")
            _refuse_other(fact_key, old, expected_version)
            if old is not None and same_json(old.metadata["value"], stated):
                return self._surer(old, sure)
            made = self._store.upsert(
                f"{fact_key}: {_shown(stated)}",
                key=key,
                expected=old.id if old else "",
                kind=Kind.PROFILE,
                confidence=sure,
                metadata={
                    "fact_key": fact_key,
                    "value": stated,
                    "version": 1 + (_version(old) if old else self._last(key)),
                },
            )
            return _fact(self._store.get(made.id))

        return persistently(attempt)

    def get(self, fact_key: str) -> Fact:
        """The fact, as it stands.

        Raises:
            NotFoundError: there is none.
            AmbiguousError: several narrower scopes have one, and the handle's own has none.
        """
        found = self.find(fact_key)
        if found is None:
            raise _no_fact(fact_key, self._store.scope)
        return found

    def find(self, fact_key: str) -> Fact | None:
        """Like `get`, but None where there is none."""
        found = of_key(self._store, _key(fact_key), kind=Kind.PROFILE)
        return next((_fact(memory) for memory in found if _is_fact(memory)), None)

    def all(self) -> list[Fact]:
        """Every fact that stands, of narrower scopes too, by key and scope."""
        facts = [_fact(m) for m in self._store.list(kinds=Kind.PROFILE) if _is_fact(m)]
        return sorted(facts, key=lambda fact: (fact.fact_key, tuple(fact.scope.names().values())))

    def history(self, fact_key: str) -> list[Fact]:
        """The values that the fact had, the first one first; the last may have been removed.

        Raises:
            NotFoundError: there never was one.
            AmbiguousError: as for `get`.
        """
        found = of_key(self._store, _key(fact_key), kind=Kind.PROFILE, states="any")
        if not found:
            raise _no_fact(fact_key, self._store.scope)
        return sorted(map(_fact, filter(_is_fact, found)), key=lambda fact: fact.version)

    def remove(
        self, fact_key: str, *, expected_version: int | None = None, reason: str = ""
    ) -> WriteResult:
        """Retire the fact; `history` still has it, and `store.unretire` brings it back.

        Args:
            fact_key: which.
            expected_version: of the fact that was read; None: whatever there is by now.
            reason: shown by `log`.

        Raises:
            NotFoundError, AmbiguousError: as for `get`.
            ConflictError: another version is there than the expected one.
        """

        def attempt() -> WriteResult:
            of_this_key = of_key(self._store, _key(fact_key), kind=Kind.PROFILE)
            found = next(filter(_is_fact, of_this_key), None)
            if found is None:
                raise _no_fact(fact_key, self._store.scope)
            _refuse_other(fact_key, found, expected_version)
            return self._store.retire(found.id, reason=reason)

        return persistently(attempt)

    def _surer(self, one: Memory, confidence: float) -> Fact:
        """The fact, with that confidence if it has less."""
        if np.float32(confidence) <= np.float32(one.confidence):
            return _fact(one)
        self._store.update(one.id, confidence=confidence, revision=one.revision)
        return _fact(self._store.get(one.id))

    def _last(self, key: str) -> int:
        """The greatest version that the handle's own scope ever had, 0 for none."""
        found = of_own_scope(self._store, key, kinds=(Kind.PROFILE,), states="any")
        return max(map(_version, filter(_is_fact, found)), default=0)


def _key(fact_key: str) -> str:
    return PROFILE + checked_name("fact_key", fact_key)


def _is_fact(memory: Memory) -> bool:
    said = memory.metadata
    named = memory.key == f"{PROFILE}{said.get('fact_key')}"
    told = named and "value" in said and type(said.get("version")) is int
    return told and memory.kind is Kind.PROFILE


def _version(memory: Memory) -> int:
    return int(memory.metadata["version"])


def _fact(memory: Memory) -> Fact:
    return Fact(
        fact_key=memory.metadata["fact_key"],
        value=memory.metadata["value"],
        confidence=float(str(np.float32(memory.confidence))),  # 0.9, and not 0.8999999761581421
        version=_version(memory),
        id=memory.id,
        scope=memory.scope,
        state=memory.state,
        updated_at=memory.updated_at,
    )


def _refuse_other(fact_key: str, old: Memory | None, expected: int | None) -> None:
    standing = _version(old) if old else 0
    refuse_stale(f"the fact {fact_key!r}", standing, expected, id=old.id if old else None)


def _no_fact(fact_key: str, scope: Scope) -> NotFoundError:
    return NotFoundError(
        f"there is no fact {fact_key!r} in {scope}; `lmem profile list` shows those that there are"
    )


def _shown(value: Any) -> str:
    """A text as it is; anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
