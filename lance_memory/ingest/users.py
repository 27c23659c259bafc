"""Users by names that say nothing: of a tenant's own id for somebody, always the same one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Final

from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.ledger import Ledger
from lance_memory.record.times import parse_instant, utc

__all__ = ["ProxyUser", "Users", "count_users", "forget_users", "proxy_user", "store_secret"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyUser:
    """A user that was seen.

    Attributes:
        tenant: whose user.
        name: the internal name, for `user=`.
        first_seen: when it was first asked for.
        external: the tenant's own id, where it is kept.
    """

    tenant: str
    name: str
    first_seen: datetime
    external: str = ""


class Users:
    """Who was seen, in a ledger. Safe for any threads and processes.

    Args:
        ledger: of the store.
        store_id: of the store.
        keep_external: keep the external id beside the internal one, so that `list` shows it. It
            is personal data.
    """

    def __init__(self, ledger: Ledger, *, store_id: str, keep_external: bool = False) -> None:
        self._ledger, self._store_id, self._keep = ledger, store_id, keep_external

    def seen(self, tenant: str, external: str, *, now: datetime) -> ProxyUser:
        """The user of that external id, noted at first sight.

        Raises:
            InvalidInputError: an empty external id, or a naive time.
            StorageError: the ledger cannot be reached.
        """
        name = proxy_user(self._store_id, tenant, external)
        values = {"first_seen": utc(now, "now").isoformat()}
        if self._keep:
            values["external"] = external
        self._ledger.swap(_SPACE, _key(tenant, name), old=None, new=json.dumps(values).encode())
        return self.get(tenant, name)

    def find(self, tenant: str, name: str) -> ProxyUser | None:
        """The user of that internal name; None: nobody of that name was seen."""
        raw = self._ledger.get(_SPACE, _key(tenant, name))
        return None if raw is None else _user(tenant, name, raw)

    def get(self, tenant: str, name: str) -> ProxyUser:
        """The user of that internal name.

        Raises:
            NotFoundError: nobody of that name was seen.
        """
        found = self.find(tenant, name)
        if found is None:
            raise NotFoundError(f"no user {name!r} of that tenant was seen; `list` shows who was")
        return found

    def list(self, tenant: str) -> list[ProxyUser]:
        """The users of a tenant, by internal name."""
        return [*self._of(tenant)]

    def remove(self, tenant: str, name: str) -> None:
        """Forget that a user was seen; the same external id gets the same name again."""
        self._ledger.remove(_SPACE, _key(tenant, name))

    def _of(self, tenant: str) -> Iterator[ProxyUser]:
        prefix = _key(tenant, "")
        for key, raw in self._ledger.items(_SPACE, prefix=prefix):
            yield _user(tenant, key.removeprefix(prefix), raw)


def forget_users(ledger: Ledger, tenant: str, name: str = "") -> None:
    """Forget that a user was seen, by the internal name, or all of a tenant."""
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


def _user(tenant: str, name: str, raw: bytes) -> ProxyUser:
    values = json.loads(raw)
    return ProxyUser(
        tenant=tenant,
        name=name,
        first_seen=parse_instant(values["first_seen"]),
        external=values.get("external", ""),
    )
