"""How long memories stay: by kind, by importance, and what stays for good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from lance_memory.record.arguments import duration, flag, mapping, one_of, real, several
from lance_memory.record.memory import CONSOLIDATED, DISTILLED, Kind
from lance_memory.record.values import text_value

__all__ = ["RetentionPolicy", "RetentionRule", "lasting"]

_DAY: Final = timedelta(days=1)


class RetentionRule(StrEnum):
    """Why a memory goes; where several say so, the first of these.

    EXPIRED: its `expires_at` is over, whatever its kind. AGE: it is older than its kind stays.
    LOW_IMPORTANCE: an episode that matters little, and is older than such stay.
    """

    EXPIRED = "expired"
    AGE = "age"
    LOW_IMPORTANCE = "low_importance"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How long active memories stay; the others are hidden already.

    The age of a memory counts from the latest of when it happened, when it was learned, and when
    its state last changed. So a log of last year stays for the whole time after it was imported,
    an appointment stays until it is over, and what was brought back by hand starts anew.

    Attributes:
        ages: kind → how long its memories stay. A kind that is not named is evergreen, but for what
            has expired; "workspace" cannot be named. By default "episodic" alone, for 90 days.
        low_importance: 0..1; episodes of less importance stay for `low_importance_age` only, where
            episodes have an age at all. 0: none do. Unrated memories have 0.5.
        low_importance_age: how long those stay.
        expired: whether memories of every kind go once their `expires_at` is over: somebody set it,
            no read shows them, and they count in a quota until they go.
        evergreen_tags: a memory with one of these stays, whatever the rules say.
        made: the sources of memories that were made of others, and are no raw ones: they stay, but
            for `expired`.
    """

    ages: Mapping[Kind | str, timedelta] = field(
        default_factory=lambda: {Kind.EPISODIC: timedelta(days=90)}
    )
    low_importance: float = 0.2
    low_importance_age: timedelta = timedelta(days=30)
    expired: bool = True
    evergreen_tags: tuple[str, ...] = ("evergreen", "pinned")
    made: tuple[str, ...] = (CONSOLIDATED, DISTILLED)

    def __post_init__(self) -> None:
        for kind, stay in mapping("ages", self.ages, "a mapping of kinds to ages").items():
            one_of("ages", kind, [k for k in Kind if k is not Kind.WORKSPACE])
            duration(f"the age of {kind}", stay)
        real("low_importance", self.low_importance, least=0, most=1)
        duration("low_importance_age", self.low_importance_age)
        flag("expired", self.expired)
        for name in ("evergreen_tags", "made"):
            for value in several(name, getattr(self, name)):
                text_value(name, value)

    def __str__(self) -> str:
        low = self.low_importance if self.age(Kind.EPISODIC) else 0
        rules = [
            *(f"{kind} for {lasting(stay)}" for kind, stay in sorted(self.ages.items())),
            *([f"below importance {low:g} for {lasting(self.low_importance_age)}"] if low else []),
            *(["what expires until then"] if self.expired else []),
        ]
        return ", ".join(rules) or "everything stays"

    def age(self, kind: Kind) -> timedelta | None:
        """How long memories of a kind stay; None: for good."""
        return self.ages.get(kind)

    @classmethod
    def from_json(cls, values: Any) -> RetentionPolicy:
        """From JSON, ages in days; what is left out is the default's.

        Such as {"days": {"episodic": 90, "working": 7}, "low_importance": 0.1}.

        Raises:
            InvalidInputError: something else is there.
        """
        given = mapping("retention policy", values, "a JSON object", known=_NAMES)
        if "days" in given:
            days = mapping("days", given.pop("days"), "an object of kinds and numbers")
            given["ages"] = {kind: _days(f"days.{kind}", number) for kind, number in days.items()}
        if _LOW_DAYS in given:
            given["low_importance_age"] = _days(_LOW_DAYS, given.pop(_LOW_DAYS))
        for name in {"evergreen_tags", "made"} & given.keys():
            given[name] = several(name, given[name])
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """The inverse of `from_json`."""
        return {
            "days": {str(kind): stay / _DAY for kind, stay in sorted(self.ages.items())},
            "low_importance": self.low_importance,
            _LOW_DAYS: self.low_importance_age / _DAY,
            "expired": self.expired,
            "evergreen_tags": list(self.evergreen_tags),
            "made": list(self.made),
        }


def lasting(age: timedelta) -> str:
    """In the largest unit that it has one of: 90 days, 1 day, 0.5 seconds."""
    unit = next((name for name, one in _UNITS.items() if age >= one), "second")
    number = age / _UNITS[unit]
    return f"{number:g} {unit}" if number == 1 else f"{number:g} {unit}s"


_UNITS: Final = {
    "day": _DAY,
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
_LOW_DAYS: Final = "low_importance_days"
_NAMES: Final = ("days", "low_importance", _LOW_DAYS, "expired", "evergreen_tags", "made")


def _days(name: str, number: Any) -> timedelta:
    return timedelta(days=real(name, number, least=0, most=timedelta.max.days, without=0))
