"""Whatever happens in whatever order, working memory is what a list of messages in Python is."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory.agent.working import WorkingMemory
from lance_memory.ingest import Message

TTL = timedelta(hours=1)


@dataclass
class Model:
    """The messages of each session with the moment from which on they are over, and the episodes."""

    said: dict = field(default_factory=lambda: defaultdict(list))
    episodes: list = field(default_factory=list)

    def living(self, session, now):
        return [message for message, until in self.said[session] if until > now]

    def flush(self, session, now, least):
        """All that a person says, and nobody answers, is one exchange."""
        living = self.living(session, now)
        chosen = living if living and assess(living) >= least else []
        self.episodes += [(session, m.content) for m in chosen]
        self.said[session] = [(m, until) for m, until in self.said[session] if m not in chosen]


def assess(messages):
    return 1.0 if any(message.content.endswith("5") for message in messages) else 0.2


STEPS = ["append", "append", "batch", "recent", "hibernate", "flush", "flush some", "wait", "clear"]


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_interleaving_is_what_lists_make_of_it(tmp_path, reopen, data):
    user, model, number = uuid.uuid4().hex, Model(), 0
    clock = SimpleNamespace(now=datetime(2025, 1, 1, tzinfo=UTC))
    opened = [reopen(tmp_path / "store", clock=lambda: clock.now) for _ in range(2)]
    stores = [one.scoped(user=user) for one in opened]  # as two processes have them
    layers = [WorkingMemory(one, ttl=TTL, assessor=assess) for one in stores]
    for _ in range(data.draw(st.integers(1, 12))):
        layer = data.draw(st.sampled_from(layers))
        session = data.draw(st.sampled_from(["a", "b"]))
        match data.draw(st.sampled_from(STEPS)):
            case "append" | "batch" as how:
                new = []
                for _ in range(1 if how == "append" else data.draw(st.integers(2, 5))):
                    number += 1
                    new.append(Message(content=f"word {number}", at=clock.now))
                layer.append_many(session, new)
                model.said[session] += [
                    (message, clock.now + n * timedelta(microseconds=1) + TTL)
                    for n, message in enumerate(new)
                ]
            case "hibernate":
                layer.hibernate(timedelta(minutes=data.draw(st.integers(0, 30))))
            case "flush" | "flush some" as how:
                least = 0.0 if how == "flush" else 0.5
                layer.flush(session, least)
                model.flush(session, clock.now, least)
            case "wait":
                clock.now += timedelta(minutes=data.draw(st.integers(1, 50)))
            case "clear":
                layer.clear(session)
                model.said[session] = []
        for reader in layers if data.draw(st.booleans()) else layers[:1]:
            n = data.draw(st.sampled_from([1, 3, 100]))
            assert list(reader.recent(session, n)) == model.living(session, clock.now)[-n:]
    for session in ("a", "b"):
        for reader in layers:
            assert list(reader.recent(session, 100)) == model.living(session, clock.now)
    found = stores[0].list(kinds="episodic")
    assert sorted((m.session, m.content) for m in found) == sorted(model.episodes)
