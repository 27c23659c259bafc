"""The cheap look before all else: it never says that there is nothing where there is a grant."""

from __future__ import annotations

import pytest

from lance_memory import Scope
from lance_memory.sharing import may_receive
from lance_memory.sharing.looked import _read


@pytest.fixture
def team(store):
    ana, bob = (store.scoped(tenant="t", user=user) for user in ("ana", "bob"))
    ana.add("red note", tags=["red"])
    return ana, bob


def may(store, tenant="t", **levels):
    return may_receive(store._snapshot(), Scope(tenant=tenant, **{"user": "bob", **levels}))


def test_who_is_given_nothing_is_known_to_be_given_nothing(store, team):
    ana, bob = team
    assert not may(store)
    ana.sharing.share(with_={"user": "bob"}, tags="red")
    assert (may(store), may(store, ""), may(store, "u")) == (True, False, False)
    assert (may(store, user="ana"), may(store, user=""), may(store, agent="x")) == (
        False,
        False,
        True,
    )
    assert len(bob.sharing.received()) == 1
    ana.sharing.share(with_={"agent": "x"}, tags="red")
    assert (may(store, user="zoe"), may(store, user="zoe", agent="x")) == (False, True)


def test_whatever_happens_to_a_grant_it_is_seen_while_it_holds(store, team, reopen):
    """Deleted, brought back by a rollback, moved by a compaction, given by another process."""
    ana, bob = team
    given = ana.sharing.share(with_={"user": "bob"}, tags="red")
    granted = store.version
    ana.delete(given.id)
    assert bob.sharing.received() == []
    store.optimize()
    assert bob.sharing.received() == []
    store.rollback(granted)
    assert [grant.id for grant in bob.sharing.received()] == [given.id]
    store.optimize()
    assert [grant.id for grant in bob.sharing.received()] == [given.id]
    other = reopen(store.uri)
    other.scoped(tenant="u", user="zoe").sharing.share(with_={"user": "bob"}, user="zoe")
    assert [g.giver.user for g in store.scoped(tenant="u", user="bob").sharing.received()] == [
        "zoe"
    ]


def test_a_fragment_that_is_known_is_not_read_again(store, team, monkeypatch):
    ana, _ = team
    read = []

    def noted(snapshot, places):
        read.extend(number for number, _ in places)
        return _read(snapshot, places)

    monkeypatch.setattr("lance_memory.sharing.looked._read", noted)
    for n in range(3):
        ana.add(f"note {n}")
        may(store)
        may(store)
    assert len(read) == len(set(read)) == len(store._snapshot().fragment_ids)
