"""What a caller may choose of a context pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from lance_memory.agent.context.candidate import ContextSource
from lance_memory.agent.workspace import MemoryMode
from lance_memory.errors import InvalidInputError
from lance_memory.record.arguments import flag, instance, one_of, real, seconds, whole

__all__ = ["SHARES", "ContextOptions", "ContextShare", "Count"]

Count: TypeAlias = Callable[[list[str]], Sequence[int]]
"""A list of n texts to n numbers of tokens."""


_TOKENS_A_HIT: Final = 15
"""Well below the 40 of a turn, as many candidates are left out."""

_FEWEST_HITS: Final = 50
_MOST_HITS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextShare:
    """What one source may have of a pack.

    Attributes:
        weight: what its relevance is multiplied with, >= 0; see `score`.
        tokens: at most this share of the budget, 0..1.
        items: at most as many; None: as many as there is room for.
    """

    weight: float = 1.0
    tokens: float = 1.0
    items: int | None = None

    def __post_init__(self) -> None:
        real("weight", self.weight, least=0)
        real("tokens", self.tokens, least=0, most=1)
        if self.items is not None:
            whole("items", self.items, least=0)


SHARES: Final[Mapping[ContextSource, ContextShare]] = MappingProxyType(
    {
        ContextSource.WORKING: ContextShare(tokens=0.5),
        ContextSource.EPISODIC: ContextShare(),
        ContextSource.SEMANTIC: ContextShare(tokens=0.5),
        ContextSource.PROCEDURAL: ContextShare(tokens=0.25, items=3),
        ContextSource.PROFILE: ContextShare(weight=0.8, tokens=0.25, items=20),
        ContextSource.DISTILLED: ContextShare(weight=2.0, tokens=0.5, items=5),
        ContextSource.SHARED: ContextShare(tokens=0.25),
    }
)
"""Of each source, unless a caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextOptions:
    """How a context pack is made.

    Attributes:
        budget_tokens: what the whole text may have, its frame included: the lines around the items
            have some 40 tokens, and more where the scope has long names. Where nothing fits beside
            them the pack is empty, and `degraded` says "budget".
        shares: what sources may have; those that are not named have that of `SHARES`.
        recent: messages of the session that are looked at, the newest.
        k: memories that the search gives, at most. None: one for every 15 tokens of the budget, 50
            at least and 1,000 at most.
        procedures: procedures that are looked at.
        lead: the first so many events of the search bring what was said right before and after
            them; 0: none does.
        relevance: 0..1, of maximal marginal relevance: 1 takes candidates by their score alone,
            less prefers what is unlike the ones that are in the pack.
        min_score: the relevance 0..1 (see `score`, before the weight) below which nothing is
            recalled; recent messages and the profile are there all the same. The best hit has 1, so
            this is a share of it; what a smaller cosine gives by itself does not count at all. The
            default is chosen by hand, and takes no evidence away (design/029).
        longest: of one item, as a share of the budget, above 0; the rest of its text is left out.
        latency: seconds after which the pack is made without what needs the embedder and has not
            answered; None: it is waited for.
        mode: which memory mode; None: the workspace's, else "hybrid".
        tokenizer: counts tokens; None: the store's embedder does.
        ids: whole ids in the text in place of numbers. An id costs about 25 tokens.
        shared: look also among what others share with the handle's scope; see `Sharing`.
    """

    budget_tokens: int = 2_000
    shares: Mapping[ContextSource | str, ContextShare] = field(default_factory=dict)
    recent: int = 20
    k: int | None = None
    procedures: int = 3
    lead: int = 10
    relevance: float = 0.9
    min_score: float = 0.05
    longest: float = 0.5
    latency: float | None = None
    mode: MemoryMode | str | None = None
    tokenizer: Count | None = None
    ids: bool = False
    shared: bool = True

    def __post_init__(self) -> None:
        whole("budget_tokens", self.budget_tokens, least=1)
        if not isinstance(self.shares, Mapping):
            raise InvalidInputError(
                f"shares={self.shares!r:.120}; it takes a mapping of sources to ContextShare"
            )
        for source, share in self.shares.items():
            one_of("shares", source, ContextSource)
            instance("shares", share, ContextShare, "a ContextShare for each source")
        for name in ("recent", "procedures", "lead"):
            whole(name, getattr(self, name), least=0)
        if self.k is not None:
            whole("k", self.k, least=0)
        real("relevance", self.relevance, least=0, most=1)
        real("min_score", self.min_score, least=0, most=1)
        real("longest", self.longest, least=0, most=1, without=0)
        if self.latency is not None:
            seconds("latency", self.latency)
        if self.mode is not None:
            one_of("mode", self.mode, MemoryMode)
        if self.tokenizer is not None and not callable(self.tokenizer):
            raise InvalidInputError(
                f"tokenizer={self.tokenizer!r:.120}; it takes a function of a list of texts to as "
                "many numbers"
            )
        flag("ids", self.ids)
        flag("shared", self.shared)

    @property
    def hits(self) -> int:
        """How many memories the search is asked for."""
        if self.k is not None:
            return self.k
        return min(_MOST_HITS, max(_FEWEST_HITS, self.budget_tokens // _TOKENS_A_HIT))

    def share(self, source: ContextSource) -> ContextShare:
        """What the source may have."""
        return self.shares.get(source, SHARES[source])
