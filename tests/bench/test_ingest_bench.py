"""The write path is measured on real conversations, and a replay of them changes nothing."""

import json

import pytest

from bench import ingest
from bench.locomo import DATA_VARIABLE, data_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not data_path().exists(),
        reason=f"LoCoMo is not there; it is not ours to ship: set {DATA_VARIABLE} to its file",
    ),
]


def test_every_candidate_is_counted_and_a_replay_makes_nothing(capsys):
    ingest.main(["--conversations", "2", "--only", "counts", "queue"])
    counts, accept = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    decisions = counts["decisions"]
    passed = decisions["keep"]["kept"] + decisions["keep"]["pending"]
    assert sum(decisions["resolve"].values()) == passed > 50
    assert (counts["replay_made"], counts["rows_after_replay"]) == (0, counts["rows"])
    assert counts["visible"] + counts["pending"] <= counts["rows"]
    assert accept["jobs"] == 200
    assert accept["accept_ms"] < 50  # 0.3 was seen; a bar on a busy machine
