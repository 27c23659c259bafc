"""Sharing: what one scope lets another of its tenant see, grant by grant."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from datetime import datetime
from typing import Unpack

from lance_memory.curate import retirement
from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.granting.named import one_named
from lance_memory.granting.receiving import Receiving
from lance_memory.record.filters import Filter, Where, all_of, is_one_of, visible
from lance_memory.record.identity import new_id
from lance_memory.record.intake import take_in
from lance_memory.record.memory import Scope
from lance_memory.record.results import WriteResult
from lance_memory.record.rows import EMBEDDING
from lance_memory.record.values import text_value
from lance_memory.sharing import Grant, Rights, Terms, grants, grants_in, row_of
from lance_memory.storage import ChangeSet, Snapshot
from lance_memory.wording import some
from lance_memory.writing import Refs, kept

__all__ = ["Sharing"]


class Sharing(Receiving):
    """What the scope of a handle lets others see, and what others let it see; `store.sharing`.

    Nothing is shared unless it is granted, from a user or an agent to a user or an agent of the
    same tenant. A grant is a row of the giver's workspace: a version gives it, a version takes it
    back, and the log says who, to whom and why.

    What was received is looked up at each call, at the newest version: what the grants name that
    hold now, as far as it is visible and the giver's own. So what a giver retires or forgets is
    gone here too, and what he stores later and passes a grant's filter is shared. It is in no other
    read of the handle, but in the context packs of `Agent`, marked as whose it is; and cannot be
    shared on.
    """

    def share(
        self,
        refs: Refs | None = None,
        *,
        with_: Scope | Mapping[str, str],
        rights: Rights | str = Rights.READ,
        expires_at: datetime | None = None,
        reason: str = "",
        dry_run: bool = False,
        **where: Unpack[Where],
    ) -> Grant:
        """Let a user or an agent of the same tenant see memories of this scope.

        The same terms again are the grant that there is.

        Args:
            refs: visible memories, by id, key or unambiguous beginning of an id.
            with_: `Scope(user=...)`, `{"agent": ...}`, or both for one user's agent.
            rights: "read", or "write", which also lets change in place what a memory says.
            expires_at: from when on the grant gives nothing; None: until it is revoked.
            reason: kept with the grant, and shown by `log`.
            dry_run: write nothing; the grant is what would be given.
            where: in place of `refs`: see `Where`. The filter is what is granted: what passes
                later is shared too, and what passes no longer is not. `states` cannot be given;
                the handle's own scope as a filter, such as user="ana", means everything.

        Raises:
            ScopeError: this handle is not kept to a user or an agent; or another tenant is meant.
            InvalidInputError: both names and a filter, or neither; a receiver who is nobody, or
                has it all already; an end that is past; no such rights; a filter that makes no
                sense.
            NotFoundError, AmbiguousError: as for `get`; what was received is nobody's to share.
            EmbeddingError: the embedder failed.
        """
        handle, now = self._handle, self._handle._moment()
        if refs is not None and where:
            raise InvalidInputError("give either memories by name or a filter, not both")
        names = kept(refs)
        terms = Terms.of(
            handle.scope,
            with_=with_,
            rights=rights,
            expires_at=expires_at,
            where=None if names is not None else where,
            now=now,
        )
        made = row_of(
            terms, (), id=new_id(now), by=handle.author, reason=text_value("reason", reason)
        )
        vector = handle._embedding_of(made["content"])
        found: builtins.list[Grant] = []

        def plan(snapshot: Snapshot) -> ChangeSet:
            ids = None if names is None else self._named(names, snapshot)
            row = row_of(terms, ids, id=made["id"], by=handle.author, reason=reason)
            taken = take_in(
                [{**row, EMBEDDING: vector}], schema=snapshot.schema, scope=handle.scope, now=now
            )
            asked = grants_in(taken.rows, moment=now)[0]
            held = self._given(snapshot, now, ended=False)
            known = [grant for grant in held if grant.terms == asked.terms]
            found[:] = known[:1] or [asked]
            audit = handle._audit("share", reason, manifest=asked.manifest())
            return ChangeSet(audit=audit, inserts=None if known else taken.rows, looked=True)

        if dry_run:
            plan(handle._snapshot())
        else:
            handle._write(plan)
        return found[0]

    def revoke(self, grant: Grant | str, *, reason: str = "") -> WriteResult:
        """Take back a grant of this scope; what was read through it before is known all the same.

        A write through it that was planned before may still land right after.

        Args:
            grant: or its id, or an unambiguous beginning of it.
            reason: kept with the grant, and shown by `log`.

        Raises:
            NotFoundError, AmbiguousError: no grant of this scope has that name, or several.
        """
        handle = self._handle
        ref = grant.id if isinstance(grant, Grant) else grant

        def plan(snapshot: Snapshot) -> ChangeSet:
            rows = one_named(
                snapshot,
                ref,
                within=all_of(grants(), handle._boundary()),
                nothing=f"there is no grant {ref!r} of {handle.scope}; `granted` lists them",
            )
            given = grants_in(rows, moment=handle._moment())
            manifest = given[0].manifest() if given else {}
            return retirement(rows, audit=handle._audit("revoke", reason, manifest=manifest))

        return handle._write(plan)

    def granted(self, *, ended: bool = False) -> builtins.list[Grant]:
        """The grants of this scope, oldest first.

        Args:
            ended: also those that were revoked or have expired.
        """
        handle = self._handle
        return self._given(handle._snapshot(), handle._moment(), ended=ended)

    # -- inside ---------------------------------------------------------------------------

    def _named(self, names: Refs, snapshot: Snapshot) -> builtins.list[str]:
        """The ids of the visible memories of this scope that are named, each once."""
        handle = self._handle
        rows = handle._rows(names, snapshot)
        inside = Filter(scope=handle.scope, also=is_one_of("id", rows["id"].to_pylist()))
        seen = snapshot.scan(inside.predicate(handle._moment()), columns=["id"])
        hidden = sorted(set(rows["id"].to_pylist()) - set(seen["id"].to_pylist()))
        if hidden:
            raise NotFoundError(
                f"{some(hidden, 3)} cannot be shared: only visible memories are, and what an agent "
                "is told is none"
            )
        return [str(identifier) for identifier in rows["id"].to_pylist()]

    def _given(self, snapshot: Snapshot, moment: datetime, *, ended: bool) -> builtins.list[Grant]:
        standing = None if ended else visible(moment)
        return grants_in(
            snapshot.scan(all_of(grants(), self._handle._boundary(), standing)), moment=moment
        )
