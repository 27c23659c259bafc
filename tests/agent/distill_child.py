"""A process that writes numbered events, some of which it changes, while another distils."""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime, timedelta

import numpy as np

from lance_memory import FunctionEmbedder, MemoryStore

EMBEDDER = FunctionEmbedder(lambda texts: np.ones((len(texts), 16)), name="words-16", dimension=16)
EARLY = datetime(2024, 12, 1, tzinfo=UTC)


def write(store, tenant, count):
    """Each event is in the table some time before it counts as worked off, as on the write path."""
    draw = random.Random(tenant)
    for seq in range(count):
        store.order.arrived(tenant, [seq], job=f"j{seq}", now=datetime.now(UTC))
        id = store.add(
            f"Event {seq} cost {seq} euros.",
            tenant=tenant,
            user="ann",
            session=f"s{seq % 3}",
            seq=seq,
            event_at=EARLY + timedelta(hours=draw.randrange(72)),
        ).id
        time.sleep(draw.random() / 50)
        store.order.done(tenant, f"j{seq}")
        if draw.random() < 0.3:
            store.update(id, content=f"Event {seq} cost {seq + 1000} euros.")


if __name__ == "__main__":
    _, place, tenant, count = sys.argv
    print("begun", flush=True)  # noqa: T201 - the parent waits for it
    write(MemoryStore.open(place, embedder=EMBEDDER, upkeep=None), tenant, int(count))
