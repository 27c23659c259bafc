"""How sure one is of what was heard more than once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

__all__ = ["agreeing"]


def agreeing(confidences: Sequence[float]) -> float:
    """Of memories that say the same: 1 - Π(1 - c), each one more evidence.

    How MYCIN combines certainty factors of one hypothesis (Shortliffe and Buchanan 1975).
    """
    return 1.0 - prod(1.0 - confidence for confidence in confidences)
