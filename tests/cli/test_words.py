"""What a person reads: short names, plans, tables, and errors in the words of the command line."""

from __future__ import annotations

import importlib.metadata

import pytest


def said(text: str) -> str:
    """Help without its line breaks."""
    return " ".join(text.split())


# -- short names


@pytest.fixture
def alike(lmem, store):
    """Memories of two users whose ids begin alike: they were made together."""
    rows = "".join(
        f'{{"content": "note {i}", "user": "{"ann" if i % 2 else "bob"}", "session": "s1"}}\n'
        for i in range(30)
    )
    assert lmem("import", "-", stdin=rows).code == 0


def names(done):
    return [line.split()[0] for line in done.out.splitlines()[1:]]


def test_a_short_id_is_short_even_where_ids_begin_alike(lmem, alike):
    shown = [n for n in names(lmem("list", "--user", "ann")) if not n.startswith("k")]
    assert len(shown) == 15
    assert {len(n) for n in shown} == {10}


def test_a_short_id_of_a_scoped_list_works_without_the_scope(lmem, alike):
    """It is told from the ids of all scopes, not from the listed ones."""
    for user in ("ann", "bob"):
        for name in names(lmem("list", "--user", user)):
            got = lmem("get", name, "--format", "json")
            assert (got.code, got.json["user"]) == (0, user), name


def test_ids_that_one_scope_cannot_tell_apart_are_told_apart(lmem, fresh):
    """The twin is in another scope, and they differ in the tenth character only."""
    twins = ["aaaaaaaaa1zzzzzzzz", "aaaaaaaaa2zzzzzzzz"]
    for twin, user in zip(twins, ("ann", "bob"), strict=True):
        lmem("add", f"of {user}", "--id", twin, "--user", user, "--store", fresh)
    (name,) = names(lmem("list", "--user", "ann", "--store", fresh))
    assert lmem("get", name, "--store", fresh, "--format", "quiet").out == f"{twins[0]}\n"


def test_a_key_that_two_scopes_hold_is_no_name(lmem, fresh):
    for user in ("ann", "bob"):
        lmem("add", f"home of {user}", "--key", "home", "--user", user, "--store", fresh)
    (name,) = names(lmem("list", "--user", "ann", "--store", fresh))
    assert name != "home"
    assert lmem("get", name, "--store", fresh).code == 0


def test_every_verb_takes_the_end_of_an_id(lmem, alike):
    name = next(n for n in names(lmem("list", "--user", "ann")) if n.startswith(".."))
    for words in (
        ["get"], ["related"], ["lineage"], ["update", "--importance", "1"], ["retire", "--yes"], ["unretire"],
        ["delete", "--yes"],
    ):  # fmt: skip
        assert lmem(words[0], name, *words[1:]).code == 0, words
    assert lmem("get", name).code == 3


def test_an_end_of_several_ids_is_ambiguous(lmem, store):
    done = lmem("get", "..000000000000")
    assert (done.code, "6 ids end in" in done.err) == (2, True)


def test_a_past_version_shows_no_key_that_another_memory_has_now(lmem, store):
    lmem("upsert", "the kettle is new", "--key", "k0", "--user", "ann")
    (old,) = names(lmem("list", "--at", "start", "--user", "ann", "--limit", "1"))
    assert lmem("get", old, "--format", "json").json["content"] == "the red kettle is broken"


# -- tables


def test_a_list_shows_whose_a_memory_is(lmem, alike):
    head, first, *_ = lmem("list", "--user", "bob", "--since", "2026-01-01").out.splitlines()
    assert head.split() == ["MEMORY", "DATE", "USER", "SESSION", "CONTENT"]
    assert first.split()[2:] == ["bob", "s1", "note", "0"]


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 100, 140])
def test_a_list_keeps_its_content_at_every_width(width, lmem, alike, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = lmem("list", "--user", "ann").out.splitlines()
    assert lines[0].split()[0] == "MEMORY"
    assert lines[0].split()[-1] == "CONTENT"
    assert all(len(line) <= width for line in lines)
    assert ("TAGS" in lines[0]) == (width >= 100)
    assert any("note" in line for line in lines)


def test_an_empty_list_says_so(lmem, store):
    done = lmem("list", "--user", "nobody")
    assert (done.code, done.out, done.err) == (0, "", "nothing found\n")
    assert lmem("list", "--user", "nobody", "--format", "json").json == []


def test_a_query_of_many_columns_shows_those_that_fit_and_counts_the_others(lmem, store):
    done = lmem("sql", "select * from memories")
    assert "id" in done.out.splitlines()[0]
    assert len(done.out.splitlines()) == 7
    assert "columns do not fit" in done.err
    narrow = lmem("sql", "select key, content from memories")
    assert (narrow.err, "the red kettle" in narrow.out) == ("", True)


def test_the_log_has_tags_beside_the_version(lmem, store):
    lines = lmem("log").out.splitlines()
    assert lines[1].split()[-1] == "wrong"
    assert lines[2].startswith("3 [start]")


def test_relationships_are_readable(lmem, store, ids):
    lmem("upsert", "the kettle is new", "--key", "k0", "--user", "ann")
    assert f"updates -> {ids[0]}" in lmem("get", "k0").out


# -- diffs, plans, answers


def test_a_diff_shows_both_texts_where_the_text_changed(lmem, store, ids):
    lmem("update", "k0", "the kettle is new", "--importance", "0.9")
    lines = lmem("diff", "4").out.splitlines()
    assert lines[1:] == [
        f"~ {ids[0]}  importance",
        "    - the red kettle is broken",
        "    + the kettle is new",
    ]


def test_a_diff_names_the_columns_where_the_text_is_the_same(lmem, store, ids):
    lmem("update", "k0", "--importance", "0.9")
    assert lmem("diff", "4").out.splitlines()[1:] == [
        f"~ {ids[0]}  importance",
        "    the red kettle is broken",
    ]


def test_a_rollback_says_what_goes_comes_back_and_changes(lmem, store):
    lmem("delete", "k0", "--yes")
    lmem("add", "a new thing", "--key", "new")
    done = lmem("rollback", "start", "--dry-run")
    head, *listed = done.out.splitlines()
    assert head == "rollback to version 3: 1 memory goes, 1 comes back, 1 changes back"
    assert [line[0] for line in listed] == ["-", "+", "~"]
    texts = ["a new thing", "the red kettle is broken", "bob likes green pears"]
    assert [line.split("  ")[1] for line in listed] == texts


def test_a_long_plan_is_cut_and_says_how_to_see_it_all(lmem, store):
    lines = lmem("rollback", "2", "--dry-run").out.splitlines()
    assert lines[0].endswith("6 memories go, 0 come back, 0 change back")
    assert lines[6:] == ["... and 1 more (--show N shows more)"]
    assert len(lmem("rollback", "2", "--dry-run", "--show", "9").out.splitlines()) == 7


def test_a_revert_shows_what_comes_back(lmem, store):
    lmem("delete", "k0", "--yes")
    lines = lmem("revert", "5", "--dry-run").out.splitlines()
    assert lines[0] == "revert of version 5: 0 memories go, 1 comes back, 0 change back"
    assert lines[1].endswith("the red kettle is broken")


def test_an_upsert_names_what_it_superseded(lmem, store, ids):
    done = lmem("upsert", "the kettle is new", "--key", "k0", "--user", "ann")
    assert f"superseding {ids[0]}" in said(done.out)
    assert "superseding" not in lmem("upsert", "other", "--key", "other").out


def test_a_pass_that_finds_nothing_says_it_once(lmem, store):
    done = lmem("consolidate", "--min-similarity", "1", "--user", "ann")
    assert done.out == "nothing to consolidate in 4 memories; version 4 stays\n"
    assert done.err == ""


def test_a_checkout_names_the_tag_it_made(lmem, store, tmp_path):
    done = lmem("checkout", "3", tmp_path / "copy")
    made = next(t for t in lmem("tag", "--format", "quiet").out.split() if t != "start")
    assert f"the tag {made} here" in said(done.out)


def test_a_plan_is_applied_once(lmem, store, plan_file):
    assert lmem("apply", plan_file, "--yes").code == 0
    again = lmem("apply", plan_file, "--yes", "--format", "json")
    assert (again.code, "applied already" in again.err) == (4, True)


def test_limit_is_k(lmem, store):
    words = ["search", "kettle", "--mode", "text", "--format", "quiet"]
    assert len(lmem(*words, "--limit", "1").out.split()) == 1
    assert len(lmem(*words, "-k", "1").out.split()) == 1
    assert len(lmem(*words, "-n", "1").out.split()) == 1


@pytest.mark.parametrize("words", [["list"], ["log"], ["usage"]])
def test_limit_is_n_in_every_list(words, lmem, store):
    few = [lmem(*words, how, "1", "--format", "json").out for how in ("-n", "--limit")]
    assert few[0] == few[1] != lmem(*words, "--format", "json").out


def test_the_log_of_a_scope_says_that_a_version_changed_others_too(lmem, store):
    """Its cell was empty, as if the version had changed nothing."""
    lmem("retire", "k0", "k4", "--yes")
    head, *lines = lmem("log", "--user", "ann").out.splitlines()
    column = slice(head.index("OPERATION"), head.index("BY"))
    told = [" ".join(line[column].split()) for line in lines]
    assert told == ["retire (part of it)", "add (part of it)"]
    assert "retire (part of it)" in lmem("log", "--graph", "--user", "ann").out
    assert "(part of it)" not in lmem("log").out + lmem("log", "--graph").out


def test_the_version_is_told(lmem):
    done = lmem("--version")
    assert (done.code, done.out) == (0, f"lmem {importlib.metadata.version('lance-memory')}\n")


# -- help


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("search", "relative to the other hits of the same search"),
        ("sql", 'select "user", count(*)'),
        ("import", "valid_from, valid_to, expires_at"),
        ("import", "tags are written a; b"),
        ("import", "with a zone"),
        ("import", "--assume-utc"),
    ],
)
def test_help_says_what_there_is_to_know(command, text, lmem):
    assert text in said(lmem(command, "--help").out)


# -- errors

ERRORS = {
    "a branch": (["add", "x", "--branch", "nope"], 3, "no branch 'nope'; `lmem branches` lists"),
    "a branch to read": (["list", "--branch", "nope"], 3, "there is no branch 'nope'"),
    "a blank query": (["search", " "], 2, "`lmem list`"),
    "a file": (["import", "no.csv"], 3, "'no.csv': there is no such file"),
    "a directory": (["import", ".", "--input-format", "csv"], 1, "'.': is a directory"),
    "a choice": (["list", "--format", "csv"], 2, "--format takes no 'csv'; it takes: 'human'"),
    "a store": (["list", "--store", "/nowhere"], 3, "make one with `lmem init`"),
    "a value": (["add", "x", "--kind", "gone"], 5, "error: --kind 'gone'"),
    "a limit": (["list", "--limit", "-1"], 2, "error: --limit -1"),
    "a column": (["sql", "select nope from memories"], 2, 'find column "nope"'),
    "a table": (["sql", "select * from memory"], 2, "'memory' was not found; the table is `mem"),
    "a keyword": (["sql", "select user from memories"], 2, 'the column is "user", in quotes'),
}
PYTHON = ("list()", "datetime(", "tzinfo", "Errno", "Value error", "MemoryStore", "Resolved plan",
          "memories.lance", "row 0")  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_in_the_words_of_the_command_line(case, lmem, store):
    words, code, text = ERRORS[case]
    done = lmem(*words)
    assert done.code == code
    assert text in done.err
    assert not [word for word in PYTHON if word in done.err]


@pytest.mark.parametrize("words", [["list"], ["log"], ["log", "--graph"], ["stats"]])
def test_a_terminal_that_does_not_know_its_width_shows_the_answer(words, lmem, store, monkeypatch):
    """Some say that they have 0 columns; nothing was printed, and the exit code was 0."""
    usual = lmem(*words).out
    monkeypatch.setenv("COLUMNS", "0")
    shown = lmem(*words).out
    assert len(shown.splitlines()) == len(usual.splitlines())


def test_the_log_has_its_numbers_at_every_width(lmem, store, monkeypatch):
    """In 20 columns there were reasons alone."""
    for width in (1, 20, 30, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        head, newest, *_ = lmem("log").out.splitlines()
        assert head.split()[0] == "VERSION"
        assert newest.split()[0] == "4"
