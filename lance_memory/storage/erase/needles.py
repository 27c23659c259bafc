"""What is looked for of memories that are to go: in bytes, in prose, and among values.

An id may be any text, `1` and `tea` too. As a value it is found wherever ids are values. In prose
only an id counts that nobody writes by chance, as a word of its own; in bytes only one that
cannot be there by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import reduce
from typing import Any

import numpy as np

__all__ = ["SHORTEST_TEXT", "Needles", "is_distinctive", "is_uuid", "piece", "told_in"]

_LENGTH = 36
_DASHES = (8, 13, 18, 23)
"""A UUID's text: so many characters, with dashes at these places."""

_AT_ONCE = 2**20
_HEAD = 3

_DISTINCTIVE, _VARIETY = 16, 6
"""Characters, and different ones, from which on an id is in no file by chance."""

_TELLING = 4
SHORTEST_TEXT = 12
"""Shorter texts stand in other texts by chance; they are looked for in rows alone."""

_PIECE = 40
"""So many characters of a text are looked for: whoever quotes it quotes its beginning."""

_TOLD = re.compile(rb"\x0a[\x06\x08](reason|manifest)\x12")
"""In a transaction, the names of the audit's properties; length and value follow."""


def is_distinctive(identifier: str) -> bool:
    """Whether an id is in no file by chance, so that bytes can be searched for it."""
    return len(identifier) >= _DISTINCTIVE and len(set(identifier)) >= _VARIETY


def piece(text: str) -> str:
    """What is looked for of a text: its beginning; "" where that is too short to tell."""
    return text[:_PIECE] if len(text) >= SHORTEST_TEXT else ""


class Needles:
    """Ids and texts to be found.

    Args:
        ids: of memories.
        texts: of them; the beginning of each is looked for, see `piece`.
    """

    def __init__(self, ids: Collection[str], texts: Collection[str] = ()) -> None:
        self.ids = frozenset(ids)
        self.texts = tuple(sorted({part for text in texts if (part := piece(text))}))
        self._uuids = {i.encode() for i in self.ids if is_uuid(i)}
        self._words = tuple(sorted(filter(_is_telling, self.ids)))
        rest = [i.encode() for i in self._words if is_distinctive(i)]
        others = [i for i in rest if i not in self._uuids]
        self._others = _Many([*others, *(text.encode() for text in self.texts)])
        self._prose = _Many([needle.encode() for needle in (*self._words, *self.texts)])

    @property
    def telling(self) -> Needles:
        """The same without the ids that are words or numbers like others."""
        return Needles(self._words, self.texts)

    def among(self, raw: bytes) -> Needles:
        """Those of them that are in `raw`, to be looked for in parts of it."""
        ids = [one for one in self.ids if one.encode() in raw]
        return Needles(ids, [text for text in self.texts if text.encode() in raw])

    def within(self, raw: bytes) -> str | None:
        """One of them that is in `raw`; of the ids, those that cannot be there by chance."""
        for found in _uuids_in(raw) if self._uuids else ():
            if found in self._uuids:
                return found.decode()
        return next((other.decode() for other in self._others.found_in(raw)), None)

    def every(self, raw: bytes) -> set[bytes]:
        """All of them that are in `raw`; of the ids, those that cannot be there by chance."""
        uuids = {found for found in _uuids_in(raw) if found in self._uuids} if self._uuids else ()
        return {*uuids, *self._others.found_in(raw)}

    def quoted(self, prose: str) -> bool:
        """Whether prose names one, as a word of its own, or has the beginning of a text."""
        raw = prose.encode(errors="replace")
        return any(_has(prose, needle.decode()) for needle in self._prose.found_in(raw))

    def named(self, value: Any) -> bool:
        """Whether a JSON value has an id as a value, or a text of it names one."""
        if isinstance(value, str):
            return value in self.ids or self.quoted(value)
        if isinstance(value, dict):
            return any(map(self.key, value)) or any(map(self.named, value.values()))
        return isinstance(value, list | tuple) and any(map(self.named, value))

    def key(self, name: str) -> bool:
        """Whether a key of a JSON object names one; a word like others is none there."""
        return self.quoted(name)

    def recorded(self, raw: bytes) -> bool:
        """Whether a manifest or a transaction tells of one, as bytes or in the audit's words."""
        if any(found in self._uuids for found in (_uuids_in(raw) if self._uuids else ())):
            return True
        return any(map(self._told, told_in(raw)))

    def _told(self, told: tuple[str, str]) -> bool:
        name, text = told
        if name == "reason":
            return self.quoted(text)
        return self.named(_parsed(text))


class _Many:
    """Byte strings that are looked for all at once, however many there are.

    One pass over the bytes finds where the first three of any of them stand; what begins there is
    compared by hash.
    """

    def __init__(self, needles: Collection[bytes]) -> None:
        self._needles = frozenset(needles)
        self._lengths = sorted({len(needle) for needle in self._needles})
        self._heads = np.zeros(2 ** (8 * _HEAD) if self._needles else 0, np.bool_)
        for needle in self._needles:
            self._heads[int.from_bytes(needle[:_HEAD], "little")] = True

    def found_in(self, raw: bytes) -> Iterator[bytes]:
        """Those that are there, some more than once."""
        if not self._needles or len(raw) < self._lengths[0]:
            return
        for start in range(0, len(raw), _AT_ONCE):
            part = np.frombuffer(raw[start : start + _AT_ONCE + _HEAD - 1], np.uint8)
            first, second, third = (part[i : len(part) - _HEAD + 1 + i] for i in range(_HEAD))
            heads = first.astype(np.uint32) | second.astype(np.uint32) << 8
            heads |= third.astype(np.uint32) << 16
            for place in np.flatnonzero(self._heads[heads]).tolist():
                at = start + place
                for length in self._lengths:
                    if raw[at : at + length] in self._needles:
                        yield raw[at : at + length]


def told_in(raw: bytes) -> Iterator[tuple[str, str]]:
    """Names and texts of the audit's properties in the bytes of a record."""
    for found in _TOLD.finditer(raw):
        name, length, at, shift = found[1].decode(), 0, found.end(), 0
        while at < len(raw):
            length |= (raw[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if raw[at - 1] < 0x80:
                break
        yield name, raw[at : at + length].decode(errors="replace")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _has(prose: str, needle: str) -> bool:
    """Whether it is there, and does not go on: `msg-1` is not in `msg-10`."""
    if needle not in prose:
        return False
    before = r"(?<![\w-])" if _in_word(needle[0]) else ""
    cut = len(needle) == _PIECE
    after = r"(?![\w-]|[.:/@]\w)" if _in_word(needle[-1]) and not cut else ""
    return re.search(f"{before}{re.escape(needle)}{after}", prose) is not None


def _in_word(character: str) -> bool:
    return character.isalnum() or character in "_-"


def _is_telling(identifier: str) -> bool:
    """Whether nobody writes it but who means it: a long one, or letters with digits."""
    mixed = any(map(str.isalpha, identifier)) and any(map(str.isdigit, identifier))
    return is_distinctive(identifier) or (len(identifier) >= _TELLING and mixed)


def is_uuid(identifier: str) -> bool:
    """Whether an id has the form of a UUID; however many are found in bytes in one pass."""
    return len(identifier) == _LENGTH and all(identifier[place] == "-" for place in _DASHES)


def _uuids_in(raw: bytes) -> Iterator[bytes]:
    """All that looks like the text of a UUID: a regular expression takes several times as long."""
    overlap = _LENGTH - 1
    for start in range(0, len(raw), _AT_ONCE):
        part = np.frombuffer(raw[start : start + _AT_ONCE + overlap], np.uint8)
        dashes = part == ord("-")
        width = max(0, len(part) - overlap)
        first, *others = (dashes[place : place + width] for place in _DASHES)
        for place in np.flatnonzero(reduce(np.logical_and, others, first)).tolist():
            yield raw[start + place : start + place + _LENGTH]
