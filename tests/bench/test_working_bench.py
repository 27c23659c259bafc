"""What a turn costs is measured beside SQLite and a commit, and says whether it met its bar."""

from __future__ import annotations

import json

import pytest

from bench import working

pytestmark = pytest.mark.slow


def test_writes_and_reads_are_measured_beside_sqlite_and_a_commit(capsys):
    working.main(["--quick"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["bench"] for line in lines] == [
        "working_write",
        "working_write",
        "working_read_after_a_write",
        "working_read_again",
        "working_read_by_a_new_process",
        "working_context",
        "hot_read_while_others_write",
        "hot_read",
        "working_settle",
    ]
    process, power, *reads = lines[:5]
    assert [line["durability"] for line in (process, power)] == ["process", "power"]
    for line in (process, *reads):
        assert line["ratio_to_sqlite"] > 0
        assert line.get("met") == (
            line["ours_p50_ms"] <= line["bar_ms"] if "bar_ms" in line else None
        )
    assert process["ratio_to_commit"] < 1
    assert all(line["hit_rate"] > 0.5 for line in lines if "hit_rate" in line)
