"""Writes until there is no room: `python quota_child.py STORE NAME ROWS CALLS`; says how often."""

from __future__ import annotations

import json
import sys

import numpy as np

from lance_memory import FunctionEmbedder, Limit, MemoryStore, Quota, QuotaExceededError, Quotas


def vectors(texts):
    return np.ones((len(texts), 16))


def open_store(path, **tenants):
    embedder = FunctionEmbedder(vectors, name="quota-16", dimension=16)
    return MemoryStore.open(path, embedder=embedder, upkeep=None, quotas=Quotas(tenants=tenants))


def stored(store, name, tenant):
    for number in range(100):
        try:
            store.add(f"{name} {number}", tenant=tenant)
        except QuotaExceededError:
            return number
    return 100


def main(path, name, rows, calls):
    limits = {
        "rows": Quota(rows=Limit(hard=int(rows))),
        "calls": Quota(calls_a_month=Limit(hard=int(calls))),
    }
    store = open_store(path, **limits)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(json.dumps({tenant: stored(store, name, tenant) for tenant in limits}))


if __name__ == "__main__":
    main(*sys.argv[1:])
