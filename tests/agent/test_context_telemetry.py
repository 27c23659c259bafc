"""What is counted of context packs: by tenant, and never what was said."""

from __future__ import annotations

import json
import subprocess
import sys

STORY = r"""
import json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
import numpy as np
from lance_memory import Agent, FunctionEmbedder, MemoryStore
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
away = False
def embed(texts):
    if away:
        raise RuntimeError("secret xylophone")
    return np.ones((len(texts), 4))
store = MemoryStore.open(sys.argv[1], embedder=FunctionEmbedder(embed, name="x", dimension=4))
agent = Agent(store.scoped(tenant="acme", user="xylophone"))
agent.context("xylophone", "xylophone", 200)
agent.semantic.add("a xylophone has bars")
agent.working.append_message("xylophone", "user", "I play the xylophone")
pack = agent.context("xylophone", "which bars has a xylophone", 200)
agent.procedural.learn("play", context="a concert", steps=["hit the bars"])
away = True
agent.context("xylophone", "another xylophone", 200)
found = {}
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            points = found.setdefault(metric.name, [])
            for point in metric.data.data_points:
                value = getattr(point, "value", None) or getattr(point, "count", None)
                points.append([dict(point.attributes), value])
print(json.dumps([found, {str(i.source): i.tokens for i in pack}]))
"""


def test_packs_hits_tokens_time_and_failures_are_counted_by_tenant_without_content(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STORY, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "xylophone" not in done.stdout.casefold()
    found, tokens = json.loads(done.stdout)

    def points(name, *by):
        told = found[f"lance_memory.context.{name}"]
        assert {p["tenant"] for p, _ in told} == {"acme"}
        return {tuple(p[one] for one in by): n for p, n in told}

    assert points("packs", "mode") == {("hybrid",): 3}
    assert (points("hits"), points("misses")) == ({(): 2}, {(): 1})
    assert points("items", "source") == {("semantic",): 2, ("working",): 2}
    assert points("tokens", "source") == {(name,): 2 * n for name, n in tokens.items()}
    assert points("degraded", "leg") == {("vector",): 1, ("procedural",): 1}
    assert {("all",), ("vector",), ("working",)} <= points("seconds", "leg").keys()
