"""A version's manifest for another directory: a branch names its parent's by an absolute path.

The engine knows no other way to name the files of a parent, so a store with branches that is copied
elsewhere would go on reading the directory that it was copied from. The manifest is a file that
ends with the place of its head; the head is a length and a protobuf message, whose field 18 holds
the bases, with their paths in field 4 (Lance's `protos/table.proto`). Only these paths are changed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from lance_memory.errors import StorageError

__all__ = ["bases_of", "rebased"]

_TAIL = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_MAGIC = b"LANC"
_BASES, _PATH = 18, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}


def bases_of(manifest: bytes) -> list[str]:
    """The directories that the version shares files with.

    Raises:
        StorageError: it is no manifest, or is damaged.
    """
    start, end = _head(manifest)
    found: list[str] = []
    for field, _, value in _fields(manifest[start:end]):
        if field == _BASES:
            found += [path.decode() for inner, _, path in _fields(value) if inner == _PATH]
    return found


def rebased(manifest: bytes, place: Callable[[str], str]) -> bytes:
    """The manifest with `place(directory)` for each directory that it shares files with.

    Raises:
        StorageError: it is no manifest, or is damaged.
    """
    start, end = _head(manifest)
    head = b"".join(
        _written(field, _moved(value, place)) if field == _BASES else raw
        for field, raw, value in _fields(manifest[start:end])
    )
    before = manifest[: start - _LENGTH.size]
    return before + _LENGTH.pack(len(head)) + head + manifest[end:]


def _moved(base: bytes, place: Callable[[str], str]) -> bytes:
    return b"".join(
        _written(field, place(value.decode()).encode()) if field == _PATH else raw
        for field, raw, value in _fields(base)
    )


def _head(manifest: bytes) -> tuple[int, int]:
    """Where the message begins and ends."""
    if len(manifest) < _TAIL.size:
        raise _damaged()
    at, _, _, magic = _TAIL.unpack(manifest[-_TAIL.size :])
    if magic != _MAGIC or not 0 <= at <= len(manifest) - _TAIL.size - _LENGTH.size:
        raise _damaged()
    start = at + _LENGTH.size
    end = start + _LENGTH.unpack(manifest[at:start])[0]
    if end + _TAIL.size != len(manifest):
        raise _damaged()
    return start, end


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Field number, the field as it stands there, and the value where that is bytes."""
    at = 0
    while at < len(message):
        begin = at
        key, at = _varint(message, at)
        kind, value = key & 7, b""
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        elif kind == _BYTES:
            length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
        else:
            raise _damaged()
        if at > len(message):
            raise _damaged()
        yield key >> 3, message[begin:at], value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise _damaged()


def _written(field: int, value: bytes) -> bytes:
    return _as_varint(field << 3 | _BYTES) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _damaged() -> StorageError:
    return StorageError("the manifest of a version is damaged: it does not have the engine's form")
