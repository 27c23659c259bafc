"""What working memory costs a turn: a message written and the last ten read, and what follows.

One JSON line for each measurement. Run it from the repository root:

    .venv/bin/python bench/working.py            # half a minute
    .venv/bin/python bench/working.py --quick    # small, for the test; its ratios mean little

Each is measured beside a plain insert into SQLite, or a plain read from it, and a commit of the
store, run by run. `--place DIRECTORY` says on which disk; by default the one of temporary files,
which must not be in memory (tmpfs) for the figures of "power" to mean anything.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpus import sentences
from bench.measure import SEED, emit, interleaved, seconds
from bench.overhead import constant_embedder
from lance_memory import HotTier, MemoryStore, Message, WorkingMemory

BAR_MS = 1.0
"""Of a write and of a read, in the middle."""

READ = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    sessions: int = 50
    messages: int = 40
    runs: int = 400
    settled: int = 5
    rows: int = 5_000


QUICK = Sizes(sessions=2, messages=12, runs=5, settled=1, rows=50)


class Plain:
    """What a program would do by itself: a table in SQLite, a row of JSON for each message."""

    def __init__(self, path: Path, *, durability: str) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        level = "FULL" if durability == "power" else "NORMAL"
        self._database.execute(f"PRAGMA synchronous = {level}")
        self._database.execute(
            "CREATE TABLE said (session TEXT, number INTEGER, raw TEXT, "
            "PRIMARY KEY (session, number)) WITHOUT ROWID"
        )
        self._number = 0

    def append(self, session: str, content: str) -> None:
        self._number += 1
        raw = json.dumps({"role": "user", "content": content})
        self._database.execute("INSERT INTO said VALUES (?, ?, ?)", (session, self._number, raw))

    def recent(self, session: str) -> list[Any]:
        found = self._database.execute(
            "SELECT raw FROM said WHERE session = ? ORDER BY number DESC LIMIT ?", (session, READ)
        )
        return [json.loads(raw) for (raw,) in found][::-1]

    def close(self) -> None:
        self._database.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The same conversation, kept in three ways."""

    store: MemoryStore
    working: WorkingMemory
    plain: Plain
    texts: Sequence[str]

    @classmethod
    def begun(cls, place: Path, sizes: Sizes, *, durability: str) -> Sides:
        """With sessions of some messages each, and rows in the store."""
        place.mkdir()
        store = MemoryStore.open(
            place / "store", embedder=constant_embedder(), durability=durability, upkeep=None
        )
        rng = np.random.default_rng(SEED)
        texts = sentences(sizes.rows + 20 * sizes.runs + sizes.sessions * sizes.messages, rng)
        store.add_many([{"content": t, "user": "u"} for t in texts[: sizes.rows]])
        made = cls(
            store=store,
            working=WorkingMemory(store.scoped(tenant="t", user="u")),
            plain=Plain(place / "plain.sqlite", durability=durability),
            texts=texts[sizes.rows :],
        )
        for number in range(sizes.sessions * sizes.messages):
            session, text = f"s{number % sizes.sessions}", made.texts[-1 - number]
            made.working.append_message(session, "user", text)
            made.plain.append(session, text)
        for session in range(sizes.sessions):
            made.working.recent(f"s{session}", READ)
        return made

    def close(self) -> None:
        self.plain.close()
        self.store.close()


def told(bench: str, taken: Sequence[Sequence[float]], *names: str, **more: Any) -> None:
    """Emit ours against the others: p50 and p95, and the ratios of the medians."""
    middles = [statistics.median(each) for each in taken]
    figures: dict[str, Any] = {}
    for name, each, middle in zip(("ours", *names), taken, middles, strict=True):
        figures[f"{name}_p50_ms"] = round(middle * 1e3, 4)
        figures[f"{name}_p95_ms"] = round(float(np.percentile(each, 95)) * 1e3, 4)
    for name, middle in zip(names, middles[1:], strict=True):
        figures[f"ratio_to_{name}"] = round(middles[0] / middle, 3)
    emit(bench=bench, **figures, **more, n=len(taken[0]))


def once(work: Callable[[int], object]) -> Callable[[int], float]:
    return lambda run: seconds(lambda: work(run))


def write(sides: Sides, sizes: Sizes, *, durability: str) -> None:
    """One message: ours, an insert into SQLite, a commit of the store."""
    texts = iter(sides.texts)
    taken = interleaved(
        sizes.runs,
        once(
            lambda run: sides.working.append_message(
                f"s{run % sizes.sessions}", "user", next(texts)
            )
        ),
        once(lambda run: sides.plain.append(f"s{run % sizes.sessions}", next(texts))),
        once(
            lambda run: sides.store.add(next(texts), user="u", session=f"s{run % sizes.sessions}")
        ),
    )
    p50 = statistics.median(taken[0]) * 1e3
    bars = {} if durability == "power" else {"bar_ms": BAR_MS, "met": p50 <= BAR_MS}
    told("working_write", taken, "sqlite", "commit", durability=durability, **bars)


def read(sides: Sides, sizes: Sizes) -> None:
    """The last ten messages: after one more was said, as before a turn; and with nothing new."""
    texts = iter(sides.texts)

    def turn(run: int) -> float:
        session = f"s{run % sizes.sessions}"
        sides.working.append_message(session, "user", next(texts))
        return seconds(lambda: sides.working.recent(session, READ))

    def plain(run: int) -> float:
        session = f"s{run % sizes.sessions}"
        sides.plain.append(session, next(texts))
        return seconds(lambda: sides.plain.recent(session))

    def listed(run: int) -> object:
        return sides.store.list(user="u", session=f"s{run % sizes.sessions}", limit=READ)

    for name, ours in (
        ("working_read_after_a_write", turn),
        ("working_read_again", once(lambda run: sides.working.recent(f"s{run % sizes.sessions}", READ))),
        ("working_read_by_a_new_process", once(lambda run: cold(sides).recent(f"s{run % sizes.sessions}", READ))),
    ):  # fmt: skip
        runs = max(5, sizes.runs // 4)
        taken = interleaved(runs, ours, plain, once(listed))
        p50 = statistics.median(taken[0]) * 1e3
        bars = {} if name.endswith("new_process") else {"bar_ms": BAR_MS, "met": p50 <= BAR_MS}
        told(name, taken, "sqlite", "list", messages=READ, **bars)


def cold(sides: Sides) -> WorkingMemory:
    """A handle that remembers nothing."""
    return WorkingMemory(sides.store.scoped(tenant="t", user="u"), hot=HotTier())


def context(sides: Sides, sizes: Sizes) -> None:
    """The values of a session: set and read."""
    taken = interleaved(
        sizes.runs // 4 + 5,
        once(lambda run: sides.working.set_context("s0", {"topic": "travel", "step": run})),
        once(lambda _: sides.working.context("s0")),
    )
    setting, reading = (statistics.median(each) * 1e3 for each in taken)
    emit(bench="working_context", set_p50_ms=round(setting, 4), get_p50_ms=round(reading, 4))


def settle(place: Path, sizes: Sizes) -> None:
    """All sessions hibernate, are read from the table, and one after the other is flushed."""
    flushes, hibernations, awake = [], [], []
    for run in range(sizes.settled):
        sides = Sides.begun(place / f"settle-{run}", sizes, durability="process")
        working = sides.working
        hibernations.append(seconds(lambda w=working: w.hibernate(timedelta(0))))
        for session in range(sizes.sessions):
            name = f"s{session}"
            working.recent(name, READ)  # the first read goes to the table
            awake.append(seconds(lambda w=working, n=name: w.recent(n, READ)))
        for session in range(min(10, sizes.sessions)):
            working.append_many(f"s{session}", [Message(content="one more", role="assistant")])
            flushes.append(seconds(lambda w=working, n=f"s{session}": w.flush(n)))
        sides.close()
    emit(
        bench="working_settle",
        sessions=sizes.sessions,
        messages_each=sizes.messages,
        hibernate_s=round(statistics.median(hibernations), 4),
        read_of_hibernating_p50_ms=round(statistics.median(awake) * 1e3, 4),
        flush_p50_ms=round(statistics.median(flushes) * 1e3, 2),
        flush_of=sizes.messages + 1,
        n=sizes.settled,
    )


def hot(sides: Sides, sizes: Sizes) -> None:
    """A user's top memories through the hot tier while others write, against the store's list."""
    tier, handle, texts = HotTier(), sides.store.scoped(user="hot"), iter(sides.texts)
    handle.add_many([f"a fact of {n} words" for n in range(100)])

    def load() -> tuple[Any, ...]:
        return tuple(handle.list(limit=20))

    def warm(_: int) -> float:
        sides.store.add(next(texts), user="other")
        return seconds(lambda: tier.read(handle, "top", load))

    taken = interleaved(max(5, sizes.runs // 8), warm, once(lambda _: load()))
    told("hot_read_while_others_write", taken, "list", hit_rate=round(tier.figures.rate, 3))
    taken = interleaved(
        sizes.runs, once(lambda _: tier.read(handle, "top", load)), once(lambda _: load())
    )
    told("hot_read", taken, "list")


def main(arguments: list[str] | None = None) -> None:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--place", type=Path, default=None)
    given: Any = parser.parse_args(arguments)
    sizes = QUICK if given.quick else Sizes()
    with tempfile.TemporaryDirectory(dir=given.place) as folder:
        place = Path(folder)
        for durability in ("process", "power"):  # on stores of their own, which many commits fray
            sides = Sides.begun(place / f"write-{durability}", sizes, durability=durability)
            write(sides, sizes, durability=durability)
            sides.close()
        sides = Sides.begun(place / "read", sizes, durability="process")
        read(sides, sizes)
        context(sides, sizes)
        hot(sides, sizes)
        sides.close()
        settle(place, sizes)


if __name__ == "__main__":
    main()
