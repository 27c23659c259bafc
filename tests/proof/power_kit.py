"""A disk that forgets: what a power cut leaves of a directory, from the syncs that were asked for.

A file's content survives as it was at its last sync, a name if its directory was synced while it
was there. All else may be lost, or torn, or kept: whoever makes an `image` chooses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lance_memory.files import to_disk


@dataclass(frozen=True)
class Moment:
    """What is on the disk, what is in memory, and how many operations were acknowledged."""

    synced: dict[Path, bytes]
    names: dict[Path, frozenset[str]]
    present: dict[Path, bytes | None]
    acknowledged: int


@dataclass
class Recorder:
    """Syncs for a table, and remembers the moment before each of them, and after each operation."""

    root: Path
    moments: list[Moment] = field(default_factory=list)
    acknowledged: int = 0
    _synced: dict[Path, bytes] = field(default_factory=dict)
    _names: dict[Path, frozenset[str]] = field(default_factory=dict)

    def __call__(self, path):
        to_disk(path)
        self.remember()
        if path.is_dir():
            self._names = {**self._names, path: frozenset(p.name for p in path.iterdir())}
        else:
            self._synced = {**self._synced, path: path.read_bytes()}

    def acknowledge(self):
        self.acknowledged += 1
        self.remember()

    def remember(self):
        present = {p: None if p.is_dir() else p.read_bytes() for p in self.root.rglob("*")}
        self.moments.append(Moment(self._synced, self._names, present, self.acknowledged))


def keep_nothing(path, content):
    """The worst that a disk may do with names and contents that nobody has synced."""


def keep_all(path, content):
    """What a disk does that loses nothing."""
    return content


def empty_all(path, content):
    """Names are kept, contents are not."""
    return b""


def any_of(random):
    """Whatever each unsynced file chances to become."""

    def choose(path, content):
        fates = (content, None, b"", content[: len(content) // 2], bytes(len(content)))
        return random.choice(fates)

    return choose


def image(moment, root, target, choose):
    """What is at `target` after the power failed at a moment, as `choose` says of what is unsynced.

    `choose` gets a path and a content, and says what becomes of it: None if it is lost.
    """
    known = {*moment.present, *moment.synced}
    for folder, names in moment.names.items():
        known |= {folder / name for name in names if root in (folder, *folder.parents)}
    for path in sorted(p for p in known if root in p.parents):
        place = target / path.relative_to(root)
        entered = path.name in moment.names.get(path.parent, ())
        content = moment.present.get(path, b"")
        is_folder = path in moment.names or (path in moment.present and content is None)
        if not place.parent.is_dir():
            continue  # it was in a directory whose name was lost
        if is_folder:
            if entered or choose(path, b"/") is not None:
                place.mkdir()
            continue
        left = moment.synced.get(path)
        if not entered:
            left = choose(path, moment.present[path] if left is None else left)
        elif left is None:
            left = choose(path, content) or b""
        if left is not None:
            place.write_bytes(left)
