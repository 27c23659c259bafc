"""--at: every read, by version, by tag, by time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lance_memory import MemoryStore


@pytest.fixture(params=["version", "tag", "time"])
def before(request, store):
    """Version 3, before the last memory was retired."""
    entry = next(e for e in MemoryStore.open(store).log() if e.version == 3)
    moment = (entry.at + timedelta(microseconds=1)).isoformat()
    return {"version": "3", "tag": "start", "time": moment}[request.param]


READS = {
    "get": (["get", "k5"], lambda a: a["state"] == "active"),
    "list": (["list"], lambda a: len(a) == 6),
    "search": (
        ["search", "green pears", "--mode", "text", "--k", "1"],
        lambda a: a["version"] == 3,
    ),
    "log": (["log"], lambda a: [e["version"] for e in a] == [3]),
    "related": (["related", "k5"], lambda a: a == []),
    "lineage": (["lineage", "k5"], lambda a: a["memory"]["state"] == "active"),
    "stats": (["stats"], lambda a: (a["version"], a["visible"]) == (3, 6)),
    "sql": (["sql", "select id from memories where state = 'retired'"], lambda a: a == []),
}


@pytest.mark.parametrize("name", READS)
def test_every_read_sees_the_store_as_it_was(name, before, lmem, store):
    words, holds = READS[name]
    done = lmem(*words, "--at", before, "--format", "json")
    assert done.code == 0, done.err
    assert holds(done.json)


def test_versions_tags_and_times_name_the_same_past(before, lmem, store):
    assert lmem("diff", before, "--format", "json").json["before"] == 3
    assert lmem("rollback", before, "--dry-run", "--format", "json").json["target"] == 3
    tagged = lmem("tag", "again", before, "--format", "json")
    assert tagged.json == {"tag": "again", "version": 3}


def test_a_tag_that_looks_like_a_date_is_a_tag(lmem, store):
    lmem("tag", "2025-01-01", "3")
    assert lmem("stats", "--at", "2025-01-01", "--format", "json").json["version"] == 3


def test_a_time_without_a_zone_is_utc(lmem, store):
    assert lmem("list", "--since", "2025-01-05T12:00:00", "--format", "quiet").out.split() == [
        "00000004-0000-7000-8000-000000000000"
    ]
