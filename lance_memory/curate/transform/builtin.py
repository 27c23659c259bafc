"""Transforms that need no model."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lance_memory.curate.transform.protocol import Derived, Transform
from lance_memory.facts import joined, said, sentences
from lance_memory.record.memory import Memory
from lance_memory.record.unit import unit

__all__ = ["TRANSFORMS", "extractive", "latest", "merge_lines"]

_BULLET = re.compile(r"^[-*+•–]\s+")
_NUMBERED = re.compile(r"^(\d{1,3})[.)]\s+")
_ENDS = " \t.!,;:…。！，；："  # no question mark: a question is not its answer


def extractive(cluster: Sequence[Memory]) -> Derived:
    """The default: keeps what was said, and invents nothing.

    First the newest statement, because it holds the latest word; then the most central one; then,
    oldest first, each sentence of the others that says something which no kept sentence says: a
    word beside the common ones, a number, a name, or the opposite.
    """
    newest = _newest(cluster)
    others = [memory for memory in (_most_central(cluster), *cluster) if memory is not newest]
    kept = sentences(newest.content)
    known = [said(sentence) for sentence in kept]
    for memory in others:
        for sentence in sentences(memory.content):
            words, negated = said(sentence)
            if not any(words <= other and negated is no for other, no in known):
                kept.append(sentence)
                known.append((words, negated))
    return Derived(content=joined(kept))


def latest(cluster: Sequence[Memory]) -> Derived:
    """The newest statement alone. What only the others say is lost; the guard may refuse that."""
    return Derived(content=_newest(cluster).content)


def merge_lines(cluster: Sequence[Memory]) -> Derived:
    """Every distinct line of the sources, as it was first written, oldest first.

    Lines that differ in case, spacing, bullet or trailing punctuation count as one. What stands
    under a heading, under a line that ends in a colon, or indented belongs to the line above: it
    is the same only where that line is, too, and such lines come last, so that nothing else comes
    to stand under them. Numbers are part of the line, except in a memory whose lines count
    1, 2, 3; none is ever changed.
    """
    found: dict[str, list[str]] = {}
    for memory in cluster:
        blocks = list(_blocks(memory.content))
        counted = _counts_up(blocks)
        for block in blocks:
            found.setdefault(_plain(block, counted=counted), block)
    ordered = sorted(found.values(), key=lambda block: _reach(block[0]))
    return Derived(content="\n".join(line for block in ordered for line in block))


TRANSFORMS: Mapping[str, Transform] = MappingProxyType(
    {"extractive": extractive, "latest": latest, "merge-lines": merge_lines}
)
"""The transforms that need no model, by the name that the command line has for them."""


def _newest(cluster: Sequence[Memory]) -> Memory:
    return max(cluster, key=lambda memory: (memory.happened_at, memory.id))


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of a text, none blank; with each the lines that belong to it."""
    block: list[str] = []
    for line in textwrap.dedent(text).splitlines():
        if not line.strip():
            continue
        if block and not _belongs(line, block[0]):
            yield block
            block = []
        block.append(line.rstrip() if block else line.strip())
    if block:
        yield block


def _belongs(line: str, head: str) -> bool:
    reach = _reach(head)
    if line[0].isspace() or reach == 0:
        return line[0].isspace()
    if reach == 2:
        return not line.startswith("#")
    return bool(_BULLET.match(line) or _NUMBERED.match(line))


def _reach(head: str) -> int:
    """What a line has below it: 2 all up to the next heading, 1 the items of a list, 0 nothing."""
    if head.startswith("#"):
        return 2
    return 1 if head.endswith((":", "：")) else 0


def _counts_up(blocks: Sequence[Sequence[str]]) -> bool:
    """Whether the numbers that lines begin with are 1, 2, 3: places in a list, no facts."""
    numbers = [int(found[1]) for block in blocks if (found := _NUMBERED.match(block[0]))]
    return len(numbers) > 1 and numbers == list(range(1, len(numbers) + 1))


def _plain(block: Sequence[str], *, counted: bool) -> str:
    """What makes two blocks the same one."""
    first, *rest = block
    first = _NUMBERED.sub("", first, count=1) if counted else first
    lines = (" ".join(_BULLET.sub("", line.strip(), count=1).split()) for line in (first, *rest))
    return unicodedata.normalize("NFC", "\n".join(line.rstrip(_ENDS) for line in lines)).casefold()


def _most_central(cluster: Sequence[Memory]) -> Memory:
    """The member with the highest mean cosine to all; the newest where vectors are missing."""
    known = [memory for memory in cluster if memory.embedding is not None]
    if not known:
        return cluster[-1]
    rows = np.stack([np.asarray(m.embedding, dtype=np.float32) for m in known])
    vectors = unit(rows, without=0.0)
    return known[int(np.argmax(vectors @ vectors.sum(axis=0)))]
