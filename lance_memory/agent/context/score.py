"""One score over all sources. No store.

    score = weight · relevance

`weight` is the source's (`ContextShare`). The relevance is 0..1, and what it is differs:

| source | relevance |
|---|---|
| working | l + (1 - l) · 0.5 · 2^(-n / 8), of likeness l and n later messages |
| episodic, semantic | the score of the search, whose best hit has 1; less of noise, see below |
| distilled | that · (0.5 + 0.5 · quality) of the snapshot |
| episodic, said right before or after a leading hit | 0.5 or 0.7 of that hit's, if that is more |
| shared | the score of the search among it, on the scale of one's own; see `scale` |
| procedural | similarity · success rate, as `ProceduralMemory.best` ranks |
| profile | confidence · (0.5 + 0.5 · score of the search): facts about somebody are worth knowing |

The likeness of a message is the share of the question's content words that it has. So the newest
message is worth half of the best hit of the search if it has nothing to do with the question, and
as much if it has all of its words: a last "Ok." never takes the place of an answer.
A hit without a word of the question and with a cosine below `ContextOptions.min_score` is noise:
of its score only what it has of its neighbours, its actor and a period counts. A message that says
nothing by itself ("Noted.", see `says_nothing`) is noise whatever its cosine, and has nothing of
its neighbours either; but a bare "Yes." right after what asks is its answer.
The numbers 0.5 and 0.7 were chosen on LoCoMo's tuning conversations, where 0.5-0.8 is flat: the
answer to a question stands after it (design/029).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lance_memory.agent.context.candidate import Candidate, ContextSource
from lance_memory.agent.context.options import ContextOptions
from lance_memory.agent.importance import says_nothing
from lance_memory.facts import content_words, plain, tokens
from lance_memory.record.memory import Kind
from lance_memory.record.results import Hit

__all__ = [
    "AFTER",
    "BEFORE",
    "Scored",
    "freshness",
    "hit_relevance",
    "profile_relevance",
    "scored",
    "snapshot_relevance",
    "talk_relevance",
    "with_neighbours",
]

BEFORE: Final = 0.5
AFTER: Final = 0.7

_ANSWERS: Final = frozenset(
    "yes yeah yep yup no nope nah morning afternoon evening night later".split()  # noqa: SIM905
)
"""Of what says nothing by itself, what says something as an answer."""

_HALVED_AFTER: Final = 8
_OF_TALK: Final = 0.5
_OF_A_PROFILE: Final = 0.5
_OF_A_SNAPSHOT: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A candidate and its score, >= 0."""

    candidate: Candidate
    score: float


def freshness(later: int) -> float:
    """Of a message with so many later ones."""
    return float(2.0 ** (-later / _HALVED_AFTER))


def talk_relevance(later: int, query: str, content: str) -> float:
    """Of a message of the conversation; of the question itself, its freshness alone."""
    asked, said = content_words(query), content_words(content)
    same = query.casefold().split() == content.casefold().split()
    likeness = 0.0 if same or not asked else len(asked & said) / len(asked)
    return likeness + (1.0 - likeness) * _OF_TALK * freshness(later)


def hit_relevance(hit: Hit, least: float) -> float:
    """Of a hit of the search: its score, without what a cosine below `least` gave by itself.

    Scores are relative to the best hit, so where nothing has to do with the question the nearest of
    it all would have 1. A message without a word of the question that says nothing has 0.
    """
    if hit.words:
        return hit.score
    if hit.memory.kind is Kind.EPISODIC and says_nothing(hit.memory.content):
        return 0.0
    if hit.similarity is None or hit.similarity >= least:
        return hit.score
    parts = hit.parts
    others = parts.words + parts.neighbours + parts.actor + parts.period
    return hit.score * others / (parts.vector + others) if others else 0.0


def profile_relevance(confidence: float, found: float) -> float:
    """Of a fact of a profile that the search has found with this score; 0: it did not."""
    return confidence * (_OF_A_PROFILE + (1.0 - _OF_A_PROFILE) * found)


def snapshot_relevance(quality: float | None, found: float) -> float:
    """Of a snapshot that the search has found with this score; an unrated one is a good one."""
    return found * (_OF_A_SNAPSHOT + (1.0 - _OF_A_SNAPSHOT) * (1.0 if quality is None else quality))


def with_neighbours(
    found: Sequence[Candidate], around: Iterable[tuple[Candidate, str, int]]
) -> list[Candidate]:
    """The candidates, and what stands next to some of them and says something by itself.

    Args:
        found: with their relevance.
        around: candidates, the id of the one whose neighbour each is, and its offset, -1 or 1.
    """
    best: dict[str, Candidate] = {one.id: one for one in found}
    hits: Mapping[str, Candidate] = {one.id: one for one in found}
    for neighbour, of, offset in around:
        hit = hits.get(of)
        if hit is None or not _adds(neighbour.content, hit.content, offset):
            continue
        gets = (AFTER if offset > 0 else BEFORE) * hit.relevance
        known = best.get(neighbour.id)
        if known is None or known.relevance < gets:
            why = f"right {'after' if offset > 0 else 'before'} {of}"
            best[neighbour.id] = replace(known or neighbour, relevance=gets, why=why)
    return list(best.values())


def _adds(text: str, hit: str, offset: int) -> bool:
    """Whether a neighbour says something by itself, or answers a hit that asks."""
    if not says_nothing(text):
        return True
    answers = not _ANSWERS.isdisjoint(map(plain, tokens(text)))
    return answers and offset > 0 and hit.rstrip("\"')]}*_~ ").endswith(("?", "？"))


_OWN: Final = [source for source in reversed(ContextSource) if source is not ContextSource.SHARED]
_ORDER: Final = {source: place for place, source in enumerate([*_OWN, ContextSource.SHARED])}


def scored(candidates: Iterable[Candidate], options: ContextOptions) -> list[Scored]:
    """With their scores, best first; of equal ones messages before events, ..., then by id.

    One's own stands before what others share.
    """
    found = [
        Scored(candidate=one, score=options.share(one.source).weight * one.relevance)
        for one in candidates
    ]
    return sorted(
        found, key=lambda one: (-one.score, _ORDER[one.candidate.source], one.candidate.id)
    )
