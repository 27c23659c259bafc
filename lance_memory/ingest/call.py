"""By what a call that is repeated is told from another one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from lance_memory.ingest.formats import Normalise
from lance_memory.ingest.message import Conversation
from lance_memory.ingest.redaction import Redact
from lance_memory.ingest.steps import Surroundings

__all__ = ["call_digest"]


def call_digest(conversations: Sequence[Conversation], around: Surroundings) -> str:
    """A digest of what was handed in, in hex: the same whatever steps it goes through.

    It is kept with the job, so it is of what the default steps leave of the texts, keyed with the
    store's secret: a value that they take out, such as a password, cannot be tried out on it. Two
    calls that differ in such a value alone count as one.
    """
    items: Sequence[Any] = conversations
    quiet = replace(around, ledger=None, progress=lambda *_: None)
    for step in (Normalise(), Redact()):
        items = step(items, quiet).items
    told = json.dumps([one.to_json() for one in items], sort_keys=True)
    return blake2b(told.encode(), key=around.secret, digest_size=32).hexdigest()
