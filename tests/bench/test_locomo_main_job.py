"""The main job on ten real conversations: every law of the store, at their size."""

import json

import pytest

from bench import consolidation
from bench.locomo import DATA_VARIABLE, PASSES, data_path, load, run, some_of

DATA = data_path()

pytestmark = pytest.mark.skipif(
    not DATA.exists(),
    reason=f"LoCoMo is not at {DATA}; it is not ours to ship: set {DATA_VARIABLE} to its file",
)


@pytest.mark.parametrize(
    ("conversations", "turns", "most_saved"),
    [
        pytest.param(1, 419, 20, marks=pytest.mark.slow),
        pytest.param(10, 5_882, 100, marks=pytest.mark.soak),
    ],
)
def test_real_conversations_are_consolidated_looked_back_at_reverted_and_rolled_back(
    tmp_path, conversations, turns, most_saved
):
    report = run(tmp_path / "store", some_of(load(DATA), conversations=conversations))
    assert (report.turns, report.stored, report.stored_again) == (turns, turns, 0)
    assert report.visible == turns
    assert report.recall.questions == 2 * conversations
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
    assert saved[-1] > most_saved


@pytest.mark.slow
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
