"""The measuring scripts run, and say what they promise to say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIELDS = {
    *("bench", "ours_ms", "raw_ms", "ratio", "n", "rows", "bar", "met"),
    *("python", "pylance", "pyarrow", "cores", "seed"),
}


@pytest.fixture(scope="module")
def lines():
    command = [sys.executable, ROOT / "bench" / "overhead.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_measurement_of_the_overhead_is_one_json_line_with_all_fields(lines):
    names = [line["bench"] for line in lines]
    assert len(set(names)) == len(names)
    assert (
        {
            "bulk_add_into_empty",
            "bulk_add_into_filled",
            "single_add_after_optimize",
            "single_add_after_8_adds",
            "single_add_first_of_a_handle",
            "get_by_id",
            "supersede_20_against_merge",
            "supersede_20_against_read_and_merge",
        }
        <= set(names)
        <= {*names, "lmem_help"}
    )
    assert all(line.keys() >= FIELDS for line in lines)


def test_a_measurement_says_whether_it_met_its_bar(lines):
    for line in lines:
        assert line["ours_ms"] > 0
        assert line["raw_ms"] > 0
        measured = line["ours_ms"] / 1e3 if line.get("bar_is") == "seconds" else line["ratio"]
        if abs(measured - line["bar"]) > 0.01:  # the numbers are rounded for print
            assert line["met"] == (measured <= line["bar"])
