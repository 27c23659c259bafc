"""The measuring scripts run, and say what they promise to say."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from bench import overhead

pytestmark = pytest.mark.slow

FIELDS = {
    *("bench", "ours_ms", "raw_ms", "ratio", "n", "rows", "bar", "met"),
    *("python", "pylance", "pyarrow", "cores", "seed"),
}


@pytest.fixture(scope="module")
def lines():
    with redirect_stdout(StringIO()) as said:
        overhead.main(["--quick"])
    return [json.loads(line) for line in said.getvalue().splitlines()]


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
