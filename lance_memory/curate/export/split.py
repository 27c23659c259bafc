"""Which groups are for validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

__all__ = ["is_validation"]


def is_validation(identity: Sequence[str], *, share: float, seed: int) -> bool:
    """Whether the group of this identity is on the validation side.

    Decided by a hash of the identity alone: a group stays on its side whatever groups come and
    go. So the share is met on average only, and few groups may well lie on one side.
    """
    text = json.dumps([seed, *identity], ensure_ascii=False)
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64
