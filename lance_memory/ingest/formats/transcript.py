"""Conversations from plain text: "Name: what was said", a line for each message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.formats.lines import Line, blamed
from lance_memory.ingest.formats.structured import LONGEST
from lance_memory.ingest.formats.tidy import known_role
from lance_memory.ingest.message import Conversation, Message, Role

__all__ = ["spaced", "transcript"]

_CLOCK = r"\d\d?:\d\d(?::\d\d(?:\.\d{1,6})?)?[ ]?(?:Z|[+-]\d\d:?\d\d)?"
_WHEN = rf"\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK})?"
_LINE: Final = re.compile(
    rf"\s*(?:\[(?P<at>{_WHEN}|{_CLOCK})\]\s*|(?P<bare>{_WHEN})\s+(?:[-–—]\s+)?)?"
    r"(?P<name>[^\W\d_][\w.'’()-]*(?: [\w.'’()-]+){0,3})\s?[:：](?:\s+(?P<said>.*)|\s*)"
)
"""A stamp, if there is one, a name of up to four words, and what that one says."""

_LONGEST_NAME: Final = 60
_RULE: Final = re.compile(r"\s*(?:-{3,}|={3,}|\*{3,}|_{3,}|—{2,})\s*")
_HEADING: Final = re.compile(rf"[\s#*=_—-]*\[?(?P<at>{_WHEN})\]?[\s:#*=_—-]*")
"""A line that is a date and no more, between whatever rules or marks."""


@dataclass(slots=True)
class _Said:
    name: str
    at: datetime | None
    lines: list[str] = field(default_factory=list)

    def message(self) -> Message:
        role = known_role(self.name)
        return Message(
            content="\n".join(self.lines),
            role=role or Role.USER,
            actor="" if role else self.name,
            at=self.at,
        )


def spaced(lines: Sequence[Line]) -> bool:
    """Whether a blank line stands between any two messages, so that it ends no session."""
    found = [bool(_spoken(line)) for _, line in lines if not _apart(line)]
    return not any(one and other for one, other in pairwise(found))


def transcript(lines: Iterable[Line], *, name: str, spaced: bool = False) -> Iterator[Conversation]:
    """A conversation of each session.

    A session ends at a rule (`---`), at a line that is a date, and at a blank line; where blank
    lines stand between messages (`spaced`), at two of them. A line without a name goes on with the
    message before it. A date at the head of a session is the time of the messages without a stamp
    of their own; times without a zone are UTC.

    Raises:
        InvalidInputError: a first line without a name; a date that does not exist.
    """
    said: list[_Said] = []
    day: datetime | None = None
    blank = 0
    for number, line in lines:
        if not line.strip():
            blank += 1
            continue
        with blamed(name, number):
            heading = _HEADING.fullmatch(line)
            spoken = None if heading else _spoken(line)
            begun = _begun(spoken, day) if spoken else None
            ends = bool(heading or _RULE.fullmatch(line) or (begun and blank > spaced))
            if said and (ends or (begun and len(said) >= LONGEST)):
                yield _ended(said)
                said = []
            if heading:
                day = _moment(heading["at"], None)
            elif begun:
                said.append(begun)
            elif said:
                said[-1].lines += [""] * min(blank, 1) + [line.strip()]
            elif not ends:
                raise InvalidInputError(
                    'it begins with no name; a message is "Name: text" on a line, such as '
                    '"user: I live in Faro"; plain prose is kept as it is by `lmem add`'
                )
        blank = 0
    if said:
        yield _ended(said)


def _ended(said: Iterable[_Said]) -> Conversation:
    return Conversation(messages=tuple(one.message() for one in said))


def _apart(line: str) -> bool:
    return bool(_RULE.fullmatch(line) or _HEADING.fullmatch(line))


def _spoken(line: str) -> re.Match[str] | None:
    found = _LINE.fullmatch(line)
    return found if found and len(found["name"]) <= _LONGEST_NAME else None


def _begun(spoken: re.Match[str], day: datetime | None) -> _Said:
    stamp = spoken["at"] or spoken["bare"]
    at = _moment(stamp, day) if stamp else day
    return _Said(name=spoken["name"], at=at, lines=[spoken["said"] or ""])


def _moment(stamp: str, day: datetime | None) -> datetime | None:
    """A stamp as a moment; of a time of day: on that day, and without one not known."""
    alone = "-" not in stamp[:5]
    if alone and day is None:
        return None
    whole = f"{day.date().isoformat()} {_padded(stamp)}" if alone and day else stamp
    try:
        if len(whole) == len("2024-05-01"):
            return datetime.combine(date.fromisoformat(whole), datetime.min.time(), UTC)
        read = datetime.fromisoformat(f"{whole[:10]} {_padded(whole[11:])}")
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInputError("there is no such date or time as it begins with") from None


def _padded(clock: str) -> str:
    plain = clock.replace(" ", "")
    return plain if plain[1:2] != ":" else f"0{plain}"
