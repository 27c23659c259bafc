"""What a caller gave, one value at a time: is it of the right form, and within bounds?

Each check gives the value back, or raises InvalidInputError: what was asked, by name and value, and
what it takes. True and False are no numbers, and NaN lies within no bounds.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from numbers import Integral, Real
from typing import Any, TypeVar

from lance_memory.errors import InvalidInputError

__all__ = [
    "duration",
    "flag",
    "instance",
    "mapping",
    "one_of",
    "real",
    "seconds",
    "several",
    "text",
    "whole",
]

_T = TypeVar("_T")

_LARGEST = sys.float_info.max
_SHOWN = 120


def whole(name: str, value: Any, *, least: int | None = None, most: int | None = None) -> int:
    """A whole number."""
    number = isinstance(value, Integral) and not isinstance(value, bool)
    if number and (least is None or least <= value) and (most is None or value <= most):
        return int(value)
    raise _refused(name, value, f"a whole number{_span(least, most)}")


def real(
    name: str, value: Any, *, least: float, most: float | None = None, without: float | None = None
) -> float:
    """A finite number, but for `without`."""
    within = _is_real(value) and least <= value <= (_LARGEST if most is None else most)
    if within and value != without:
        return float(value)
    gap = "" if without is None else f", not {without}"
    raise _refused(name, value, f"a number{_span(least, most)}{gap}")


def seconds(name: str, value: Any) -> float:
    """A time above 0, and no longer than Python can wait: 292 years."""
    if _is_real(value) and 0 < value <= threading.TIMEOUT_MAX:
        return float(value)
    raise _refused(name, value, "seconds above 0")


def duration(name: str, value: Any) -> timedelta:
    """A length of time that is longer than nothing."""
    if isinstance(value, timedelta) and value > timedelta(0):
        return value
    raise _refused(name, value, "a positive timedelta")


def flag(name: str, value: Any) -> bool:
    """True or False."""
    return instance(name, value, bool, "True or False")


def text(name: str, value: Any, *, blank: bool = False) -> str:
    """A text that is not empty, and holds more than white space unless it may be blank."""
    if isinstance(value, str) and (value if blank else value.strip()):
        return value
    raise _refused(name, value, f"a text that is not {'empty' if blank else 'blank'}")


def instance(name: str, value: Any, kind: type[_T], what: str) -> _T:
    """A value of that type, which the message calls `what`."""
    if isinstance(value, kind):
        return value
    raise _refused(name, value, what)


def mapping(name: str, value: Any, what: str, *, known: Iterable[str] = ()) -> dict[str, Any]:
    """A mapping of names, which the message calls `what`; of no others than those known, if any."""
    if not isinstance(value, Mapping):
        raise _refused(name, value, what)
    names = list(known)
    if unknown := sorted(set(map(str, value)) - set(names)) if names else []:
        raise InvalidInputError(f"{name} has {', '.join(unknown)}; there are: {', '.join(names)}")
    return dict(value)


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of these words."""
    words = list(known)
    if isinstance(value, str) and value in words:
        return value
    raise InvalidInputError(f"{name}={value!r:.{_SHOWN}}; there are: {', '.join(words)}")


def several(name: str, value: Any, known: Iterable[str] | None = None) -> tuple[str, ...]:
    """A list of texts; of these words, where they are given."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise _refused(name, value, "a list of texts")
    words = None if known is None else list(known)
    return tuple(
        instance(name, item, str, "texts") if words is None else one_of(name, item, words)
        for item in value
    )


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _span(least: float | None, most: float | None) -> str:
    if least is None:
        return "" if most is None else f" up to {most}"
    return f" from {least} on" if most is None else f" within {least}..{most}"


def _refused(name: str, value: Any, what: str) -> InvalidInputError:
    shown = str(value) if isinstance(value, timedelta) else repr(value)
    return InvalidInputError(f"{name}={shown:.{_SHOWN}}; it takes {what}")
