"""Ids and content hashes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ID_WIDTH",
    "content_hash",
    "content_hashes",
    "derived_id",
    "digests",
    "hash_words",
    "joined_ids",
    "new_id",
    "new_ids",
]

ID_WIDTH = 36


def new_ids(count: int, now: datetime) -> list[str]:
    """`count` UUIDv7 texts that sort by time, then by their order in the batch.

    Layout of RFC 9562 §5.7 with its methods 3 and 1: 48 bits of Unix milliseconds, 12 bits of
    the millisecond's fraction, and in `rand_b` 28 bits that count through the batch, then 34
    random bits. (Python's own uuid.uuid7 comes with 3.14 and takes no clock.)
    """
    texts = joined_ids(count, now).decode()
    return [texts[i : i + ID_WIDTH] for i in range(0, len(texts), ID_WIDTH)]


def joined_ids(count: int, now: datetime) -> bytes:
    """The same as one text, without anything in between."""
    micros = int(now.timestamp() * 1_000_000)
    head = f"{micros // 1000:012x}"
    stem = f"{head[:8]}-{head[8:]}-7{(micros % 1000) * 4096 // 1000:03x}-".encode()
    start = secrets.randbits(27)  # so that two writers of one microsecond differ here too
    if count == 1:  # as in most adds
        tail = f"{1 << 63 | start << 34 | secrets.randbits(34):016x}".encode()
        return stem + tail[:4] + b"-" + tail[4:]
    noise = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64) >> np.uint64(30)
    places = np.arange(start, start + count, dtype=np.uint64) << np.uint64(34)
    tails = (places | noise | np.uint64(1 << 63)).astype(">u8").tobytes().hex().encode()
    digits = np.frombuffer(tails, dtype=np.uint8).reshape(count, 16)
    texts = np.full((count, ID_WIDTH), ord("-"), dtype=np.uint8)
    texts[:, : len(stem)] = np.frombuffer(stem, dtype=np.uint8)
    texts[:, -17:-13], texts[:, -12:] = digits[:, :4], digits[:, 4:]
    return texts.tobytes()


def new_id(now: datetime) -> str:
    """One UUIDv7 text."""
    return new_ids(1, now)[0]


def derived_id(name: str, at: datetime) -> str:
    """The one UUIDv7 text that belongs to `name`: the time of `at`, and a hash for its noise."""
    digits = hashlib.blake2b(name.encode(), digest_size=10).hexdigest()
    head = f"{max(0, int(at.timestamp() * 1_000)):012x}"
    variant = f"{0x8 | int(digits[3], 16) & 0x3:x}"
    return f"{head[:8]}-{head[8:]}-7{digits[:3]}-{variant}{digits[4:7]}-{digits[7:19]}"


def content_hash(text: str) -> str:
    """BLAKE2b-128 of the UTF-8 text, as 32 hex digits. Depends on the content alone."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def content_hashes(texts: Iterable[str]) -> list[str]:
    """`content_hash` of each text."""
    return [content_hash(text) for text in texts]


def digests(texts: Iterable[str]) -> bytes:
    """What `content_hash` spells, 16 bytes for each text."""
    made = hashlib.blake2b
    return b"".join([made(text.encode(), digest_size=16).digest() for text in texts])


def hash_words(digests: bytes) -> NDArray[np.uint64]:
    """The first 64 bits of each content hash, ascending, uint64 [n]."""
    return np.sort(np.frombuffer(digests, dtype=np.uint64)[::2])
