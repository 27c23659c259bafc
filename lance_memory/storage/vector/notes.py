"""Notes that stay with an index through folds and compactions: who trained it, and why.

They are entries of the map `runtime_hints` of the engine's index details, which it copies to
every index that it makes of this one, and gives back as text. Its own hints begin with "lance.".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import Index

__all__ = ["noted", "notes_in"]

_PREFIX = "lance_memory."
_HINTS = 9
"""Field number of the map `runtime_hints` in `lance.index.pb.VectorIndexDetails`."""


def noted(index: Index, notes: Mapping[str, str]) -> Index:
    """The index with these notes; one without details, of an old engine, as it is."""
    if index.index_details is None:
        return index
    kind, details = index.index_details
    entries = b"".join(_entry(f"{_PREFIX}{name}", text) for name, text in notes.items())
    return dataclasses.replace(index, index_details=(kind, details + entries))


def notes_in(hints: Mapping[str, str]) -> dict[str, str]:
    """The notes among the engine's hints."""
    return {
        name.removeprefix(_PREFIX): text for name, text in hints.items() if name.startswith(_PREFIX)
    }


def _entry(name: str, text: str) -> bytes:
    """One entry of a protobuf map: a message of key (field 1) and value (field 2)."""
    return _field(_HINTS, _field(1, name.encode()) + _field(2, text.encode()))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])
