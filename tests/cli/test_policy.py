"""retention and quota: what goes, and what tenants may have, from the shell."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lance_memory import MemoryStore, Workspace

QUICK = ["--stay", "episodic=0.001s"]


@pytest.fixture
def limits(tmp_path):
    """A file of quotas: memories without a tenant, and one tenant more."""
    file = tmp_path / "quotas.json"
    tenants = {"acme": {"rows": {"soft": 1, "hard": 2}, "longest_wait": 0}}
    file.write_text(json.dumps({"default": {"rows": 100}, "tenants": tenants}))
    return file


def store_bytes(path):
    return MemoryStore.open(path, create=False).quota().of("bytes").used


# -- retention


def test_a_dry_run_says_what_would_go_and_why(lmem, store, version):
    before = version()
    done = lmem("retention", *QUICK, "--dry-run", "--format", "json")
    plan = done.json
    assert (done.code, version()) == (0, before)
    assert (plan["considered"], plan["counts"], plan["rules"]) == (5, {"age": 5}, {"age": 5})
    assert {m["reason"] for m in plan["memories"]} == {
        "retention: episodic, kept for 0.001 seconds"
    }
    shown = lmem("retention", *QUICK, "--dry-run", "--show", "2").out.splitlines()
    assert shown[0] == f"5 memories of 5 at version {before} to retire: 5 by age"
    assert shown[1].split() == ["MEMORY", "AGE", "RULE", "CONTENT"]
    assert shown[-1] == "... and 3 more"


def test_what_has_expired_is_told_apart_and_whose_it_is(lmem, store, tmp_path):
    """At 80 columns, whatever the tenant is called; `age` would have looked like a mistake."""
    handle = MemoryStore.open(store, create=False)
    gone = datetime.now(UTC) - timedelta(hours=1)
    for kind, tenant in (("semantic", "a tenant of a long name"), ("profile", "")):
        handle.add(f"of a {kind}", kind=kind, tenant=tenant, expires_at=gone, id=kind)
    done = lmem("retention", "--dry-run")
    lines = done.out.splitlines()
    assert lines[0] == f"2 memories of 7 at version {handle.version} to retire: 2 expired"
    assert lines[1].split() == ["MEMORY", "AGE", "RULE", "TENANT", "CONTENT"]
    assert {tuple(line.split()) for line in lines[2:]} == {
        ("semantic", "0d", "expired", "a", "tenant", "of…", "of", "a", "semantic"),
        ("profile", "0d", "expired", "of", "a", "profile"),
    }
    told = lmem("retention", "--dry-run", "--format", "json").json
    assert {m["reason"] for m in told["memories"]} == {
        "retention: semantic, expired",
        "retention: profile, expired",
    }
    assert lmem("retention", "--archive", "old.jsonl", "--yes").code == 0
    archived = (tmp_path / "old.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in archived} == {"semantic", "profile"}


def test_a_dry_run_with_nothing_due_says_what_age_counts_from(lmem, store, version):
    done = lmem("retention", "--dry-run")
    assert " ".join(done.out.split()) == (
        f"nothing of 5 memories at version {version()} is due; age counts from when a memory "
        "happened, was learned, or got its state, whichever was last"
    )


def test_what_was_shown_is_put_away_and_retired(lmem, store, version, tmp_path):
    before = version()
    done = lmem(
        "retention", *QUICK, "--user", "ann", "--archive", "old", "--yes", "--reason", "spring",
        "--format", "json",
    )  # fmt: skip
    (file,) = (tmp_path / "old").iterdir()
    assert done.json == {
        "version": before + 1,
        "retired": 4,
        "path": str(file),
        "archived": 4,
        "changed": 0,
        "left": 0,
        "counts": {"age": 4},
    }
    assert [m["key"] for m in lmem("list", "--format", "jsonl").lines] == ["k4"]
    assert lmem("log", "--limit", "1", "--format", "jsonl").lines[0]["reason"] == "spring"
    lmem("import-store", file, "--store", tmp_path / "other")
    assert len(lmem("list", "--store", tmp_path / "other", "--format", "jsonl").lines) == 4
    again = lmem("retention", *QUICK, "--user", "ann", "--archive", "old", "--yes")
    assert again.out == f"nothing is due; version {before + 1} stays\n"


def test_where_they_go_has_to_be_said(lmem, store, version):
    before = version()
    for words in ([], ["--archive", "old", "--no-archive"]):
        done = lmem("retention", *QUICK, *words, "--yes")
        assert (done.code, "--archive PATH, or --no-archive" in done.err) == (2, True)
    assert version() == before


def test_a_file_and_the_workspace_say_how_long(lmem, store, tmp_path):
    handle = MemoryStore.open(store, create=False)
    handle.add("of acme", tenant="acme", id="acme")
    Workspace(handle.scoped(tenant="acme")).set_policy("retention", {"days": {"episodic": 1e-9}})
    policy = {"days": {"episodic": 400000}, "low_importance": 0}
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    done = lmem("retention", "--policy", "policy.json", "--dry-run", "--format", "json")
    assert [m["id"] for m in done.json["memories"]] == ["acme"]
    assert list(done.json["policies"]) == ["acme"]
    given = lmem("retention", "--policy", "-", "--dry-run", stdin=json.dumps(policy))
    assert (given.code, given.out) == (
        0,
        lmem("retention", "--policy", "policy.json", "--dry-run").out,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--stay", "episodic"],
        ["--stay", "episodic=soon"],
        ["--stay", "dream=3d"],
        ["--stay", "workspace=3d"],
        ["--low-importance", "2"],
        ["--state", "retired"],
        ["--policy", "broken.json"],
        ["--policy", "odd.json"],
    ],
)
def test_what_makes_no_sense_is_a_usage_error(words, lmem, store, tmp_path):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "odd.json").write_text('{"weeks": 3}')
    done = lmem("retention", *words, "--dry-run")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "unexpected" not in done.err


# -- quota


def test_each_tenant_is_listed_with_what_it_uses(lmem, store, limits):
    lmem("add", "of acme", "--tenant", "acme")
    done = lmem("quota", "--quotas", limits)
    assert done.code == 0
    template_bytes = store_bytes(store)
    assert done.out.splitlines() == [
        "(none)",
        "    rows 5 (hard 100)",
        f"    bytes {template_bytes}",
        "    vectors 5",
        "acme",
        "    rows 1 (soft 1, hard 2)",
        "    bytes 7",
        "    vectors 1",
    ]


def test_no_width_hides_that_a_tenant_is_full(lmem, store, tmp_path):
    """In a table, a long name took the room of the column that said so."""
    long = "a tenant\nwhose name is longer than what there is room for in a table"
    lmem("add", "of this one", "--tenant", long)
    (tmp_path / "q.json").write_text(json.dumps({"default": {"rows": 1, "bytes": 10**12}}))
    done = lmem("quota", "--quotas", "q.json")
    lines = done.out.splitlines()
    assert done.code == 1
    assert max(map(len, lines)) <= 80
    assert lines[4:7] == [
        "a tenant whose name is longer than what there is room for in a table: full",
        "    rows 1 (hard 1): full",
        "    bytes 11 (hard 1,000,000,000,000)",
    ]


def test_a_tenant_above_a_limit_is_an_exit_code(lmem, store, limits, monkeypatch):
    monkeypatch.setenv("LMEM_QUOTAS", str(limits))
    assert lmem("add", "one", "--tenant", "acme").code == 0
    second = lmem("add", "two", "--tenant", "acme")
    told = "warning: tenant 'acme' has 2 of 2 memories, above the soft limit of 1\n"
    assert (second.code, second.err) == (0, told)
    assert lmem("add", "two", "--tenant", "acme", "--format", "quiet").err == ""
    third = lmem("add", "three", "--tenant", "acme")
    assert (third.code, third.out) == (5, "")
    assert third.err.startswith("error: tenant 'acme' has 2 memories, and 1 more would be above")
    assert (lmem("quota").code, lmem("quota", "--tenant", "beta").code) == (1, 0)
    assert lmem("quota", "--format", "quiet").out == "acme\n"
    (status,) = lmem("quota", "--tenant", "acme", "--format", "json").json
    assert (status["full"], status["over_soft"]) == (True, True)
    assert status["uses"][0] == {"resource": "rows", "used": 2, "soft": 1, "hard": 2}
    assert lmem("retire", "--tenant", "acme", "--yes").code == 0
    assert lmem("quota").code == 0


def test_quotas_that_are_none_are_a_usage_error(lmem, store, tmp_path):
    Path(tmp_path / "odd.json").write_text('{"default": {"memories": 5}}')
    for words in (["--quotas", "odd.json"], ["--user", "ann"]):
        done = lmem("quota", *words)
        assert (done.code, done.out) == (2, ""), done.err
    assert lmem("quota", "--quotas", "missing.json").code == 3
