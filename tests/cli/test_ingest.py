"""`lmem ingest`: what it reads, what it answers, and what it leaves when it is stopped."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from lance_memory import MemoryStore

LMEM = str(Path(sys.executable).with_name("lmem"))
SAID = [
    "Hi! My name is Mara and I live in Lisbon.",
    "I am allergic to hazelnuts, and I love hiking.",
]
MADE = {
    "My name is Mara",
    "I live in Lisbon.",
    "I am allergic to hazelnuts",
    "I love hiking.",
}
CHAT = {
    "session": "s1",
    "messages": [
        {"role": "user", "content": SAID[0], "at": "2025-01-31T12:00:00Z"},
        {"role": "assistant", "content": "Nice to meet you, Mara.", "at": "2025-01-31T12:01:00Z"},
        {"role": "user", "content": SAID[1], "at": "2025-01-31T12:02:00Z"},
    ],
}
TRANSCRIPT = f"""\
[2025-01-31 12:00] Mara: {SAID[0]}
[2025-01-31 12:01] Assistant: Nice to meet you, Mara.
[2025-01-31 12:02] Mara: {SAID[1]}
"""
INPUTS = {
    "jsonl": json.dumps(CHAT) + "\n",
    "openai": json.dumps(CHAT, indent=2),
    "transcript": TRANSCRIPT,
    "messages a line": "".join(json.dumps(m) + "\n" for m in CHAT["messages"]),
}


def contents(lmem, *words):
    return {memory["content"] for memory in lmem("list", *words, "--format", "jsonl").lines}


@pytest.mark.parametrize("form", INPUTS)
def test_the_same_conversation_in_any_form_becomes_the_same_memories(form, lmem, tmp_path):
    file = tmp_path / "talk"
    file.write_text(INPUTS[form], encoding="utf-8")
    done = lmem("ingest", file, "--user", "mara", "--format", "json")
    assert (done.code, done.json["status"], done.json["messages"]) == (0, "done", 3), done.err
    assert contents(lmem, "--user", "mara") == MADE


def test_the_form_can_be_said(lmem):
    for form in ("jsonl", "openai", "transcript"):
        done = lmem("ingest", "-", "--as", form, "--user", form, stdin=INPUTS[form])
        assert done.code == 0, done.err
        assert contents(lmem, "--user", form) == MADE


def test_a_summary_says_what_became_of_everything(lmem):
    told = "My e-mail is mara@example.org. " + SAID[0]
    done = lmem("ingest", "-", "--user", "mara", "--format", "json", stdin=f"Mara: {told}\n")
    found = done.json
    shown = {name: found[name] for name in found if name not in ("uri", "job", "ids", "seconds")}
    assert shown == {
        "status": "done",
        "reason": "",
        "version": found["version"],
        "conversations": 1,
        "messages": 1,
        "candidates": 2,
        "kept": 2,
        "pending": 0,
        "rejected": {},
        "conflicts": {},
        "blocked": {},
        "redacted": {"email": 1},
        "memories": 2,
        "degraded": [],
        "eta": None,
        "took": found["took"],
    }
    assert len(found["ids"]) == 2
    quiet = lmem("list", "--user", "mara", "--format", "quiet").out.split()
    assert sorted(found["ids"]) == sorted(quiet)


def test_a_human_gets_a_table_within_80_columns(lmem):
    done = lmem("ingest", "-", "--user", "mara", "--explain", stdin=TRANSCRIPT)
    assert max(map(len, done.out.splitlines())) <= 80
    lines = [line.split() for line in done.out.splitlines()]
    assert ["keep"] in lines
    assert ["4", "kept"] in lines
    assert ["4", "new"] in lines  # it was "new new"
    assert ["-", "I", "love", "hiking."] in lines
    assert ["memories", "4"] in lines
    assert ["candidates", "4"] in lines
    assert done.err.splitlines() == [f"made a new store at {os.environ['LMEM_STORE']}"]


def test_explained_lines_are_the_summary_and_each_decision(lmem):
    done = lmem("ingest", "-", "--user", "m", "--explain", "--format", "jsonl", stdin=TRANSCRIPT)
    summary, *decisions = done.lines
    assert summary["memories"] == 4
    kept = {one["content"] for one in decisions if one["step"] == "keep"}
    assert kept == MADE


def test_several_files_are_one_version(lmem, tmp_path):
    for name, city in (("a.txt", "Lisbon"), ("b.txt", "Porto")):
        (tmp_path / name).write_text(f"Bo: I was born in {city}, long ago.\n", encoding="utf-8")
    lmem("init")
    before = MemoryStore.open(os.environ["LMEM_STORE"]).version
    done = lmem("ingest", "a.txt", "b.txt", "--user", "bo", "--format", "json")
    assert (done.json["conversations"], done.json["messages"]) == (2, 2)
    assert done.json["version"] == before + 1


def test_ingesting_again_changes_nothing(lmem):
    first = lmem("ingest", "-", "--user", "mara", "--format", "json", stdin=TRANSCRIPT).json
    again = lmem("ingest", "-", "--user", "mara", "--format", "json", stdin=TRANSCRIPT)
    assert (again.code, again.json["memories"]) == (0, 0)
    assert again.json["version"] == first["version"]
    assert contents(lmem, "--user", "mara") == MADE


def test_c01_one_idempotency_key_is_one_job_with_one_answer(lmem):
    asked = ("ingest", "-", "--user", "mara", "--idempotency-key", "k", "--format", "json")
    first = lmem(*asked, stdin=TRANSCRIPT).json
    again = lmem(*asked, stdin=TRANSCRIPT).json
    assert (again["job"], again["ids"]) == (first["job"], first["ids"])
    other = lmem(*asked, stdin="Mara: I live in Porto.\n")
    assert (other.code, "another payload" in other.err) == (4, True)


def test_a_dry_run_says_the_same_and_writes_nothing(lmem, tmp_path):
    dry = lmem("ingest", "-", "--user", "mara", "--dry-run", "--format", "json", stdin=TRANSCRIPT)
    assert (dry.code, dry.json["memories"]) == (0, 4), dry.err
    assert "dry run: nothing was written" in dry.err
    assert list(tmp_path.iterdir()) == []
    lmem("init")
    store = MemoryStore.open(os.environ["LMEM_STORE"])
    before = store.version
    again = lmem("ingest", "-", "--user", "mara", "--dry-run", "--format", "json", stdin=TRANSCRIPT)
    assert again.json["candidates"] == dry.json["candidates"] == 4
    assert (store.version, store.count(states="any")) == (before, 0)
    assert lmem("ingest", "-", "--user", "mara", stdin=TRANSCRIPT).code == 0


def test_a_blocked_conversation_is_an_ordinary_answer(lmem):
    done = lmem("ingest", "-", "--user", "mara", "--format", "json", stdin="Mara: ok\n")
    assert done.code == 0
    assert (done.json["status"], done.json["reason"]) == ("L2", "low_quality")
    assert done.json["blocked"] == {"L2 low_quality": 1}
    assert "L2 low_quality" in lmem("ingest", "-", "--user", "mara", stdin="Mara: ok\n").out


def test_a_file_has_no_rate_limit_unless_one_is_asked_for(lmem):
    many = "".join(
        json.dumps({"session": f"s{n}", "role": "user", "content": f"{text} Or {n * 7} times?"})
        + "\n"
        for n, text in enumerate([*SAID, "I was born in Porto, and work as a nurse in Faro."])
    )
    free = lmem("ingest", "-", "--user", "a", "--format", "json", stdin=many).json
    assert free["blocked"] == {}
    slow = lmem("ingest", "-", "--user", "b", "--rate", "1", "--format", "json", stdin=many).json
    assert slow["blocked"] == {"L1 rate_limit_exceeded": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"role": "user", "content": "a"}\n{"role": "user"}\n', "line 2"),
        ('{"role": "nobody", "content": "a"}\n', "line 1"),
        ("nobody speaks here\n", "line 1"),
        ("", "no message"),
    ],
)
def test_a_malformed_input_is_rejected_whole_and_the_line_named(text, told, lmem, tmp_path):
    file = tmp_path / "bad"
    file.write_text(text, encoding="utf-8")
    done = lmem("ingest", file, "--user", "mara")
    assert (done.code, done.out) == (5, "")
    assert told in done.err
    assert "nothing was stored" in done.err
    assert not (tmp_path / "memory").exists()


def test_a_file_that_is_not_there_is_not_found(lmem):
    assert lmem("ingest", "nowhere.jsonl", "--user", "mara").code == 3


def test_plain_prose_is_refused_with_what_to_do_with_it(lmem):
    done = lmem("ingest", "-", stdin="I live in Faro and I like tea.\n")
    told = " ".join(done.err.split())
    assert (done.code, done.out) == (5, "")
    assert '"user: I live in Faro"' in told
    assert "`lmem add`" in told


def test_c16_what_names_another_scope_is_refused(lmem):
    line = json.dumps({**CHAT, "user": "bob"})
    done = lmem("ingest", "-", "--user", "mara", stdin=line)
    assert (done.code, "bob" in done.err) == (2, True)


def test_an_external_user_gets_the_same_internal_one(lmem):
    asked = ("ingest", "-", "--tenant", "acme", "--external-user", "CRM 7")
    assert lmem(*asked, stdin=TRANSCRIPT).code == 0
    assert lmem(*asked, stdin="Mara: I was born in Porto, long ago.\n").code == 0
    users = {m["user"] for m in lmem("list", "--tenant", "acme", "--format", "jsonl").lines}
    assert len(users) == 1
    assert "CRM" not in users.pop()


def test_left_to_a_worker_it_is_a_job(lmem):
    asked = lmem("ingest", "-", "--user", "mara", "--no-wait", "--format", "json", stdin=TRANSCRIPT)
    assert (asked.code, asked.json["status"]) == (0, "queued")
    assert contents(lmem, "--user", "mara") == set()
    lmem("worker", "--once")
    assert contents(lmem, "--user", "mara") == MADE
    quiet = lmem("ingest", "-", "--no-wait", "--user", "b", "--format", "quiet", stdin=TRANSCRIPT)
    assert lmem("jobs", "show", quiet.out.strip(), "--format", "quiet").out == "queued\n"


INTERRUPTED = """
import os, signal, sys
from lance_memory.storage import Table
commit = Table.commit
def interrupted(self, plan):
    if sys.argv[1] == "after":
        commit(self, plan)
    os.kill(os.getpid(), signal.SIGINT)
Table.commit = interrupted
from lmem.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_c42_ctrl_c_leaves_a_whole_version_or_none_and_says_which(when, store, version):
    before = version()
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, when, "ingest", "-", "--store", str(store), "--user", "m"],
        input=TRANSCRIPT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    told = {
        "before": f"interrupted: the store is unchanged, at version {before}\n",
        "after": f"interrupted: version {before + 1} was made (before: {before})\n",
    }
    assert (done.returncode, done.stderr) == (130, told[when])
    found = {m.content for m in MemoryStore.open(store).list(user="m")}
    assert found == (MADE if when == "after" else set())


@pytest.mark.slow
def test_a_terminal_gets_a_progress_bar(store):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [LMEM, "ingest", "-", "--store", str(store), "--user", "m"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(theirs)
        assert child.stdin
        child.stdin.write((TRANSCRIPT * 200).encode())
        child.stdin.close()
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        child.wait(timeout=60)
    os.close(ours)
    assert child.returncode == 0
    assert b"ingesting" in seen
    assert b"reading conversations" in seen
    assert b"1/1" in seen


def test_a_file_of_several_tenants_is_a_job_for_each(lmem, tmp_path):
    """It was refused."""
    lines = [
        {"tenant": tenant, "user": "u", "role": "user", "content": f"I live in {city}."}
        for tenant, city in (("acme", "Lisbon"), ("beta", "Porto"), ("acme", "Faro"))
    ]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    dry = lmem("ingest", file, "--dry-run", "--format", "json")
    assert (dry.code, [one["tenant"] for one in dry.json]) == (0, ["acme", "beta"]), dry.err
    done = lmem("ingest", file, "--format", "json", "--idempotency-key", "k")
    assert (done.code, len({one["job"] for one in done.json})) == (0, 2), done.err
    assert contents(lmem, "--tenant", "beta") == {"I live in Porto."}
    human = lmem("ingest", file, "--idempotency-key", "k")
    assert [line.split() for line in human.out.splitlines()].count(["tenant", "beta"]) == 1
    assert lmem("jobs", "list", "--format", "quiet").out.count("\n") == 2


def test_an_external_user_is_the_tenants_that_the_input_names(lmem):
    chat = json.dumps({**CHAT, "tenant": "acme"})
    asked = ("ingest", "-", "--external-user", "CRM 7", "--format", "json")
    assert lmem(*asked, stdin=chat).code == 0
    store = MemoryStore.open(os.environ["LMEM_STORE"])
    assert {memory.user for memory in store.list()} == {store.proxy_user("acme", "CRM 7")}


def test_a_dry_run_beside_a_ledger_says_that_it_does_not_ask_it(lmem):
    """It said that there is none."""
    lmem("ingest", "-", "--user", "mara", stdin=TRANSCRIPT)
    dry = lmem("ingest", "-", "--user", "mara", "--dry-run", stdin="Mara: I live in Porto now.")
    assert dry.err.splitlines() == [
        "dry run: nothing was written",
        "note: gate.L3: not asked in a dry run; 1 conversation went unjudged",
    ]


def test_a_dry_run_on_a_new_store_notes_nothing_that_is_not_there_yet(lmem):
    dry = lmem("ingest", "-", "--user", "mara", "--dry-run", stdin=TRANSCRIPT)
    assert dry.err == "dry run: nothing was written\n"
