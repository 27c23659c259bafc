"""`lmem index`: what it says of the index that it builds."""

from __future__ import annotations

import json


def test_show_says_that_there_is_none(lmem, store):
    assert "searched exactly" in lmem("index", "show").out
    assert lmem("index", "show", "--format", "json").json == {"index": None}
    assert lmem("index", "recall", "--format", "json").json["exact"] is True


def test_build_reports_kind_trainer_reason_size_coverage_and_recall(lmem, store, version):
    before = version()
    done = lmem("index", "build", "--kind", "ivf_flat", "--format", "json")
    assert done.code == 0, done.err
    made = done.json
    assert (made["kind"], made["trainer"], made["rows"]) == ("IVF_FLAT", "lance", 6)
    assert (made["reason"], made["coverage"]) == ("it was asked for", 1.0)
    assert (made["version"], version()) == (before + 1, before + 1)
    assert made["bytes"] > 0
    assert made["recall"]["recall"] == 1.0
    assert set(made["seconds"]) == {"write", "check"}


def test_a_person_reads_recall_and_reason_in_one_line_each(lmem, store):
    out = lmem("index", "build").out
    assert "recall@10" in out
    assert "1.0000 of 6 queries" in " ".join(out.split())
    assert "reason" in out
    shown = lmem("index", "show").out
    assert "coverage" in shown
    assert "proposal" not in shown  # nothing to do


def test_show_and_recall_read_the_index_of_a_version(lmem, store):
    lmem("index", "build", "--kind", "ivf_sq")
    assert lmem("index", "show", "--format", "quiet").out == "IVF_SQ\n"
    assert lmem("index", "show", "--at", "start", "--format", "quiet").out == "none\n"
    shown = lmem("index", "show", "--format", "json").json
    assert (list(shown), shown["index"]["kind"]) == (["index"], "IVF_SQ")
    found = lmem("index", "recall", "--user", "ann", "--format", "json").json
    assert (found["sample"], found["exact"]) == (4, False)


def test_what_cannot_be_built_is_said_in_the_words_of_the_command_line(lmem, store):
    done = lmem("index", "build", "--trainer", "nobody")
    assert done.code == 2
    assert "--trainer 'nobody'; there are: lance, torch" in done.err
    done = lmem("index", "build", "--kind", "ivf_pq")
    assert done.code == 2
    assert "6 vectors are too few" in done.err


def test_an_index_is_no_entry_of_the_log_of_memories(lmem, store):
    before = lmem("log", "--format", "json").json
    lmem("index", "build")
    assert lmem("log", "--format", "json").json == before
    assert (
        json.loads(lmem("log", "--upkeep", "--format", "jsonl").out.splitlines()[0])["operation"]
        == "index"
    )


def test_upkeep_builds_the_index_that_was_asked_for_or_none(lmem, store):
    """Six memories need none; that the kind is known is seen all the same."""
    for kind in ("none", "auto", "ivf_flat"):
        done = lmem("optimize", "--index", kind, "--format", "json")
        assert done.code == 0, done.err
        assert done.json["index_refused"] == ""
        assert lmem("index", "show", "--format", "json").json == {"index": None}
    done = lmem("optimize", "--index", "hnsw")
    assert done.code == 2
    assert "--index 'hnsw'; there are: auto, ivf_pq" in done.err
