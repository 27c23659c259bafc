"""What is counted of the write path, and that no figure has what somebody said."""

from __future__ import annotations

import subprocess
import sys

STORY = r"""
import json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
import numpy as np
from lance_memory import FunctionEmbedder, MemoryStore, WorkingMemory
reader = InMemoryMetricReader()
if sys.argv[2] == "sdk":
    metrics.set_meter_provider(MeterProvider([reader]))
away = True
def embed(texts):
    if away:
        raise RuntimeError("secret xylophone")
    return np.ones((len(texts), 4))
store = MemoryStore.open(sys.argv[1], embedder=FunctionEmbedder(embed, name="x", dimension=4))
said = ["I live in Xylophone City and I work as a xylophone maker.", "hi"]
store.ingest(said, tenant="acme", user="ana")
store.ingest(["hi"], tenant="acme", user="ana")
away = False
store.ingest(["My sister plays the xylophone in Oslo."], tenant="beta", wait=False)
store.worker().drain()
working = WorkingMemory(store.scoped(tenant="acme", user="ana"))
working.append_message("s", "user", "where is my xylophone?")
read = [len(working.recent("s")) for _ in range(3)]
working.flush("s")
found = {}
data = reader.get_metrics_data() if sys.argv[2] == "sdk" else None
for resource in data.resource_metrics if data else ():
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            points = found.setdefault(metric.name, [])
            for point in metric.data.data_points:
                value = getattr(point, "value", None) or getattr(point, "count", None)
                points.append([dict(point.attributes), value])
print(json.dumps(found))
"""


def told(path, kind):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", STORY, str(path), kind],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_decisions_steps_and_jobs_are_counted_by_tenant_without_content(tmp_path):
    import json

    text = told(tmp_path / "store", "sdk")
    assert "xylophone" not in text.casefold()
    found = json.loads(text)
    decisions = {
        (p["step"], p["verdict"], p["reason"], p["tenant"]): n
        for p, n in found["lance_memory.ingest.decisions"]
    }
    assert decisions["gate", "L2", "low_quality", "acme"] == 1
    assert decisions["keep", "kept", "", "acme"] == 2
    assert decisions["resolve", "new", "new", "beta"] == 1
    timed = {(p["step"], p["tenant"]) for p, _ in found["lance_memory.ingest.step.seconds"]}
    steps = ("normalise", "redact", "gate", "extract", "keep", "embed", "resolve")
    assert {(step, tenant) for step in steps for tenant in ("acme", "beta")} <= timed
    degraded = {p["step"] for p, _ in found["lance_memory.ingest.degraded"]}
    assert {"embed"} <= degraded
    assert sum(n for _, n in found["lance_memory.jobs.ended"]) == 1
    acme = {"tenant": "acme"}
    assert found["lance_memory.working.messages"] == [[acme, 1]]
    assert found["lance_memory.working.promoted"] == [[acme, 1]]
    assert [{**acme, "what": "recent"}, 2] in found["lance_memory.hot.hits"]
    assert [{**acme, "what": "recent"}, 1] in found["lance_memory.hot.misses"]


def test_without_an_sdk_nothing_is_counted_and_all_goes_on(tmp_path):
    assert told(tmp_path / "store", "none").strip() == "{}"
