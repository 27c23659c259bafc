"""Tags and branches, as the files that they are on a local disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

__all__ = ["Named", "named", "torn_refs"]

_MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A tag, and where it is; or a branch, and where it began.

    Attributes:
        path: its file.
        name: its own.
        is_tag: and no branch.
        branch: that it is on, or began at.
        version: of that branch.
        size: of the manifest of that version, as the engine reads it; None: it looks for itself.
        told: all that the file says.
    """

    path: Path
    name: str
    is_tag: bool
    branch: str
    version: int
    size: int | None
    told: Mapping[str, Any]


def named(root: str | os.PathLike[str]) -> list[Named]:
    """The tags and branches of the table at `root`, but for those that say nothing."""
    return [found for _, found in _all(root) if found is not None]


def torn_refs(root: str | os.PathLike[str]) -> list[str]:
    """The files of those that say nothing: one of them hides all the others."""
    return [os.fspath(path) for path, found in _all(root) if found is None]


def _all(root: str | os.PathLike[str]) -> Iterator[tuple[Path, Named | None]]:
    for path in sorted(Path(os.path.realpath(root), "_refs").glob("*/*.json")):
        try:
            yield path, _read(path)
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError):
            yield path, None


def _read(path: Path) -> Named:
    told = json.loads(path.read_bytes())
    is_tag = path.parent.name == "tags"
    return Named(
        path=path,
        name=unquote(path.stem),
        is_tag=is_tag,
        branch=told["branch" if is_tag else "parentBranch"] or _MAIN,
        version=int(told["version" if is_tag else "parentVersion"]),
        size=told.get("manifestSize"),
        told=told,
    )
