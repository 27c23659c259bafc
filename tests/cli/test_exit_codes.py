"""What a script reads: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 rejected."""

from __future__ import annotations

import pytest

CASES = {
    "no such memory": (["get", "zzz"], 3),
    "no such version": (["list", "--at", "99"], 3),
    "no such tag": (["list", "--at", "nothing"], 3),
    "a time before the store": (["list", "--at", "1999-01-01"], 3),
    "no such branch": (["list", "--branch", "nothing"], 3),
    "no such branch to delete": (["branch", "nothing", "--delete", "--yes"], 3),
    "no such tag to remove": (["untag", "nothing", "--yes"], 3),
    "no such store": (["list", "--store", "/nowhere/at/all"], 3),
    "no such file": (["import", "/nowhere/at/all.jsonl"], 3),
    "no such plan": (["apply", "/nowhere/at/all.json", "--yes"], 3),
    "no such command": (["fly"], 2),
    "no such option": (["list", "--fly"], 2),
    "a missing argument": (["get"], 2),
    "no such format": (["list", "--format", "xml"], 2),
    "an ambiguous prefix": (["get", "0000000"], 2),
    "no such state": (["list", "--state", "gone"], 2),
    "no such kind": (["list", "--kind", "gone"], 2),
    "no such mode": (["search", "x", "--mode", "gone"], 2),
    "no such way to cluster": (["consolidate", "--by", "gone"], 2),
    "a blank query": (["search", "  "], 2),
    "a negative k": (["search", "x", "--k", "-1"], 2),
    "a negative limit": (["list", "--limit", "-1"], 2),
    "a time that is none": (["list", "--since", "tomorrow"], 2),
    "a duration that is none": (["consolidate", "--window", "long"], 2),
    "metadata that is none": (["list", "--metadata", "n"], 2),
    "a filter without a scope": (["retire", "--kind", "semantic", "--yes"], 2),
    "names and filters": (["delete", "k0", "--kind", "semantic", "--yes"], 2),
    "an unknown suffix": (["import", "/nowhere/at/all.txt"], 2),
    "nothing to change": (["update", "k0"], 2),
    "a query that is none": (["sql", "select nothing from nowhere"], 2),
    "a version that changed nothing": (["revert", "2", "--yes"], 2),
    "a tag that is taken": (["tag", "start"], 4),
    "a branch that is taken": (["branch", "side"], 4),
    "a key that is taken": (["update", "k0", "--key", "k1"], 4),
    "not retired": (["unretire", "k0"], 4),
    "a blank memory": (["add", "  "], 5),
    "a score out of range": (["add", "x", "--importance", "7"], 5),
    "an unknown kind": (["add", "x", "--kind", "gone"], 5),
    "a file in the place of a store": (["list", "--store", __file__], 1),
}


@pytest.mark.parametrize("case", CASES)
def test_each_failure_has_its_code_and_one_line(case, lmem, store, version):
    words, code = CASES[case]
    before = version()
    done = lmem(*words)
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 1
    assert "unexpected" not in done.err
    assert version() == before


def test_no_arguments_give_the_help(lmem):
    done = lmem()
    assert done.code == 0
    assert "Commands:" in done.out


def test_a_usage_error_points_to_the_help(lmem):
    assert "lmem list --help" in lmem("list", "--fly").err
