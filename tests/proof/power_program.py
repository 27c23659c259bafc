"""Every kind of write, one after the other."""

from __future__ import annotations

from datetime import timedelta

from proof_kit import contents


def program(store, done):
    """Write; `done` is told after each write what main holds then, rows and tags."""

    def did(result=None):
        done(contents(store), store.tags())
        return result

    ids = [did(store.add(f"memory {number}", user="u")).id for number in range(3)]
    did(store.add_many([f"batch {number}" for number in range(4)]))
    did(store.upsert("lives in Bern", key="home", user="u"))
    did(store.upsert("lives in Basel", key="home", user="u"))
    did(store.update(ids[0], importance=0.9))
    did(store.supersede(ids[:2], "both memories in one"))
    did(store.tag("before"))
    side = store.branch("side")
    side.add("only on the side", user="u")
    did()
    did(store.optimize(clean_older_than=timedelta(0)))
    did(store.add("after upkeep", user="u"))
    did(store.retire(ids[2]))
    did(store.optimize(clean_older_than=timedelta(0)))
    did(store.optimize())
    did(store.add("after that again", user="u"))
    did(store.rollback("before"))
