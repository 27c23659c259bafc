"""Rewritten versions: what a tagged version became when memories of it were forgotten.

The version itself is cleaned away, and stands again on a branch of the store's own that is named
after it. Tags point there, and whoever asks for the number gets what is there.
"""

from __future__ import annotations

import re

__all__ = ["branch_of", "place_of"]

_PREFIX = "lmem-rewritten-"
_NAME = re.compile(rf"{_PREFIX}(?:(?P<branch>.+)-)?v(?P<version>[0-9]+)")
_MAIN = "main"


def branch_of(branch: str, version: int) -> str:
    """The branch that a version of `branch` is rewritten on."""
    line = "" if branch == _MAIN else f"{branch}-"
    return f"{_PREFIX}{line}v{version}"


def place_of(branch: str | None, version: int) -> tuple[str, int]:
    """The branch and version that a place stands for: another, where it is a rewritten one."""
    found = _NAME.fullmatch(branch or "")
    if found is None:
        return branch or _MAIN, version
    return found["branch"] or _MAIN, int(found["version"])
