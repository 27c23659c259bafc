"""A handle at one version: what several reads together are to be of."""

from __future__ import annotations

import copy
from typing import TypeVar

from lance_memory.view import MemoryView

__all__ = ["pinned"]

_V = TypeVar("_V", bound=MemoryView)


def pinned(view: _V) -> _V:
    """The same handle, at the version that it sees now; what has expired is still of the present.

    Of a store it is to be read from only: a write through it makes its version all the same, which
    it does not see.
    """
    still = copy.copy(view)
    still._pinned = view._snapshot()
    return still
