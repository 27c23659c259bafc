"""Users by names that say nothing: of a tenant's own id for somebody, always the same one."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import blake2b
from typing import Final

from lance_memory.errors import InvalidInputError
from lance_memory.ledger import Ledger
from lance_memory.record.times import utc

__all__ = ["count_users", "forget_users", "proxy_user", "seen_user", "store_secret"]

_SPACE: Final = "users"
_APART: Final = "\x1f"


def proxy_user(store_id: str, tenant: str, external: str) -> str:
    """The internal name of a tenant's user: "u-" and 128 bits in hex. Nothing is looked up.

    A BLAKE2b keyed with the store's id: names of two stores, or of two tenants, have nothing in
    common. Whoever has the store can try external ids, and those that are easily guessed, such as
    e-mail addresses, will be found: it hides who it is from a reader, not from an attacker.

    Raises:
        InvalidInputError: an empty external id.
    """
    if not external:
        raise InvalidInputError("external is empty; it is the tenant's own id of a user")
    key = store_secret(store_id)
    told = json.dumps([tenant, external]).encode()
    return f"u-{blake2b(told, key=key, digest_size=16).hexdigest()}"


def store_secret(store_id: str) -> bytes:
    """32 bytes for keyed hashes, the same wherever the store and its ledger are.

    Danger: a secret to those alone who do not have the store. Whoever has it can try values.
    """
    return blake2b(store_id.encode(), digest_size=32).digest()


def seen_user(ledger: Ledger, *, store_id: str, tenant: str, external: str, now: datetime) -> str:
    """The internal name of a tenant's user, who is noted at first sight; the external id is not.

    Raises:
        InvalidInputError: an empty external id, or a naive time.
        StorageError: the ledger cannot be reached.
    """
    name = proxy_user(store_id, tenant, external)
    first = json.dumps({"first_seen": utc(now, "now").isoformat()})
    ledger.swap(_SPACE, _key(tenant, name), old=None, new=first.encode())
    return name


def forget_users(ledger: Ledger, tenant: str, name: str = "") -> None:
    """Forget that a user was seen, by the internal name, or all of a tenant.

    The same external id gets the same name again.
    """
    for key in _keys(ledger, tenant, name):
        ledger.remove(_SPACE, key)


def count_users(ledger: Ledger, tenant: str, name: str = "") -> int:
    """How many `forget_users` would remove."""
    return len(_keys(ledger, tenant, name))


def _keys(ledger: Ledger, tenant: str, name: str) -> list[str]:
    mine = _key(tenant, name)
    return [key for key, _ in ledger.items(_SPACE, prefix=mine) if not name or key == mine]


def _key(tenant: str, name: str) -> str:
    """Of any two tenants different: the tenant's name in JSON has no such character in it."""
    return f"{json.dumps(tenant)}{_APART}{name}"
