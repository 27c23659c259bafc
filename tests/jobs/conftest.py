"""Every rule about jobs holds of SQLite files and of a Redis server alike."""

from __future__ import annotations

import uuid

import pytest

from lance_memory.jobs import open_desk
from lance_memory.ledger import open_ledger


@pytest.fixture(params=["sqlite", "redis"])
def where(request, tmp_path):
    """The places of the ledger and the queue of this test's own."""
    if request.param == "sqlite":
        place = tmp_path / "ingest"
        return str(place / "ledger.sqlite"), str(place / "queue.sqlite")
    url = f"{request.getfixturevalue('redis_url')}?prefix=t{uuid.uuid4().hex}"
    return url, url


class Now:
    """Stands still until it is told to go on."""

    def __init__(self, moment):
        self.moment = moment

    def __call__(self):
        return self.moment


@pytest.fixture
def now(clock):
    return Now(clock.now)


@pytest.fixture
def desk(where, now):
    ledger = open_ledger(where[0])
    opened = open_desk(ledger, where[1], clock=now)
    yield opened
    opened.queue.close()
    ledger.close()
