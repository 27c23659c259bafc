"""What tests of resolving share: candidates made of few words, and the way into a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lance_memory.ingest.candidate import Candidate, Category, Claim
from lance_memory.ingest.embedding import vectors_of
from lance_memory.ingest.message import Role
from lance_memory.ingest.resolve import Resolve
from lance_memory.record.memory import Scope

START = datetime(2025, 1, 1, tzinfo=UTC)
ANA = Scope(tenant="acme", user="ana", session="s1")


def said(content, *, day=0, claim=None, event="", **fields):
    """A candidate of a user on a day; `claim` is "attribute value", with "!" at the end if single.

    An event of its own for each content and day, unless it is given.
    """
    if isinstance(claim, str):
        attribute, _, value = claim.partition(" ")
        single = value.endswith("!")
        claim = Claim(
            subject="user", attribute=attribute, value=value.removesuffix("!"), single=single
        )
    given = {"importance": 6.0, "confidence": 0.8, "scope": ANA, "category": Category.FACT}
    given |= {"event": event or f"{content}@{day}", "event_at": START + timedelta(days=day)}
    return Candidate(content=content, claim=claim, **{**given, **fields})


def lives(place, *, day=0, change=False, **fields):
    content = f"I {'moved and now live' if change else 'live'} in {place}"
    return said(content, day=day, claim=f"residence {place.casefold()}!", **fields)


def likes(thing, *, day=0, no=False, **fields):
    content = f"I {'do not like' if no else 'like'} {thing}"
    return said(content, day=day, claim=f"likes {'not ' if no else ''}{thing}", **fields)


class Talk:
    """A store, and what is said to it."""

    def __init__(self, store, resolve=None):
        self.store = store
        self.resolve = resolve or Resolve()
        self.decisions = []

    def put(self, *candidates, vectors=True, within=None):
        """Resolve and commit as one version; the decisions."""
        embed = self.store._embed if vectors else _no_vector
        made = vectors_of(candidates, embed, dimension=self.store._table.format.dimension)
        now = self.store._moment()
        told = []

        def plan(snapshot):
            found = self.resolve.resolved(
                snapshot,
                candidates,
                made,
                audit=self.store._audit("ingest"),
                now=now,
                embed=embed,
                within=within,
            )
            told[:] = found.decisions
            return found.change

        self.store._commit(plan)
        self.decisions += told
        return [(d.verdict, d.reason) for d in told]

    def visible(self):
        return sorted(m.content for m in self.store.list())

    def states(self):
        return {m.content: str(m.state) for m in self.store.list(states="any")}


def _no_vector(texts):
    from lance_memory import EmbeddingError

    raise EmbeddingError("there is no embedder here")


__all__ = ["ANA", "START", "Role", "Talk", "likes", "lives", "said"]
