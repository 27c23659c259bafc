"""What one call of a transform came to, cluster by cluster."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace

from lance_memory.curate.transform.protocol import BatchTransform, Derived, Transform
from lance_memory.errors import InvalidInputError, LanceMemoryError, MissingExtraError
from lance_memory.record.memory import Memory
from lance_memory.wording import counted

__all__ = ["Outcome", "raised", "verdicts"]

_SHOWN = 200
_UNSEEN = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
"""Unicode's categories of separators, control and format characters."""
_LASTING = (InvalidInputError, MissingExtraError, BrokenExecutor)
"""Nothing that passes by itself: asking again gives the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one cluster.

    Attributes:
        derived: the memory to take its place; None: the cluster is left alone.
        reason: why it is left alone.
        failed: the transform failed on it, or gave something that is no memory.
        may_pass: it raised, timed out or did not answer: asked again, it may give another outcome.
    """

    derived: Derived | None = None
    reason: str = ""
    failed: bool = False
    may_pass: bool = False


def verdicts(transform: Transform, clusters: Sequence[Sequence[Memory]]) -> list[Outcome]:
    """One outcome for each cluster, in order, from one call of the transform.

    The transform gets copies, so it cannot change what is written. Exceptions become outcomes
    here, in the process where they are raised: not every one of them can be sent to another.
    """
    handed = [tuple(_copied(memory) for memory in cluster) for cluster in clusters]
    try:
        if not isinstance(transform, BatchTransform):
            return [_judged(transform(cluster)) for cluster in handed]
        answers = transform.many(handed)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is these clusters' failure)
        return [raised(error)] * len(clusters)
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        return [_failed(f"the transform gave {_shown(answers)} for a batch")] * len(clusters)
    if len(answers) != len(clusters):
        given, wanted = counted(len(answers), "answer"), counted(len(clusters), "cluster")
        return [_failed(f"the transform gave {given} for {wanted}")] * len(clusters)
    return [_judged(answer) for answer in answers]


def raised(error: Exception) -> Outcome:
    """The outcome of a call that raised."""
    told = _line(str(error))
    if not isinstance(error, LanceMemoryError):  # whose message is made for the reader
        told = f"it raised {type(error).__name__}{told and ': '}{told}"
    return _failed(told, may_pass=not isinstance(error, _LASTING))


def _judged(answer: object) -> Outcome:
    if answer is None:
        return Outcome(reason="the transform left it alone")
    if isinstance(answer, Exception):
        return raised(answer)
    derived = Derived(content=answer) if isinstance(answer, str) else answer
    if not isinstance(derived, Derived) or not isinstance(derived.content, str):
        return _failed(f"the transform gave {_shown(answer)}; it gives a text, a Derived or None")
    if all(unicodedata.category(character) in _UNSEEN for character in derived.content):
        return _failed("the transform gave an empty text")
    return Outcome(derived=derived)


def _failed(reason: str, *, may_pass: bool = False) -> Outcome:
    return Outcome(reason=reason, failed=True, may_pass=may_pass)


def _copied(memory: Memory) -> Memory:
    vector = None if memory.embedding is None else memory.embedding.copy()
    return replace(memory, metadata=copy.deepcopy(memory.metadata), embedding=vector)


def _shown(answer: object) -> str:
    return _line(repr(answer))


def _line(text: str) -> str:
    """The beginning of a text, on one line, without what a terminal would obey."""
    words = " ".join(text[: 4 * _SHOWN].split())
    line = "".join(character if character.isprintable() else "\ufffd" for character in words)
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
