"""Recording, listing and forgetting queries; usage; decay in a search and in retire."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.delenv("LMEM_RECORD_QUERIES", raising=False)


@pytest.fixture
def recorded(lmem, store):
    """Three queries: of ann, of bob, and one that finds nothing."""
    for words in (["kettle", "--user", "ann"], ["pears", "--user", "bob"], ["zebra"]):
        assert lmem("search", *words, "--mode", "text", "--record").code == 0


def asked(lmem, *words):
    return [query["query"] for query in lmem("queries", *words, "--format", "jsonl").lines]


def test_a_search_is_recorded_when_it_is_asked_for(lmem, store, version):
    before = version()
    assert lmem("search", "kettle", "--mode", "text").code == 0
    assert not (store / "queries.lance").exists()
    done = lmem("search", "kettle", "--mode", "text", "--record", "--format", "quiet")
    (query,) = lmem("queries", "--format", "json").json
    assert (query["query"], query["mode"], query["k"]) == ("kettle", "text", 10)
    assert query["memory_ids"] == done.out.split()
    assert version() == before


def test_the_environment_records_every_search(lmem, store, monkeypatch):
    monkeypatch.setenv("LMEM_RECORD_QUERIES", "1")
    lmem("search", "kettle", "--mode", "text")
    past = lmem("search", "kettle", "--mode", "text", "--at", "start")
    assert (past.code, past.err) == (0, "note: a search of the past is not recorded\n")
    assert asked(lmem) == ["kettle"]
    monkeypatch.setenv("LMEM_RECORD_QUERIES", "0")
    lmem("search", "train", "--mode", "text")
    assert asked(lmem) == ["kettle"]


def test_what_is_recorded_has_no_secret(lmem, store):
    lmem("search", "kettle of joe.bloggs@example.com", "--mode", "text", "--record")
    assert asked(lmem) == ["kettle of [email]"]


def test_a_search_that_cannot_be_recorded_says_so_and_answers(lmem, store):
    import lancedb

    lancedb.connect(store).create_table("queries", [{"other": 1}])
    done = lmem("search", "kettle", "--mode", "text", "--record")
    assert (done.code, "kettle" in done.out) == (0, True)
    assert "note: queries were not recorded" in done.err


def test_queries_are_listed_newest_first_and_chosen(lmem, recorded, ids):
    assert asked(lmem) == ["zebra", "pears", "kettle"]
    assert asked(lmem, "--limit", "1") == ["zebra"]
    assert asked(lmem, "--user", "ann") == ["kettle"]
    assert asked(lmem, "--since", "2999-01-01") == []
    assert asked(lmem, "--until", "2000-01-01") == []
    assert asked(lmem, "--memory", "k4") == ["pears"]
    assert asked(lmem, "--memory", ids[4]) == ["pears"]
    human = lmem("queries", "--user", "bob").out
    assert "user=bob" in human
    assert "pears" in human


def test_a_query_of_a_memory_that_was_deleted_is_found_by_its_id(lmem, recorded, ids):
    lmem("delete", "k4", "--yes")
    assert asked(lmem, "--memory", ids[4]) == ["pears"]


def test_an_empty_log_says_so(lmem, store):
    done = lmem("queries")
    assert (done.code, done.err) == (0, "no recorded query\n")


def test_forgetting_asks_first(lmem, recorded):
    words = ("queries", "--forget", "--user", "ann")
    refused = lmem(*words)
    assert (refused.code, refused.out, "--yes" in refused.err) == (2, "", True)
    shown = lmem(*words, "--dry-run", "--format", "json")
    assert [query["query"] for query in shown.json] == ["kettle"]
    declined = lmem(*words, stdin="n\n", terminal=True)
    assert (declined.code, "forget 1 query for good? [y/N]" in declined.err) == (2, True)
    assert len(asked(lmem)) == 3
    done = lmem(*words, "--yes", "--format", "json")
    assert (done.code, done.json) == (0, {"forgotten": 1})
    assert asked(lmem) == ["zebra", "pears"]


def test_forgotten_text_is_in_no_file(lmem, recorded, store):
    assert lmem("queries", "--forget", "--yes").code == 0
    files = [f.read_bytes() for f in (store / "queries.lance").rglob("*") if f.is_file()]
    assert not any(b"zebra" in data or b"kettle" in data for data in files)
    assert lmem("queries", "--forget", "--yes", "--format", "json").json == {"forgotten": 0}


def test_a_long_plan_is_cut_for_people(lmem, store):
    from lance_memory import QueryRecording

    handle = MemoryStore.open(store, record_queries=QueryRecording(redact=None))
    handle.search_many([f"question {n}" for n in range(25)], mode="text")
    handle.query_log.flush()
    shown = lmem("queries", "--forget", "--dry-run").out
    assert "... and 5 more" in shown
    assert len(asked(lmem)) == 25


def test_a_limit_is_for_the_list(lmem, recorded):
    done = lmem("queries", "--forget", "--limit", "1", "--yes")
    assert (done.code, "--forget removes all that pass" in done.err) == (2, True)


def test_usage_counts(lmem, recorded):
    found = lmem("usage", "--format", "json").json
    assert (found["queries"], found["without_hits"]) == (3, 1)
    assert found["hit_rate"] == pytest.approx(2 / 3)
    assert [m["recalls"] for m in found["memories"]] == [1, 1, 1, 0, 0]
    human = lmem("usage").out
    assert "3 queries, 67% found something, 1.0 hits on average; 2 of 5 memories" in human
    never = lmem("usage", "--never", "--format", "jsonl").lines
    assert [m["recalls"] for m in never] == [0, 0]
    assert len(lmem("usage", "--limit", "1", "--format", "quiet").out.split()) == 1
    scoped = lmem("usage", "--user", "bob", "--format", "json").json
    assert (scoped["queries"], len(scoped["memories"])) == (1, 1)


def test_people_see_what_was_recalled_and_no_more_than_fits(lmem, recorded, store, ids):
    lines = lmem("usage").out.splitlines()
    (head,) = (place for place, line in enumerate(lines) if line.startswith("MEMORY"))
    assert lines[head].split()[-1] == "CONTENT"
    assert sorted(line.split()[0] for line in lines[head + 1 :]) == ["k0", "k1", "k2", "k3", "k4"]
    assert any(
        line.startswith("k2") and line.endswith("  the train leaves at nine") for line in lines
    )
    MemoryStore.open(store).add_many([f"note number {n}" for n in range(18)])
    shown = lmem("usage").out
    assert (shown.count("note number"), "... and 3 more" in shown) == (15, True)
    assert lmem("usage", "--limit", "23").out.count("note number") == 18
    assert len(lmem("usage", "--format", "jsonl").lines) == 23
    assert max(map(len, shown.splitlines())) <= 80


def test_a_search_ranks_by_strength(lmem, store):
    (hit,) = lmem("search", "kettle", "--k", "1", "--decay", "30d", "--format", "json").json["hits"]
    assert 0 < hit["parts"]["decay"] < 0.5
    floored = lmem(
        "search", "kettle", "--k", "1", "--decay", "1d", "--floor", "0.5", "--format", "json"
    )
    assert floored.json["hits"][0]["parts"]["decay"] == pytest.approx(0.25, abs=1e-3)
    done = lmem("search", "kettle", "--decay", "0s")
    assert (done.code, "--decay '0s' is no age" in done.err) == (2, True)


WEAK = ("retire", "--user", "ann", "--below", "0.2", "--decay", "30d", "--floor", "0")


def test_what_faded_is_retired_after_it_was_shown(lmem, store, version, ids):
    before = version()
    lmem("update", "k1", "--tag", "evergreen", "--reason", "keep")
    refused = lmem(*WEAK)
    assert (refused.code, refused.out) == (2, "")
    shown = lmem(*WEAK, "--dry-run", "--format", "json").json
    assert [m["id"] for m in shown["memories"]] == [ids[0], ids[2], ids[3]]
    assert shown["considered"] == 4
    assert shown["memories"][0]["reason"].endswith("below 0.20")
    human = lmem(*WEAK, "--dry-run").out
    assert [line.split()[0] for line in human.splitlines()] == ["MEMORY", "k0", "k2", "k3"]
    assert "the train to Porto" in human
    assert version() == before + 1
    done = lmem(*WEAK, stdin="y\n", terminal=True)
    assert (done.code, "retire 3 memories? [y/N]" in done.err, version()) == (0, True, before + 2)
    gone = lmem("get", ids[0], "--format", "json").json
    assert (gone["state"], gone["state_reason"].startswith("strength 0.")) == ("retired", True)
    assert lmem("revert", str(version()), "--yes").code == 0
    assert len(lmem("list", "--user", "ann", "--format", "quiet").out.split()) == 4


def test_nothing_weak_writes_nothing(lmem, store, version):
    before = version()
    done = lmem("retire", "--user", "ann", "--below", "0", "--decay", "30d", "--yes")
    assert (done.code, version()) == (0, before)
    assert "none of 4 memories is weaker than 0" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--below", "0.2"], "--below needs --decay"),
        (["--decay", "30d"], "go with --below"),
        (["--below", "0.2", "--decay", "0s"], "--decay '0s' is no age"),
        (["k0", "--below", "0.2", "--decay", "30d"], "not both"),
        (["--below", "2", "--decay", "30d", "--user", "ann"], "--below 2.0"),
        (["--below", "0.2", "--decay", "30d"], "without a scope"),
    ],
)
def test_what_makes_no_sense_is_refused(words, message, lmem, store, version):
    before = version()
    done = lmem("retire", *words, "--yes")
    assert (done.code, message in " ".join(done.err.split())) == (2, True), done.err
    assert version() == before
