"""How strong a memory is, by its importance, its age and its use. Pure functions over arrays.

    strength = importance · (floor + (1 - floor) · 2^(-t / h))
    h = half_life · (1 + recalls)^use

t is the time since the memory was last met: since it happened, or since it was last recalled, if
that is later and `use` counts. With h fixed this is the forgetting curve (Ebbinghaus, "Über das
Gedächtnis", 1885), in the exponential form that Generative Agents (Park et al., UIST 2023) ranks
by, there with importance beside it. That each recall lengthens the half-life and starts the clock
anew is half-life regression (Settles and Meeder, ACL 2016): p = 2^(-Δ/h), h = 2^(θ·x), here with
the one feature x = log2(1 + recalls) and its weight θ = `use`. Base-level activation of ACT-R
(Anderson and Schooler, Psychological Science 1991) falls and grows the same ways, by a power law
of every single recall's time; that needs more than a count and a last time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_memory.record.arguments import duration, real, several
from lance_memory.record.filters import Filter, any_of, is_one_of
from lance_memory.record.memory import Kind

__all__ = ["Decay", "Uses", "evergreen", "seconds_since", "strengths"]

Floats: TypeAlias = NDArray[np.float64]

_MOST_USE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """How memories fade; the formula is in the docstring of `record.decay`.

    Attributes:
        half_life: the time in which a memory that was never recalled loses half of what is above
            the floor.
        floor: what age leaves at least, as a share of the importance, 0..1. In a ranking a floor
            keeps what is old and right findable.
        use: how much recalls count, 0..4: with 1 a memory that was recalled three times fades four
            times as slowly, with 0.5 twice as slowly, with 0 the recalls do not count.
        evergreen_kinds: memories of these kinds do not age; their strength is their importance.
        evergreen_tags: nor do memories with one of these tags.
    """

    half_life: timedelta
    floor: float = 0.0
    use: float = 0.5
    evergreen_kinds: tuple[Kind | str, ...] = (Kind.PROFILE, Kind.PROCEDURAL)
    evergreen_tags: tuple[str, ...] = ("evergreen",)

    def __post_init__(self) -> None:
        duration("half_life", self.half_life)
        real("floor", self.floor, least=0, most=1)
        real("use", self.use, least=0, most=_MOST_USE)
        several("evergreen_kinds", self.evergreen_kinds, Kind)
        several("evergreen_tags", self.evergreen_tags)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; the half-life in seconds."""
        return {
            **asdict(self),
            "half_life": self.half_life.total_seconds(),
            "evergreen_kinds": [str(kind) for kind in self.evergreen_kinds],
            "evergreen_tags": list(self.evergreen_tags),
        }


@dataclass(frozen=True, slots=True)
class Uses:
    """How often memories were recalled, and when last; memories that it does not know: never.

    Attributes:
        places: id → place in the arrays.
        recalls: float64 [n + 1]; the last is 0, for the unknown.
        last: datetime64[us] [n + 1], UTC.
    """

    places: Mapping[str, int] = field(default_factory=dict)
    recalls: Floats = field(default_factory=lambda: np.zeros(1))
    last: NDArray[np.datetime64] = field(default_factory=lambda: np.zeros(1, "datetime64[us]"))

    def __bool__(self) -> bool:
        return bool(self.places)

    def of(self, ids: Iterable[str]) -> tuple[Floats, NDArray[np.datetime64]]:
        """Recalls and time of the last one, of each id; both [n]."""
        found = np.fromiter((self.places.get(one, -1) for one in ids), dtype=np.intp)
        return self.recalls[found], self.last[found]


def strengths(
    importance: Floats,
    age: Floats,
    decay: Decay,
    *,
    recalls: Floats,
    idle: Floats,
    evergreen: NDArray[np.bool_],
) -> Floats:
    """The strength of each memory, 0..1; all arrays [n].

    Args:
        importance: 0..1.
        age: seconds since it happened; what has not happened yet is as fresh as can be.
        decay: see `Decay`.
        recalls: how often it was recalled.
        idle: seconds since it was last recalled; not looked at where `recalls` is 0.
        evergreen: whether it does not age.
    """
    used = (recalls > 0) & (decay.use > 0)
    since = np.maximum(np.where(used, np.minimum(age, idle), age), 0.0)
    half_life = decay.half_life.total_seconds() * (1.0 + recalls) ** decay.use
    left = decay.floor + (1.0 - decay.floor) * 0.5 ** (since / half_life)
    strength: Floats = importance * np.where(evergreen, 1.0, left)
    return strength


def seconds_since(times: NDArray[np.datetime64], moment: datetime) -> Floats:
    """Seconds from each of the times (datetime64[us], UTC) to `moment`; negative for later ones."""
    now = np.datetime64(moment.replace(tzinfo=None), "us")
    seconds: Floats = (now - times).astype(np.float64) / 1e6
    return seconds


def evergreen(decay: Decay) -> str:
    """The predicate of the memories that do not age."""
    kinds = [is_one_of("kind", map(str, decay.evergreen_kinds))]
    tags = [Filter(tags=(tag,), states="any").predicate(None) for tag in decay.evergreen_tags]
    return any_of(*kinds, *(tag for tag in tags if tag))
