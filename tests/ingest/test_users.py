"""A tenant's user has one internal name, which says nothing of the external one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.users import count_users, forget_users, proxy_user, seen_user
from lance_memory.ledger import open_ledger

NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger():
    made = open_ledger(":memory:")
    yield made
    made.close()


def seen(ledger, tenant, external, *, days=0):
    now = NOW + timedelta(days=days)
    return seen_user(ledger, store_id="s", tenant=tenant, external=external, now=now)


def test_a_name_is_stable_and_differs_by_store_tenant_and_id():
    name = proxy_user("store", "t", "joe@example.com")
    assert name == "u-383c0c88065569172a58f6ba8d01f96f"
    others = [
        ("other", "t", "joe@example.com"),
        ("store", "u", "joe@example.com"),
        ("store", "t", "x"),
    ]
    assert len({name, *(proxy_user(*other) for other in others)}) == 4
    assert proxy_user("s", "a", "bc") != proxy_user("s", "ab", "c")
    with pytest.raises(InvalidInputError, match="empty"):
        proxy_user("store", "t", "")


def test_first_sight_is_noted_once_and_the_external_id_never(ledger):
    first = seen(ledger, "t", "joe@example.com")
    assert first == proxy_user("s", "t", "joe@example.com")
    before = list(ledger.items("users"))
    assert seen(ledger, "t", "joe@example.com", days=1) == first
    assert list(ledger.items("users")) == before
    assert not any(b"joe" in value for _, value in before)


def test_users_are_counted_and_forgotten_by_tenant(ledger):
    mine = [seen(ledger, "t", name) for name in ("a", "b")]
    seen(ledger, 't"', "c")
    seen(ledger, "t\x1fx", "d")
    assert [count_users(ledger, tenant) for tenant in ("t", 't"', "t\x1fx", "u")] == [2, 1, 1, 0]
    assert count_users(ledger, "t", mine[0]) == 1
    forget_users(ledger, "t", mine[0])
    assert [count_users(ledger, "t", name) for name in mine] == [0, 1]
    forget_users(ledger, "t")
    assert [count_users(ledger, tenant) for tenant in ("t", 't"', "t\x1fx")] == [0, 1, 1]
    assert seen(ledger, "t", "a") == mine[0]
