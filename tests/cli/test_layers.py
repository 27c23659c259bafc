"""`lmem procedures` and `lmem profile`: an agent's layers from the command line."""

from __future__ import annotations

import pytest

LEARN = ("procedures", "learn", "brew", "--user", "ann", "--context", "boil the red kettle")


def test_a_procedure_is_learned_used_and_found(lmem):
    made = lmem(*LEARN, "--step", "fill", "--step", "-", "--format", "json", stdin="heat\n\npour\n")
    assert (made.json["steps"], made.json["success_rate"]) == (["fill", "heat", "pour"], 0.5)
    for how, seconds in (("--success", 3), ("--success", 6), ("--failure", 0)):
        done = lmem("procedures", "record", "brew", "--user", "ann", how, "--seconds", seconds)
        assert done.code == 0, done.err
    assert "2 of 3" in done.out
    shown = lmem("procedures", "show", "brew", "--user", "ann", "--format", "json").json
    assert (shown["successes"], shown["failures"], shown["mean_seconds"]) == (2, 1, 3.0)
    (found,) = lmem("procedures", "best", "boil the red kettle", "--format", "jsonl").lines
    assert (found["name"], found["score"]) == ("brew", pytest.approx(0.6, abs=0.01))
    human = lmem("procedures", "best", "boil the red kettle", "--explain").out
    assert "2 of 3" in human
    assert "Laplace: (2 + 1) / (3 + 2)" in " ".join(human.split())
    assert "brew" in lmem("procedures", "list").out


def test_other_steps_begin_without_counts(lmem):
    lmem(*LEARN, "--step", "fill")
    lmem("procedures", "record", "brew", "--user", "ann", "--success")
    again = lmem(*LEARN, "--step", "fill", "--step", "heat", "--format", "json")
    assert again.json["successes"] == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("procedures", "show", "none"), 3, "there is no procedure 'none'"),
        (("procedures", "record", "brew"), 2, "--success"),
        (("procedures", "record", "brew", "--success", "--seconds", "-1"), 2, "--seconds -1"),
        (("procedures", "learn", "x", "--context", "y"), 2, "--step"),
        (("procedures", "learn", "x", "--context", " ", "--step", "z"), 2, "--context ' '"),
        (("procedures", "best", " "), 2, "blank"),
        (("procedures", "across-users"), 2, "asked of a tenant's handle"),
        (("profile", "show", "none"), 3, "there is no fact 'none'"),
        (("profile", "remove", "none", "--yes"), 3, "there is no fact 'none'"),
        (("profile", "history", "none"), 3, "there is no fact 'none'"),
        (("profile", "set", "x", "NaN"), 2, "cannot be written as JSON"),
        (("profile", "set", " ", "1"), 2, "not blank"),
        (("profile", "set", "x", "1", "--confidence", "2"), 2, "--confidence 2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_makes_no_sense_has_an_exit_code_and_one_line(lmem, store, words, code, message):
    lmem(*LEARN, "--step", "fill")
    done = lmem(*words)
    assert (done.code, message in done.err, done.err.count("\n")) == (code, True, 1), done.err


@pytest.mark.parametrize(
    ("word", "value"),
    [("Porto", "Porto"), ('"5"', "5"), ("0", 0), ("false", False), ("null", None), ('{"a": []}', {"a": []})],
)  # fmt: skip
def test_a_value_is_json_or_else_a_text(lmem, word, value):
    made = lmem("profile", "set", "x", "-", "--user", "ann", "--format", "json", stdin=word)
    assert (made.json["value"], made.json["version"]) == (value, 1)
    assert lmem("profile", "list", "--format", "jsonl").lines[0]["value"] == value


def test_a_fact_has_versions_and_an_expected_one_is_checked(lmem):
    for value in ("Porto", "Lisbon"):
        assert lmem("profile", "set", "city", value, "--user", "ann").code == 0
    stale = lmem("profile", "set", "city", "Faro", "--user", "ann", "--expected-version", "1")
    assert (stale.code, "version 2 stands, and not version 1" in stale.err) == (4, True)
    past = lmem("profile", "history", "city", "--format", "json").json
    assert [(one["value"], one["version"], one["state"]) for one in past] == [
        ("Porto", 1, "superseded"),
        ("Lisbon", 2, "active"),
    ]
    human = lmem("profile", "history", "city").out
    assert ('"Porto"' in human, "superseded" in human) == (True, True)
    assert '"Lisbon"' in lmem("profile", "show", "city").out


def test_a_fact_is_removed_only_when_that_is_agreed_to(lmem):
    lmem("profile", "set", "city", "Porto", "--user", "ann")
    refused = lmem("profile", "remove", "city")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    dry = lmem("profile", "remove", "city", "--dry-run", "--format", "json")
    assert [one["fact_key"] for one in dry.json] == ["city"]
    assert lmem("profile", "show", "city").code == 0
    assert lmem("profile", "remove", "city", "--yes", "--expected-version", "7").code == 4
    gone = lmem("profile", "remove", "city", "--yes", "--format", "quiet")
    assert lmem("profile", "list").err == "nothing is known\n"
    assert lmem("unretire", gone.out.strip()).code == 0
    assert lmem("profile", "show", "city").code == 0


def test_of_several_users_a_tenant_learns_counts_alone(lmem):
    for user in ("ann", "bob"):
        lmem(*LEARN[:3], "--tenant", "t", "--user", user, "--context", "boil", "--step", "fill")
        lmem("procedures", "record", "brew", "--tenant", "t", "--user", user, "--success")
    words = ("procedures", "across-users", "--tenant", "t")
    (found,) = lmem(*words, "--min-users", "2", "--format", "json").json
    assert (found["users"], found["successes"], found["steps"]) == (2, 2, ["fill"])
    assert "ann" not in lmem(*words, "--min-users", "2").out
    few = lmem(*words, "--format", "json")
    assert (few.json, few.err) == ([], "no procedure is known to 5 users\n")
