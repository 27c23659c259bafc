"""Does a pass make recall worse? Asked before it is committed, and answered by searching.

No system that we know of asks this. Probes are questions that recall has answered before, or words
of the sources; each is asked of the store as it is, and of the store as it would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

from lance_memory.curate.plan import ClusterPlan, Recalled
from lance_memory.facts import content_words, sentences, tokens
from lance_memory.record.arguments import real, whole
from lance_memory.record.memory import Scope

__all__ = ["Answered", "Guard", "ProbeHit", "Search", "guarded"]

_WORDS = 4
"""Of a sentence, in a probe."""

_NEAR = 0.5
"""Of the source's cosine to a probe: a successor without a word of it is at least so near."""

_WIDE_LEVELS = ("tenant", "user", "agent")
"""A probe searches this much of its cluster's scope: a session of ten finds all of it anyway."""

Answered: TypeAlias = Callable[[Sequence[str]], Iterable[tuple[str, Sequence[str]]]]
"""Of memories, by id: recorded questions and the ids of those that answered each, newest first."""


class ProbeHit(NamedTuple):
    """A hit of a probe: the memory, its cosine to the question, and whether it has words of it."""

    id: str
    cosine: float
    worded: bool


Search: TypeAlias = Callable[[Scope, Sequence[str], int], list[list[ProbeHit]]]
"""The top k hits of each question, within a scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """How much recall a pass may cost.

    Attributes:
        max_loss: share 0..1 of what a cluster's probes find that they may no longer find; a
            cluster that loses more is left alone.
        k: how far down a probe looks.
        probes: questions of one pass at most; each cluster gets one before any gets another.
            Each takes two searches. Clusters beyond that are not measured, and the plan says
            so (`ClusterPlan.recalled` is None).
    """

    max_loss: float = 0.02
    k: int = 10
    probes: int = 400

    def __post_init__(self) -> None:
        real("max_loss", self.max_loss, least=0, most=1)
        whole("k", self.k, least=1)
        whole("probes", self.probes, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probe:
    """A question, the cluster it is about, and the source that it is to find."""

    cluster: int
    question: str
    target: str


def guarded(
    clusters: Sequence[ClusterPlan],
    guard: Guard,
    *,
    refuse_stopped: Callable[[], None],
    answered: Answered,
    before: Search,
    after: Callable[[Sequence[ClusterPlan]], AbstractContextManager[Search]],
) -> list[ClusterPlan]:
    """The clusters with what their probes found; those that lose too much are left alone.

    Leaving some alone changes what the others compete with, so they are measured again, until
    no cluster loses too much.

    Args:
        clusters: the pass as it was planned.
        guard: how much is too much.
        refuse_stopped: asked between searches; raises where the pass is to end.
        answered: recorded questions.
        before: searches the store as it is.
        after: searches the store as these clusters would leave it.
    """
    probes = _probes(clusters, guard, answered)
    ask = partial(_best, probes, k=guard.k, refuse_stopped=refuse_stopped)
    found = ask(clusters, before)
    measured = list(clusters)
    while True:
        accepted = [cluster for cluster in measured if cluster.derived is not None]
        if not accepted:
            return measured
        with after(accepted) as planned:
            still = ask(measured, planned)
        measured = _measured(measured, probes, found, still)
        offending = [
            number
            for number, cluster in enumerate(measured)
            if cluster.derived is not None
            and cluster.recalled is not None
            and cluster.recalled.loss > guard.max_loss
        ]
        if not offending:
            return measured
        for number in offending:
            measured[number] = _held_back(measured[number], guard)


def _held_back(cluster: ClusterPlan, guard: Guard) -> ClusterPlan:
    seen = cluster.recalled or Recalled(probes=0, before=0, after=0)
    return cluster.left_alone(
        f"recall would get worse: {seen.before} of {seen.probes} probes find a source in the top "
        f"{guard.k}, and {seen.after} would find it or its successor"
    )


def _probes(clusters: Sequence[ClusterPlan], guard: Guard, answered: Answered) -> list[_Probe]:
    """As many as the guard allows: one for each cluster first, then a second, and so on."""
    accepted = [number for number, cluster in enumerate(clusters) if cluster.derived is not None]
    sources = {source: number for number in accepted for source in clusters[number].sources}
    recorded: dict[int, dict[str, _Probe]] = {number: {} for number in accepted}
    for question, ids in answered(list(sources)):
        best = {sources[i]: i for i in reversed(ids) if i in sources}
        for cluster, target in best.items():
            probe = _Probe(cluster=cluster, question=question, target=target)
            recorded[cluster].setdefault(question, probe)
    lists = [[*recorded[n].values(), *_own_words(n, clusters[n])] for n in accepted]
    turns = (probe for turn in zip_longest(*lists) for probe in turn if probe is not None)
    return list(turns)[: guard.probes]


def _own_words(number: int, cluster: ClusterPlan) -> Iterator[_Probe]:
    """What somebody who half remembers a source would ask by; the same is asked once."""
    asked = set()
    for source, content in zip(cluster.sources, cluster.contents, strict=True):
        words = _remembered(content)
        if words and words not in asked:
            asked.add(words)
            yield _Probe(cluster=number, question=words, target=source)


def _remembered(content: str) -> str:
    """The longest words of the sentence that says most, in order; long words are rare ones.

    The whole sentence finds its source by every word, which no question does: on the tuning half of
    LoCoMo a guard that asked so kept less recall for each row that was saved. Where words are not
    parted by spaces, and where there are few, it is the sentence.
    """
    said = max(sentences(content), key=lambda s: len(content_words(s)), default="")
    telling = [token for token in tokens(said) if content_words(token)]
    if not telling:
        return ""
    if len(telling) <= _WORDS or min(map(len, telling)) == max(map(len, telling)) == 1:
        return said
    longest = sorted(range(len(telling)), key=lambda place: -len(telling[place]))[:_WORDS]
    return " ".join(telling[place] for place in sorted(longest))


def _best(
    probes: Sequence[_Probe],
    clusters: Sequence[ClusterPlan],
    search: Search,
    *,
    k: int,
    refuse_stopped: Callable[[], None],
) -> list[ProbeHit | None]:
    """Of each probe the hit that is its source, or what takes the source's place; None: neither."""
    by_scope: dict[Scope, list[int]] = {}
    for place, probe in enumerate(probes):
        by_scope.setdefault(_scope(clusters[probe.cluster]), []).append(place)
    best: list[ProbeHit | None] = [None] * len(probes)
    for scope, places in by_scope.items():
        refuse_stopped()
        answers = search(scope, [probes[place].question for place in places], k)
        for place, hits in zip(places, answers, strict=True):
            probe = probes[place]
            wanted = {probe.target, clusters[probe.cluster].successor}
            best[place] = next((hit for hit in hits if hit.id in wanted), None)
    return best


def _is_found(hit: ProbeHit | None, before: ProbeHit | None) -> bool:
    """Whether the probe leads to it.

    In a scope of a few memories anything is among the first 10. So a hit that has no word of the
    probe counts if it is about as near as the source was.
    """
    if hit is None:
        return False
    return hit.worded or before is None or hit.cosine >= _NEAR * before.cosine


def _scope(cluster: ClusterPlan) -> Scope:
    """What a probe searches: the tenant's, user's and agent's memories around the cluster."""
    return Scope(**{level: getattr(cluster.scope, level) for level in _WIDE_LEVELS})


def _measured(
    clusters: Sequence[ClusterPlan],
    probes: Sequence[_Probe],
    before: Sequence[ProbeHit | None],
    after: Sequence[ProbeHit | None],
) -> list[ClusterPlan]:
    found: dict[int, Recalled] = {}
    for probe, was, is_now in zip(probes, before, after, strict=True):
        one = Recalled(probes=1, before=int(was is not None), after=int(_is_found(is_now, was)))
        found[probe.cluster] = found[probe.cluster] + one if probe.cluster in found else one
    return [
        replace(cluster, recalled=found[number])
        if number in found and cluster.derived is not None
        else cluster
        for number, cluster in enumerate(clusters)
    ]
