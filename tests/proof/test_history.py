"""Every version stays what it was when it was made: by number, by tag, by time, in any time zone."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from proof_kit import START, Clock, child_environment, contents, open_store
from store_model import differing

from lance_memory import ConflictError, ConsolidateOptions, InvalidInputError, NotFoundError

CHILD = str(Path(__file__).with_name("proof_child.py"))
SOAKS = "SOAK_SECONDS" in os.environ
STEPS = 500 if SOAKS else 85
"""How long the life of the store is that most tests here look back at."""

pytestmark = [pytest.mark.soak] if SOAKS else []

WORDS = ("apple", "pear", "kiwi", "mango", "lemon", "plum")


class History:
    """A store that has lived through all verbs, and what each version held when it was made."""

    def __init__(self, path, seed, steps):
        self.random = random.Random(seed)
        self.clock = Clock(START)
        self.store = open_store(path, self.clock, upkeep=None)  # every version is read again
        self.recorded, self.moments, self.tags, self.verbs = {}, [], {}, {}
        self.note()
        self.made = self.store.version
        for _ in range(steps):
            self.clock.tick()
            verb = self.random.choice(self.VERBS)
            try:
                getattr(self, verb)()
                self.verbs[verb] = self.verbs.get(verb, 0) + 1
            except (ConflictError, InvalidInputError, NotFoundError):
                pass  # refused: nothing was written
            self.note()
            if self.store.version > self.made:  # the engine's own time is on what is older
                self.moments.append((self.clock.now, self.store.version))
            if self.random.random() < 0.1:
                name = f"t{len(self.tags)}"
                self.tags[name] = self.store.tag(name)

    def note(self):
        known = max(self.recorded, default=0)
        for version in range(known + 1, self.store.version + 1):
            self.recorded[version] = contents(self.store)

    def text(self):
        return " ".join(self.random.choices(WORDS, k=3)) + f" {self.random.randrange(500)}"

    def ids(self, count=1):
        there = sorted(self.recorded[max(self.recorded)])
        return self.random.sample(there, min(count, len(there)))

    VERBS = (
        *("add", "add", "add", "add_many", "add_many", "upsert", "upsert", "update", "update"),
        *("supersede", "retire", "unretire", "delete", "consolidate", "rollback", "revert"),
        *("revert", "optimize"),
    )

    def add(self):
        at = self.clock.now - timedelta(days=self.random.randrange(9))
        self.store.add(self.text(), user=self.random.choice(("ann", "bob")), event_at=at)

    def add_many(self):
        self.store.add_many([{"content": self.text(), "tags": ["batch"]} for _ in range(6)])

    def upsert(self):
        self.store.upsert(self.text(), key=self.random.choice("abc"), metadata={"n": 0})

    def update(self):
        self.attempt(lambda ids: self.store.update(ids[0], content=self.text()))

    def supersede(self):
        self.attempt(lambda ids: self.store.supersede(ids, self.text()), 2)

    def retire(self):
        self.attempt(self.store.retire, 2)

    def unretire(self):
        retired = [m.id for m in self.store.list(states="retired")]
        if retired:
            self.store.unretire(retired[:1])

    def delete(self):
        self.attempt(self.store.delete, 2)

    def attempt(self, verb, count=1):
        ids = self.ids(count)
        if ids:
            verb(ids)

    def consolidate(self):
        self.store.consolidate(
            ConsolidateOptions(min_similarity=0.6, max_dropped=1.0, max_size=4), guard=None
        )

    def rollback(self):
        self.store.rollback(self.random.choice(sorted(self.recorded)[-10:]))

    def revert(self):
        self.store.revert(self.random.choice(sorted(self.recorded)[-4:]))

    def optimize(self):
        self.store.optimize(vector_index_from=20)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    made = History(tmp_path_factory.mktemp("history") / "store", seed=11, steps=STEPS)
    assert len(made.recorded) >= 0.8 * STEPS
    assert made.verbs.keys() == set(History.VERBS), "every verb has written"
    return made


def test_at_a_version_is_what_was_recorded_when_it_was_made(history):
    """For every version, upkeep's too."""
    for version, rows in history.recorded.items():
        assert contents(history.store.at(version)) == rows, version


def test_at_a_tag_is_what_was_recorded(history):
    """And `tags` names them all."""
    assert history.store.tags() == history.tags
    assert len(history.tags) > 5
    for name, version in history.tags.items():
        view = history.store.at(name)
        assert (view.version, contents(view)) == (version, history.recorded[version])


def test_at_a_moment_is_what_was_recorded_last_until_then(history):
    """At the moment of a write it counts already; half a second later nothing has changed."""
    for moment, version in history.moments[::4]:
        for later in (timedelta(0), timedelta(seconds=0.5)):
            rows = contents(history.store.at(moment + later))
            assert rows == history.recorded[version], (moment, version)


def test_diff_is_the_difference_of_what_was_recorded(history):
    """For random pairs in either order: ids, states, texts of both sides."""
    chance = random.Random(3)
    for _ in range(40):
        a, b = chance.choices(sorted(history.recorded), k=2)
        before, after = history.recorded[a], history.recorded[b]
        found = history.store.diff(a, b)
        assert (found.before, found.after) == (a, b)
        changed = differing(before, after) & before.keys() & after.keys()
        assert {m.id: m.content for m in found.inserted} == {
            i: after[i]["content"] for i in after.keys() - before.keys()
        }
        assert {m.id: m.content for m in found.removed} == {
            i: before[i]["content"] for i in before.keys() - after.keys()
        }
        assert {c.after.id: (c.before.state, c.after.state) for c in found.updated} == {
            i: (before[i]["state"], after[i]["state"]) for i in changed
        }


def test_the_log_counts_what_was_recorded(history):
    """Each entry's inserted, updated and deleted are the difference to the version before."""
    for entry in history.store.log(upkeep=True):
        before = history.recorded.get(entry.version - 1, {})
        after = history.recorded[entry.version]
        both = before.keys() & after.keys()
        assert (entry.inserted, entry.updated, entry.deleted) == (
            len(after.keys() - before.keys()),
            len(differing(before, after) & both),
            len(before.keys() - after.keys()),
        ), entry
        assert not (entry.upkeep and differing(before, after))


def test_the_history_frame_played_up_to_a_version_is_what_was_recorded(history):
    """Every change is told once, at the version that made it, with the states on both sides."""
    frame = history.store.history_frame()
    played = {}
    told = frame.partition_by("version", as_dict=True)
    for version, rows in sorted(history.recorded.items()):
        for row in told.get((version,), frame[:0]).to_dicts():
            was = played.pop(row["id"], None)
            assert (was and was[0]) == row["state_before"], row
            if row["change"] != "removed":
                played[row["id"]] = (row["state_after"], row["revision"])
        assert played == {i: (r["state"], r["revision"]) for i, r in rows.items()}, version
    assert frame["version"].is_sorted()
    assert "kept" not in frame["change"].to_list()  # the very first version is there


def test_the_versions_frame_counts_the_memories_of_each_version(history):
    frame = history.store.versions_frame()
    assert dict(frame.select("version", "memories").iter_rows()) == {
        version: len(rows) for version, rows in history.recorded.items()
    }
    tags = {t: v for v, names in frame.select("version", "tags").iter_rows() for t in names}
    assert tags == history.tags


def test_a_process_in_los_angeles_sees_the_same(history):
    """The time zone of the process changes no answer (C25)."""
    moments = [moment.isoformat() for moment, _ in history.moments[::15]]
    said = [
        subprocess.run(
            [sys.executable, CHILD, "look", history.store.uri, json.dumps(moments)],
            env=child_environment(TZ=zone),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone in ("UTC", "America/Los_Angeles")
    ]
    here, there = (json.loads(text) for text in said)
    assert here["zone"] != there["zone"], "the zone was not taken"
    assert here["found"] == there["found"]
    numbers = [version for version, _, _ in here["found"]]
    expected = [version for _, version in history.moments[::15]]
    assert [history.recorded[v] for v in numbers[-len(moments) :]] == [
        history.recorded[v] for v in expected
    ]


def test_tags_keep_their_versions_through_clean_up(tmp_path):
    """Everything else goes: at() then says so; tags, diff, rollback and search go on (C28)."""
    made = History(tmp_path / "store", seed=5, steps=45)
    store = made.store
    kept = {*made.tags.values()}
    assert kept
    store.optimize(vector_index_from=20, clean_older_than=timedelta(0))
    made.note()
    kept.add(store.version)
    assert {entry.version for entry in store.log(upkeep=True) if entry.readable} == kept
    for version, rows in made.recorded.items():
        if version in kept:
            assert contents(store.at(version)) == rows
        else:
            with pytest.raises(NotFoundError):
                store.at(version)
    for version in sorted(kept):
        store.rollback(version)
        assert contents(store) == made.recorded[version]
        store.search("apple", k=10)


def test_a_slow_writer_is_not_seen_before_its_time_nor_hides_others(tmp_path):
    """Planned at 12:00:10, durable after a write of 12:00:30: at 12:00:15 neither is there."""
    clock = Clock()
    store = open_store(tmp_path / "store", clock)
    store.add("first")
    slow = open_store(tmp_path / "store", Clock(START + timedelta(seconds=10)))
    clock.tick(30)
    store.add("fast")
    slow.add("slow")
    found = store.at(START + timedelta(seconds=15)).list(states="any")
    assert [m.content for m in found] == ["first"]
    assert len(store.at(clock.now).list()) == 3


def test_upkeep_does_not_bring_later_writes_into_an_earlier_moment(tmp_path):
    """The engine stamps upkeep with its own clock, which may be behind the store's."""
    clock = Clock(datetime(2050, 1, 1, tzinfo=UTC))
    store = open_store(tmp_path / "store", clock)
    store.add("first")
    before = clock.now
    clock.tick()
    store.add("second")
    store.optimize()
    assert [m.content for m in store.at(before).list()] == ["first"]


def test_upkeep_and_log_leave_every_version_readable(tmp_path):
    """A compaction that remaps indices can be listed and looked at like any version."""
    store = open_store(tmp_path / "store")
    ids = [store.add(f"apple {n}").id for n in range(4)]
    store.optimize(vector_index_from=2)
    store.delete(ids[:2])
    store.add("pear")
    store.optimize(vector_index_from=2)
    entries = store.log(upkeep=True)
    assert [e.version for e in entries] == list(range(store.version, 0, -1))
    assert {e.operation for e in entries if e.upkeep} <= {"create", "index", "compact"}
    assert [store.at(e.version).version for e in entries] == [e.version for e in entries]
