"""The lines of versions, beside each other: what `log --graph` knows and draws.

A branch is a lane that leaves the lane of its parent at a version. Newer versions stand above older
ones, and each above the one that it came from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_memory import LogEntry

__all__ = ["Line", "Node", "Place", "labelled", "laid_out", "ordered"]

MAIN = "main"

Place = tuple[str, int]
"""A branch, and the number of a version on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A branch: its versions, newest first, its tags, and where it left its parent.

    `ends_here` says whether the first of them is the newest that there is.
    """

    name: str
    entries: Sequence[LogEntry]
    tags: Mapping[str, int]
    origin: Place | None = None
    ends_here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A version: which one it came from, which branches end here, its tags and their labels."""

    place: Place
    entry: LogEntry
    parent: Place | None
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The number; on another branch than main with the branch before it."""
        branch, version = self.place
        return str(version) if branch == MAIN else f"{branch}/{version}"

    @property
    def mark(self) -> str:
        """`*`, `o` for what changed no memory, `x` for what cannot be read any more."""
        if not self.entry.readable:
            return "x"
        return "o" if self.entry.upkeep else "*"


def ordered(lines: Sequence[Line]) -> list[Node]:
    """All versions, the newest first, each above the one that it came from."""
    nodes = {node.place: node for node in _nodes(lines)}
    above = dict.fromkeys(nodes, 0)
    for node in nodes.values():
        if node.parent in above:
            above[node.parent] += 1
    places = {line.name: number for number, line in enumerate(lines)}
    ready: list[tuple[float, int, Place]] = []

    def free(place: Place) -> None:
        heappush(ready, (-nodes[place].entry.at.timestamp(), -places[place[0]], place))

    for place in [place for place, number in above.items() if not number]:
        free(place)
    found = []
    while ready:
        node = nodes[heappop(ready)[2]]
        found.append(node)
        if node.parent in above:
            above[node.parent] -= 1
            if not above[node.parent]:
                free(node.parent)
    return found


def laid_out(nodes: Iterable[Node]) -> Iterator[tuple[str, Node | None]]:
    """The lanes left of each node, and lines between nodes where lanes meet.

    Main has the first lane. A lane is there from the newest version of its branch down to the
    version where it left another.
    """
    lanes: list[Place | None] = [None]  # which version each of them goes down to
    ended = 0  # a lane of which the row above is the end: what stood right below would seem its own
    for node in nodes:
        waiting = [lane for lane, place in enumerate(lanes) if place == node.place]
        lane = _free(lanes, ended) if node.place[0] != MAIN else 0
        if not waiting or (lane == 0 and waiting[0]):
            waiting.insert(0, lane)
        first, *others = waiting
        for lane in reversed(others):
            yield _meeting(lanes, first, lane), None
            lanes[lane], lanes[first] = None, node.place
        while len(lanes) > 1 and lanes[-1] is None:
            lanes.pop()
        lanes += [None] * (first + 1 - len(lanes))
        yield _row(lanes, first, node.mark), node
        lanes[first], ended = node.parent, 0 if node.parent else first


def labelled(tags: Mapping[str, int], entries: Sequence[LogEntry]) -> dict[int, list[str]]:
    """What to write beside each listed version: its tags, and those of unlisted ones after it.

    What is not listed changed no memory, so these tags mean the same memories; they have the number
    of their own version: "talks @5".
    """
    listed = sorted(entry.version for entry in entries)
    found: dict[int, list[str]] = {}
    for tag, at in tags.items():
        place = bisect_right(listed, at)
        if place:
            version = listed[place - 1]
            found.setdefault(version, []).append(tag if version == at else f"{tag} @{at}")
    return found


def _nodes(lines: Sequence[Line]) -> Iterator[Node]:
    known = {line.name: line for line in lines}
    ends: dict[Place, list[str]] = {}
    for line in lines:
        tip = _tip(line, known)
        if tip is not None and line.ends_here:
            ends.setdefault(tip, []).append(line.name)
    for line in lines:
        labels = labelled(line.tags, line.entries)
        below = [(line.name, entry.version) for entry in line.entries[1:]]
        parents = [*below, _before(line, known)]
        for entry, parent in zip(line.entries, parents, strict=False):
            place = (line.name, entry.version)
            yield Node(
                place=place,
                entry=entry,
                parent=parent,
                branches=tuple(ends.get(place, ())),
                tags=tuple(tag for tag, at in line.tags.items() if at == entry.version),
                labels=tuple(labels.get(entry.version, ())),
            )


def _tip(line: Line, known: Mapping[str, Line]) -> Place | None:
    """The newest version of a line; of one that has none of its own, where it left its parent."""
    return (line.name, line.entries[0].version) if line.entries else _before(line, known)


def _before(line: Line, known: Mapping[str, Line]) -> Place | None:
    """The version that a line began at, or the last one listed before it."""
    while line.origin is not None:
        branch, at = line.origin
        parent = known.get(branch)
        if parent is None:
            return None
        for entry in parent.entries:
            if entry.version <= at:
                return branch, entry.version
        line = parent
    return None


def _free(lanes: Sequence[Place | None], ended: int) -> int:
    """The number of a lane that nothing goes down, maybe of a new one; the first is main's."""
    return next(n for n in count(1) if n != ended and (n >= len(lanes) or lanes[n] is None))


def _row(lanes: Sequence[Place | None], at: int, mark: str) -> str:
    cells = [" " if place is None else "|" for place in lanes]
    cells[at] = mark
    return " ".join(cells).rstrip()


def _meeting(lanes: Sequence[Place | None], first: int, lane: int) -> str:
    """The row in which `lane` goes over to `first`, across what is between them."""
    row = list(" ".join(" " if place is None else "|" for place in lanes))
    row[2 * lane] = " "
    row[2 * lane - 1] = "/"
    for place in range(2 * first + 1, 2 * lane - 1):
        row[place] = "|" if row[place] == "|" else "_"
    return "".join(row).rstrip()
