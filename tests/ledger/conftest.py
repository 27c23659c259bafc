"""Every rule about ledgers holds of a SQLite file and of a Redis server alike."""

from __future__ import annotations

import uuid

import pytest

from lance_memory.ledger import open_ledger


@pytest.fixture(params=["sqlite", "redis"])
def where(request, tmp_path):
    """The place of a ledger of this test's own."""
    if request.param == "sqlite":
        return str(tmp_path / "ingest" / "ledger.sqlite")
    return f"{request.getfixturevalue('redis_url')}?prefix=t{uuid.uuid4().hex}"


@pytest.fixture
def ledger(where):
    opened = open_ledger(where)
    yield opened
    opened.close()
