"""`lmem pending` and `lmem clarify`: what waits, and what is decided about it."""

from __future__ import annotations

import pytest

LISBON = "User: I live in Lisbon, by the way, and have done so for years.\n"
PORTO = "User: I live in Porto, and it rains here all the time.\n"


@pytest.fixture
def clash(lmem):
    """The id of a memory that clashes with one that stands, and that one's."""
    ids = [
        lmem("ingest", "-", "--user", "mara", "--format", "json", stdin=f"[2025-01-0{day}] {said}")
        for day, said in ((1, LISBON), (2, PORTO))
    ]
    (old,), (new,) = (done.json["ids"] for done in ids)
    return new, old


@pytest.fixture
def pending(lmem):
    """Three memories that wait to be said again, two of them mara's."""
    return [
        lmem("add", text, "--user", user, "--state", "pending", "--tag", tag, "--format", "quiet")
        .out.strip()
        for text, user, tag in (
            ("she may like tea", "mara", "tea"),
            ("she may like milk", "mara", "milk"),
            ("he may like tea", "bob", "tea"),
        )
    ]  # fmt: skip


def active(lmem, user="mara"):
    return sorted(m["content"] for m in lmem("list", "--user", user, "--format", "jsonl").lines)


def test_what_is_pending_is_listed_with_what_it_waits_for(lmem, pending, clash):
    listed = lmem("pending", "list", "--format", "json").json
    assert {(one["id"], one["why"]) for one in listed} == {
        *((identifier, "confidence") for identifier in pending),
        (clash[0], "clarify"),
    }
    (against,) = [one["contradicts"] for one in listed if one["contradicts"]]
    assert against["id"] == clash[1]
    only = lmem("pending", "list", "--why", "clarify", "--format", "quiet").out.split()
    assert only == [clash[0]]
    assert lmem("pending", "list", "--user", "bob", "--format", "quiet").out.split() == [pending[2]]
    human = lmem("pending", "list").out
    assert max(map(len, human.splitlines())) <= 80
    assert "against" in human
    assert lmem("pending", "list", "--user", "nobody").err == "nothing is pending\n"


def test_one_that_is_named_is_decided_at_once(lmem, pending):
    done = lmem("pending", "approve", pending[0], "--reason", "she said so", "--format", "quiet")
    assert (done.code, done.out.split()) == (0, [pending[0]])
    assert lmem("log", "--limit", "1", "--format", "json").json[0]["reason"] == "she said so"
    assert lmem("pending", "reject", f"..{pending[1][-8:]}").code == 0
    assert active(lmem) == ["she may like tea"]
    again = lmem("pending", "approve", pending[0])
    assert (again.code, "not pending" in again.err) == (4, True)


def test_several_are_shown_first(lmem, pending):
    refused = lmem("pending", "approve", *pending[:2])
    assert (refused.code, "--yes" in refused.err) == (2, True)
    dry = lmem("pending", "approve", *pending[:2], "--dry-run", "--format", "json")
    assert {one["id"] for one in dry.json} == set(pending[:2])
    assert active(lmem) == []
    assert lmem("pending", "approve", *pending[:2], "--yes").code == 0
    assert active(lmem) == ["she may like milk", "she may like tea"]


def test_a_filter_chooses_within_a_scope(lmem, pending):
    assert lmem("pending", "reject", "--tag", "tea", "--yes").code == 2
    assert lmem("pending", "reject", pending[0], "--tag", "tea").code == 2
    done = lmem("pending", "reject", "--user", "mara", "--tag", "tea", "--yes", "--format", "quiet")
    assert done.out.split() == [pending[0]]
    assert lmem("get", pending[0], "--format", "json").json["state"] == "retired"
    nothing = lmem("pending", "reject", "--user", "mara", "--tag", "coffee", "--yes")
    assert (nothing.code, "nothing is pending" in nothing.err) == (0, True)


def test_refs_come_from_stdin(lmem, pending):
    listed = lmem("pending", "list", "--user", "mara", "--format", "quiet").out
    assert lmem("pending", "approve", "-", "--yes", stdin=listed).code == 0
    assert len(active(lmem)) == 2


@pytest.mark.parametrize(
    ("choice", "stands"),
    [
        ("new", ["I live in Porto"]),
        ("old", ["I live in Lisbon"]),
        ("both", ["I live in Lisbon", "I live in Porto"]),
    ],
)
def test_c03_a_clash_is_asked_about_and_the_answer_stands(choice, stands, lmem, clash):
    listed = lmem("clarify", "list", "--user", "mara", "--format", "json").json
    assert [(one["id"], one["contradicts"]["id"]) for one in listed] == [clash]
    assert [text[:16].rstrip(".,") for text in active(lmem)] == ["I live in Lisbon"]
    done = lmem("clarify", "answer", clash[0], choice, "--reason", "asked her")
    assert done.code == 0, done.err
    assert [text[:16].rstrip(".,") for text in active(lmem)] == stands
    assert lmem("clarify", "list", "--user", "mara").err == "nothing waits for an answer\n"


def test_what_clashes_with_nothing_is_not_answered(lmem, pending):
    done = lmem("clarify", "answer", pending[0], "old")
    assert (done.code, "approve or reject" in done.err) == (4, True)


def test_the_doctor_names_what_waits(lmem, pending, clash):
    found = {one["code"]: one for one in lmem("doctor", "--format", "json").json["findings"]}
    assert (found["pending"]["count"], found["pending"]["severity"]) == (3, "note")
    assert (found["clarify"]["count"], found["clarify"]["severity"]) == (1, "note")
    assert "lmem clarify list" in found["clarify"]["advice"]
