"""What a memory says is in the store and in answers, and nowhere else: not in logs, not in errors."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest

from lance_memory import Bounds, ConsolidateOptions, Dreamer, LanceMemoryError

SECRET = "xylophone"
STORY = r"""
import logging, sys
from datetime import timedelta
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
import numpy as np
from lance_memory import ConsolidateOptions, FunctionEmbedder, LanceMemoryError, MemoryStore
ones = FunctionEmbedder(lambda t: np.ones((len(t), 4)), name="ones", dimension=4)
store = MemoryStore.open(sys.argv[1], embedder=ones, record_queries=True)
secret = sys.argv[2]
everything = dict(
    user=secret, key=secret, tags=[secret], metadata={secret: secret}, actor=secret, source=secret
)
store.add(f"the {secret}", **everything)
store.add_many([{"content": f"{secret} number {n}", "user": secret} for n in range(12)])
store.update(secret, content=f"the new {secret}", reason=secret)
store.search(secret); store.search(secret, mode="text"); store.list(user=secret)
store.sql(f'SELECT * FROM memories WHERE "user" = \'{secret}\'')
store.consolidate(ConsolidateOptions(distinct=False, max_dropped=1.0), user=secret)
store.tag("start"); store.branch("side").add(f"{secret} on the side")
store.retire(secret); store.rollback(store.version - 1)
store.optimize(vector_index_from=5); store.build_index(kind="ivf_flat")
said = [f"I live in {secret} and I work as a {secret} maker.", f"I love the {secret}."]
store.ingest(said, tenant="t", user=secret)
store.ingest(said, tenant="t", user=secret)
store.ingest([f"My goal is to build a {secret} of my own."], tenant="t", user=secret, wait=False)
store.worker().drain()
store.ingest([f"My sister plays the {secret}."], tenant="t", idempotency_key=secret)
store.queries(); store.forget_queries(); store.delete(user=secret, states="any")
store.optimize(clean_older_than=timedelta(0))
"""


@pytest.mark.parametrize("engine", ["error", pytest.param("info", marks=pytest.mark.slow)])
def test_no_log_line_above_debug_has_what_a_memory_says(engine, tmp_path):
    """The engine's own log is off unless asked for, and at "info" it has no content either."""
    done = subprocess.run(
        [sys.executable, "-c", STORY, str(tmp_path / "store"), SECRET],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LANCE_LOG": engine},
    )
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    if engine == "error":
        assert done.stdout == ""


def failures(store, ids):
    """Calls that fail because of what is in the store."""
    yield lambda: store.add("something else", id=ids[0])
    yield lambda: store.add_many([{"content": "fresh"}, {"content": "other", "id": ids[1]}])
    yield lambda: store.get("0")
    yield lambda: store.get("absent")
    yield lambda: store.update("0", importance=2)
    yield lambda: store.supersede([ids[0], "absent"], "next")
    yield lambda: store.supersede(ids, "next")
    yield lambda: store.unretire(ids[0])
    yield lambda: store.revert(3)
    yield lambda: store.rollback(99)
    yield lambda: store.sql("SELECT CAST(content AS INTEGER) FROM memories")
    yield lambda: store.sql("SELECT content + 1 FROM memories")
    yield lambda: store.sql("SELECT nothing FROM memories")
    yield lambda: store.search(vector=[1.0])
    yield lambda: store.retire(ids, user="u")
    yield lambda: store.scoped(user="other").get(ids[0])


def test_no_error_quotes_a_memory_that_the_caller_did_not_give(store):
    ids = [f"0{n}-id" for n in range(3)]
    store.add_many(
        [
            {"content": f"{SECRET} number {n}", "id": i, "user": "u", "key": f"k{n}",
             "metadata": {"m": SECRET}, "actor": SECRET}
            for n, i in enumerate(ids)
        ]
    )  # fmt: skip
    store.update(ids[0], content=f"{SECRET} changed")
    plan = store.consolidate(
        ConsolidateOptions(min_similarity=-1.0, distinct=False, max_dropped=1.0), dry_run=True
    )
    store.update(ids[0], content=f"{SECRET} changed again")
    errors = []
    for call in [*failures(store, ids), lambda: store.apply(plan)]:
        try:
            call()
        except LanceMemoryError as error:
            errors.append(str(error))
    assert len(errors) > 12
    assert [error for error in errors if SECRET in error] == []


def test_a_dreamer_logs_no_memory(store, caplog):
    store.add_many([f"{SECRET} number {n}" for n in range(4)])
    with (
        caplog.at_level("INFO"),
        Dreamer(store, bounds=Bounds(), every=timedelta(milliseconds=50)) as dreamer,
    ):
        dreamer.once()
    assert SECRET not in caplog.text
