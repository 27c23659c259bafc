"""Conversations, surroundings and ledgers for the gate's tests."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from lance_memory.errors import StorageError
from lance_memory.ingest.message import Conversation, Message, Role
from lance_memory.ingest.steps import Surroundings
from lance_memory.ledger import open_ledger
from lance_memory.record.memory import Scope

sys.path.insert(0, str(Path(__file__).parent))  # gate_kit

NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def talk():
    """A conversation of the user's messages."""

    def make(*contents, tenant="acme", user="ana", source="", ref="", role=Role.USER):
        messages = [Message(content=text, ref=ref, role=role) for text in contents]
        scope = Scope(tenant=tenant, user=user)
        return Conversation(messages=tuple(messages), scope=scope, source=source)

    return make


@pytest.fixture(scope="session")
def around(embedder):
    """Surroundings: a new job each time, at noon, with the shared embedder and no ledger."""
    jobs = iter(range(10**9))

    def make(*, ledger=None, job="", now=NOON, embed=None):
        def embedded(texts):
            return np.asarray(embedder.embed(texts), np.float32)

        return Surroundings(
            now=now,
            job=job or f"job-{next(jobs)}",
            embed=embed or embedded,
            known=lambda _scope, _most: (),
            ledger=ledger,
        )

    return make


@pytest.fixture
def ledger():
    opened = open_ledger(":memory:")
    yield opened
    opened.close()


class Broken:
    """A ledger whose calls, from the given one on, cannot reach it."""

    def __init__(self, ledger, *, after, error=StorageError):
        self._ledger = ledger
        self._left = after
        self._error = error

    def __getattr__(self, name):
        method = getattr(self._ledger, name)

        def call(*args, **options):
            self._left -= 1
            if self._left < 0:
                raise self._error("the disk is gone")
            return method(*args, **options)

        return call


@pytest.fixture(scope="session")
def broken():
    return Broken
