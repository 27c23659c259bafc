"""A tenant's user has one internal name, which says nothing of the external one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_memory.errors import InvalidInputError, NotFoundError
from lance_memory.ingest.users import ProxyUser, Users, proxy_user
from lance_memory.ledger import open_ledger

NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
def ledger():
    made = open_ledger(":memory:")
    yield made
    made.close()


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


def test_first_sight_is_kept_and_the_external_id_only_if_asked(ledger):
    users = Users(ledger, store_id="s")
    first = users.seen("t", "joe@example.com", now=NOW)
    assert first == ProxyUser(
        tenant="t", name=proxy_user("s", "t", "joe@example.com"), first_seen=NOW
    )
    assert users.seen("t", "joe@example.com", now=NOW + timedelta(days=1)) == first
    assert not any(b"joe" in value for _, value in ledger.items("users"))
    kept = Users(ledger, store_id="s", keep_external=True).seen("t", "ann", now=NOW)
    assert kept.external == "ann"


def test_users_are_found_and_listed_by_tenant(ledger):
    users = Users(ledger, store_id="s")
    mine = [users.seen("t", name, now=NOW) for name in ("a", "b")]
    users.seen('t"', "c", now=NOW)
    users.seen("t\x1fx", "d", now=NOW)
    assert users.list("t") == sorted(mine, key=lambda user: user.name)
    assert users.find("t", mine[0].name) == mine[0]
    assert users.find("u", mine[0].name) is None
    with pytest.raises(NotFoundError, match="no user"):
        users.get("u", mine[0].name)
    users.remove("t", mine[0].name)
    assert users.list("t") == [mine[1]]
