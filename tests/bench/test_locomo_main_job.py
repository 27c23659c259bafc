"""The main job on real conversations: every law of the store. `bench/locomo.py` takes all ten."""

import json
from dataclasses import replace

import pytest

from bench import consolidation
from bench.locomo import DATA_VARIABLE, PASSES, TUNING, data_path, load, run

SOME = TUNING[:3]
DATA = data_path()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not DATA.exists(),
        reason=f"LoCoMo is not at {DATA}; it is not ours to ship: set {DATA_VARIABLE} to its file",
    ),
]


def test_real_conversations_are_consolidated_looked_back_at_reverted_and_rolled_back(tmp_path):
    corpus = load(DATA)
    assert len(corpus.turns) == 5_882
    corpus = replace(
        corpus,
        turns=[turn for turn in corpus.turns if turn["user"] in SOME],
        questions=[one for one in corpus.questions if one.conversation in SOME],
    )
    turns = len(corpus.turns)
    report = run(tmp_path / "store", corpus)
    assert (report.turns, report.stored, report.stored_again) == (turns, turns, 0)
    assert report.visible == turns
    assert report.recall.questions == 2 * len(SOME)
    assert report.recall.hit >= 0.25  # 0.35 was seen: a floor against breakage, not an aim
    assert [one.name for one in report.passes] == list(PASSES)
    for one in report.passes:
        assert one.visible_before == turns, one.name
        assert one.visible_after == turns - one.rows_saved, one.name
        assert one.superseded == one.rows_saved + one.clusters, one.name
        assert one.sources_hidden, one.name
        assert one.sources_related, one.name
        assert one.looking_back_equal, one.name
        assert one.revert_equal, one.name
        assert one.rollback_equal, one.name
    saved = [one.rows_saved for one in report.passes]
    assert saved == sorted(saved)
    assert saved[-1] > 30


def test_consolidation_saves_rows_and_keeps_recall(capsys):
    consolidation.main(["--conversations", "1", "--floors", "0.65"])
    before, *passes = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [(one["transform"], one["guard"]) for one in passes] == [
        ("extractive", "guarded"),
        ("extractive", "unguarded"),
        ("latest", "guarded"),
        ("latest", "unguarded"),
    ]
    best = passes[0]
    assert best["rows_saved"] >= 40  # 60 and more were seen
    assert best["recall_after"]["all"] >= before["recall"]["all"] - 1.0
    assert passes[2]["rows_saved"] < passes[3]["rows_saved"]  # the guard holds some back
