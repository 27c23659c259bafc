"""An agent's week is measured on real conversations: packs within budget, and better than vectors."""

import json

import pytest

from bench import agent_week
from bench.locomo import DATA_VARIABLE, data_path

OTHERS = ("vector_top_k", "vector_without_names", "latest_turns")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not data_path().exists(),
        reason=f"LoCoMo is not there; it is not ours to ship: set {DATA_VARIABLE} to its file",
    ),
]


def test_packs_keep_to_the_budget_and_hold_more_evidence_than_the_plain_vector(capsys):
    few = ["--conversations", "1", "--sessions", "4", "--every", "7"]
    agent_week.main([*few, "--budget", "900", "--by", "session"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    named = {line["bench"]: line for line in lines}
    observed = named["agent_week_observe"]
    assert (observed["failures"], observed["kinds"]["episodic"]) == ({}, observed["turns"])
    ways = [line for line in lines if "most_tokens" in line]
    assert len(ways) == 14  # seven ways, all questions and the only half
    assert all(line["most_tokens"] <= line["budget"] == 900 for line in ways)
    found = {way: named[f"agent_week_{way}_all"]["recall"] for way in ("pack", *OTHERS)}
    assert all(found["pack"] > found[way] for way in OTHERS), found
    recalls = [
        x["recall"] for x in lines if x["bench"] == "agent_week_curve" and x["way"] == "pack"
    ]
    assert recalls == sorted(recalls)
