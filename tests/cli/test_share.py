"""share, shares, revoke: what the command line shows, asks and refuses."""

from __future__ import annotations

import pytest

from lance_memory import MemoryStore

ANN = ("--user", "ann")
TO_BOB = ("--with-user", "bob")


@pytest.fixture
def opened(store):
    return MemoryStore.open(store, create=False)


def test_a_filter_is_shared_and_seen_by_who_received_it(lmem, store):
    """The story of a grant: given, listed by both, used, revoked, listed as ended."""
    given = lmem(
        "share", *ANN, "--tag", "odd", *TO_BOB, "--reason", "the trip", "--author", "ann", "--yes",
        "--format", "json",
    ).json  # fmt: skip
    assert (given["giver"], given["receiver"]) == ({"user": "ann"}, {"user": "bob"})
    assert (given["where"], given["ids"]) == ({"tags": ["odd"]}, None)
    assert (given["rights"], given["granted_by"], given["reason"]) == ("read", "ann", "the trip")
    assert lmem("shares", *ANN, "--format", "json").json == [given]
    assert lmem("shares", "--user", "bob", "--received", "--format", "json").json == [given]
    assert lmem("shares", "--user", "bob", "--format", "quiet").out == ""
    assert lmem("shares", "--user", "bob").err == (
        "nothing is given\n1 received as well: `lmem shares --received` lists what\n"
    )
    seen = lmem("shares", "--user", "bob", "--received", "--memories", "--format", "jsonl").lines
    assert [memory["key"] for memory in seen] == ["k1", "k3"]
    assert lmem("revoke", given["id"][:13], *ANN, "--yes", "--reason", "it is over").code == 0
    assert lmem("shares", *ANN).err == "nothing is shared\n"
    assert lmem("shares", "--ended", "--format", "json").json == [{**given, "state": "revoked"}]
    entry = lmem("log", "-n", "1", "--format", "json").json[0]
    assert (entry["operation"], entry["reason"]) == ("revoke", "it is over")


def test_a_person_reads_who_may_do_what_until_when(lmem, store):
    done = lmem(
        "share", *ANN, "--everything", "--with-agent", "planner", "--write",
        "--expires-at", "2099-01-01", "--yes",
    )  # fmt: skip
    assert "agent=planner may write 4 memories, and what passes user='ann' later" in done.err
    lines = lmem("shares", *ANN).out.splitlines()
    assert lines[0].endswith("  user=ann -> agent=planner")
    assert lines[1].strip() == "may write what passes user='ann', until 2099-01-01 00:00 UTC"


def test_memories_that_are_named_are_shared_as_they_are(lmem, opened, ids):
    listed = f"{ids[0]}\nk2\n"
    given = lmem("share", "-", *ANN, *TO_BOB, "--yes", "--format", "json", stdin=listed).json
    assert (given["ids"], given["where"]) == ([ids[0], ids[2]], {})
    assert len(opened.scoped(user="bob").sharing.list()) == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["share", *ANN, *TO_BOB], 2, "nothing says what is to be shared"),
        (["share", "k0", *ANN], 2, "with_ names nobody"),
        (["share", "k4", *ANN, *TO_BOB], 3, "there is no memory 'k4'"),
        (["share", "k0", "--tag", "odd", *ANN, *TO_BOB], 2, "not both"),
        (["share", "--tag", "odd", *TO_BOB], 2, "only a user or an agent shares"),
        (["share", "k0", *ANN, *TO_BOB, "--expires-at", "2001-01-01"], 2, "is past"),
        (["share", "k0", *ANN, "--with-user", "ann"], 2, "has its memories without a grant"),
        (["shares", "--memories"], 2, "--memories goes with --received"),
        (["shares", "--ended", "--received"], 2, "--ended goes without --received"),
        (["revoke", "nothing", "--yes"], 3, "there is no grant 'nothing'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    words, code, message, lmem, store, version
):
    before = version()
    done = lmem(*words)
    assert (done.code, done.out, version()) == (code, "", before)
    assert message in " ".join(done.err.split())


def test_a_grant_of_somebody_else_is_not_revoked(lmem, store, version):
    given = lmem("share", "k0", *ANN, *TO_BOB, "--yes", "--format", "quiet").out.strip()
    before = version()
    assert lmem("revoke", given, "--user", "bob", "--yes").code == 3
    assert lmem("revoke", given).code == 2  # nobody was asked
    assert lmem("revoke", given, "--dry-run").code == 0
    assert version() == before
