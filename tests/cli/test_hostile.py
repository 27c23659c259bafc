"""Case C13: a hostile value matches only itself, and no option gives a traceback."""

from __future__ import annotations

import pytest
from command_tree import commands

HOSTILE = {
    "sql": "x' OR '1'='1",
    "quote": '"',
    "percent": "%",
    "underscore": "_",
    "newline": "a\nb",
    "nul": "a\0b",
    "backtick": "`id`; DROP TABLE memories --",
    "long": "x" * 1_000_000,
    "surrogate": "\udcff",
    "escape": "\x1b[31mred",
    "markup": "[bold]b[/bold] :smile:",
    "path": "../../etc/passwd",
    "digits": "9" * 5000,
    "number": "18446744073709551616",
    "float": "nan",
    "infinite": "1e999",
    "empty": "",
    "blank": "   ",
    "json": "[" * 100_000,
    "rtl": "\u202etxt",
}
ARGUMENTS = {
    "add": ["x"], "import": ["-"], "upsert": ["x", "--key", "k"], "update": ["k0"],
    "supersede": ["k0", "--with", "y"], "retire": ["k0"], "unretire": ["k0"], "delete": ["k0"],
    "get": ["k0"], "search": ["x", "--mode", "text"], "related": ["k0"], "lineage": ["k0"],
    "sql": ["select 1"], "export": ["COPY"], "apply": ["-"], "diff": ["3"], "untag": ["start"],
    "checkout": ["3", "COPY"], "rollback": ["3"], "revert": ["4"], "branch": ["side"],
    "merge": ["side"],
    "reembed": ["--model", "minilm"],
}  # fmt: skip

SKIPPED = {"--help", "--format", "--dry-run", "--yes", "--delete", "--upkeep", "--move"}
HEAVY = {"add", "upsert", "supersede", "optimize", "checkout", "branch", "tag", "index build"}


def options():
    """Every valued option, once: with the first command that can run without embedding."""
    seen = set()
    for name, command in commands().items():
        for param in command.params if name not in HEAVY else ():
            flags = [flag for flag in param.opts if flag.startswith("--")]
            valued = flags and not getattr(param, "is_flag", False)
            if valued and flags[0] not in SKIPPED | seen:
                seen.add(flags[0])
                yield name, flags[0]


@pytest.mark.parametrize(("name", "flag"), list(options()))
def test_no_option_gives_a_traceback(name, flag, lmem, store, tmp_path):
    for value in ("x' OR '1'='1", "a\nb\0", "\udcff", "9" * 30, "[" * 5000, ""):
        if flag == "--plan":
            value = str(tmp_path / "no" / "such") + value
        words = [str(tmp_path / "copy") if w == "COPY" else w for w in ARGUMENTS.get(name, [])]
        done = lmem(
            *name.split(), *words, f"{flag}={value}", "--dry-run" if name == "consolidate" else "--"
        )
        assert done.code in {0, 1, 2, 3, 4, 5}, done.err
        assert "unexpected" not in done.err, done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "name",
    ["get", "related", "lineage", "retire", "untag", "sql", "rollback", "diff", "import", "apply"],
)
def test_no_argument_gives_a_traceback(name, value, lmem, store):
    done = lmem(name, "--", value)
    assert done.code in {1, 2, 3, 4, 5}
    assert "unexpected" not in done.err, done.err
    assert len(done.err.splitlines()) == 1
    assert len(done.err) < 2_000


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_filter_matches_only_itself(value, lmem, store):
    for flag in ("--user", "--actor", "--key", "--tag", "--source"):
        done = lmem("list", flag, value, "--format", "quiet")
        assert done.out == "", flag
        assert "unexpected" not in done.err
    assert lmem("list", "--metadata", f"place={value}", "--format", "quiet").out == ""
    assert lmem("list", "--metadata", f"{value}=1", "--format", "quiet").out == ""


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_query_never_fails_unexpectedly(value, lmem, store):
    done = lmem("search", "--mode", "text", "--", value)
    assert done.code in {0, 2}, done.err
    assert "unexpected" not in done.err


STORABLE = ["sql", "quote", "percent", "underscore", "newline", "escape", "markup", "rtl"]


@pytest.mark.parametrize("case", STORABLE)
def test_a_hostile_value_is_stored_and_found_as_it_is(case, lmem, store):
    value = HOSTILE[case]
    added = lmem("add", value, "--user", value, "--key", value, "--tag", value,
                 "--metadata", f"m={value}", "--format", "quiet")  # fmt: skip
    assert added.code == 0, added.err
    for words in (["--user", value], ["--key", value], ["--tag", value]):
        found = lmem("list", *words, "--format", "jsonl").lines
        assert [m["content"] for m in found] == [value]
    for words in (["list", "--user", value], ["get", added.out.strip()], ["log"], ["diff", "4"]):
        assert "\x1b" not in lmem(*words).out


def test_names_of_tags_and_branches_are_checked(lmem, store):
    for value in HOSTILE.values():
        for verb in ("tag", "branch"):
            done = lmem(verb, "--", value)
            assert "unexpected" not in done.err, (verb, value[:40], done.err)
