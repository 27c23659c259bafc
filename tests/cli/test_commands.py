"""Every command in every format, on a small store."""

from __future__ import annotations

import json

import pytest
from command_tree import commands

from lance_memory import Agent, MemoryStore, ProceduralMemory, ProfileMemory, Workspace

TEXT = "I was born in Porto, and I work as a nurse."
FORMATS = ["human", "json", "jsonl", "quiet"]
COMMANDS = {
    "init": ["init"],
    "add": ["add", "a new thing", "--user", "ann"],
    "import": ["import", "-"],
    "ingest": ["ingest", "-", "--user", "ann"],
    "pending list": ["pending", "list"],
    "pending approve": ["pending", "approve", "PENDING"],
    "pending reject": ["pending", "reject", "PENDING"],
    "clarify list": ["clarify", "list"],
    "clarify answer": ["clarify", "answer", "CLASH", "both", "--reason", "she said so"],
    "jobs list": ["jobs", "list"],
    "jobs show": ["jobs", "show", "JOB"],
    "jobs retry": ["jobs", "retry", "DEAD"],
    "jobs purge": ["jobs", "purge", "--yes"],
    "worker": ["worker", "--once"],
    "watermarks": ["watermarks"],
    "history": ["history", "k0"],
    "embed-missing": ["embed-missing", "--limit", "5"],
    "upsert": ["upsert", "the kettle is new", "--key", "k0", "--user", "ann"],
    "update": ["update", "k0", "--importance", "0.9", "--reason", "it matters"],
    "supersede": ["supersede", "k0", "k1", "--with", "the kettle is broken"],
    "retire": ["retire", "k0", "--yes", "--reason", "old"],
    "unretire": ["unretire", "00000005"],
    "delete": ["delete", "k0", "--yes"],
    "forget": ["forget", "k0", "--yes", "--reason", "she asked"],
    "get": ["get", "k0"],
    "list": ["list", "--user", "ann"],
    "search": ["search", "kettle", "--mode", "text"],
    "context": ["context", "kettle", "--user", "ann", "--session", "s", "--budget", "200"],
    "observe": ["observe", TEXT, "--answer", "Noted.", "--user", "ann", "--session", "s"],
    "recent": ["recent", "5", "--user", "ann", "--session", "s"],
    "flush": ["flush", "s", "--user", "ann"],
    "related": ["related", "k0"],
    "queries": ["queries"],
    "usage": ["usage"],
    "lineage": ["lineage", "k0"],
    "stats": ["stats"],
    "sql": ["sql", "select id, content, metadata, embedding, event_at from memories"],
    "export": ["export", "COPY"],
    "export-store": ["export-store", "COPY"],
    "report": ["report", "--out", "COPY"],
    "import-store": ["import-store", "ARCHIVE", "--on-conflict", "skip"],
    "archive": ["archive", "COPY.jsonl", "--user", "bob", "--yes", "--reason", "old"],
    "backup": ["backup", "COPY", "--keep-last", "2"],
    "backups": ["backups", "BACKUPS"],
    "restore": ["restore", "BACKUPS", "COPY"],
    "consolidate": ["consolidate", "--dry-run", "--min-similarity", "0.5"],
    "apply": ["apply", "PLAN", "--yes"],
    "dream": ["dream", "--once", "--min-similarity", "0.5"],
    "retention": ["retention", "--stay", "episodic=0.001s", "--archive", "COPY", "--yes"],
    "quota": ["quota"],
    "distill": ["distill", "--topic", "kettle", "--user", "ann"],
    "optimize": ["optimize"],
    "migrate": ["migrate"],
    "reembed": ["reembed", "--model", "minilm", "--dry-run"],
    "doctor": ["doctor"],
    "log": ["log", "--upkeep"],
    "diff": ["diff", "2", "4"],
    "tag": ["tag", "here"],
    "untag": ["untag", "start", "--yes"],
    "branch": ["branch", "other"],
    "branches": ["branches"],
    "merge": ["merge", "side", "--yes"],
    "checkout": ["checkout", "3", "COPY"],
    "rollback": ["rollback", "start", "--yes"],
    "revert": ["revert", "4", "--yes"],
    "procedures list": ["procedures", "list"],
    "procedures show": ["procedures", "show", "brew"],
    "procedures best": ["procedures", "best", "boil the kettle", "--explain"],
    "procedures learn": ["procedures", "learn", "new", "--context", "a test", "--step", "run it"],
    "procedures record": ["procedures", "record", "brew", "--success", "--seconds", "3"],
    "procedures across-users": ["procedures", "across-users", "--tenant", "t", "--min-users", "2"],
    "profile list": ["profile", "list"],
    "profile show": ["profile", "show", "tea"],
    "profile set": ["profile", "set", "city", "Porto", "--user", "ann", "--confidence", "0.5"],
    "profile remove": ["profile", "remove", "tea", "--yes", "--reason", "she asked"],
    "profile history": ["profile", "history", "tea"],
    "workspace show": ["workspace", "show", "--tenant", "t"],
    "workspace set": ["workspace", "set", "flag/beta", "true", "--tenant", "t"],
    "workspace history": ["workspace", "history", "prompt/system", "--diff", "--tenant", "t"],
    "workspace rollback": ["workspace", "rollback", "prompt/system", "1", "--tenant", "t"],
    "workspace remove": ["workspace", "remove", "prompt/system", "--tenant", "t", "--yes"],
    "workspace enable": ["workspace", "enable", "search", "--tenant", "t"],
    "workspace disable": ["workspace", "disable", "search", "--tenant", "t", "--agent", "a"],
    "workspace export": ["workspace", "export", "COPY", "--tenant", "t"],
    "workspace import": ["workspace", "import", "FILES", "--tenant", "t", "--yes"],
    "share": ["share", "k0", "--user", "ann", "--with-user", "bob", "--yes"],
    "shares": ["shares", "--user", "ann"],
    "revoke": ["revoke", "GRANT", "--yes", "--reason", "it is over"],
    "index build": ["index", "build"],
    "index show": ["index", "show"],
    "index recall": ["index", "recall", "--sample", "3"],
}
SILENT = {"related", "lineage", "queries", "migrate"}


def test_every_command_is_in_the_table():
    assert set(COMMANDS) == set(commands())


@pytest.fixture
def waiting(store, tmp_path):
    """What of the write path waits in the store, by the word that stands for it."""
    names: dict[str, str] = {}

    def made(*words):
        opened = MemoryStore.open(store, create=False)
        if "PENDING" in words or words[0] == "pending":
            names["PENDING"] = opened.add("she may like tea", user="ann", state="pending").id
        if words[0] == "clarify":
            for day, city in ((1, "Lisbon"), (2, "Porto")):
                at = f"2025-01-0{day}T12:00:00+00:00"
                said = {"role": "user", "content": f"I live in {city} with my cats.", "at": at}
                opened.ingest([said], user="ann")
            (names["CLASH"],) = [one.memory.id for one in opened.clarifications()]
        if words[0] in ("jobs", "worker"):
            desk = opened.jobs
            for name in ("DEAD", "JOB"):
                names[name] = opened.ingest(TEXT, user="ann", wait=False).job
            (scope,) = desk.get(names["DEAD"]).scopes
            none = {"messages": [{"content": 7}], "scope": {}, "source": "", "domain": ""}
            desk.records.put_payload(names["DEAD"], [(scope, none)])
            if words[0] == "jobs":
                opened.worker().drain()
        if words[0] == "procedures":
            for user in ("ann", "bob"):
                layer = ProceduralMemory(opened.scoped(tenant="t", user=user))
                if user == "ann" or "across-users" in words:
                    layer.learn("brew", context="boil the red kettle", steps=["fill", "heat"])
        if words[0] == "profile":
            ProfileMemory(opened.scoped(user="ann")).set("tea", {"sort": "green", "sugar": False})
        if words[0] == "workspace":
            told = Workspace(opened.scoped(tenant="t"))
            told.set_skill("search", "Look twice.", kind="tool", enabled=False)
            told.set_prompt("system", "Be kind.")
            if "FILES" in words:
                names["FILES"] = str(tmp_path / "files")
                told.export_files(names["FILES"])
            told.set_prompt("system", "Be kind.\nBe brief.")
        if words[0] in ("recent", "flush"):
            talk = Agent(opened.scoped(user="ann")).working
            talk.append_message("s", "user", TEXT)
        if words[0] in ("shares", "revoke"):
            ann = opened.scoped(user="ann")
            names["GRANT"] = ann.sharing.share(with_={"user": "bob"}, tags="odd").id
        if words[0] == "watermarks":
            opened.ingest([{"role": "user", "content": TEXT, "seq": 0}], tenant="t", ordered=True)
        opened.close()
        return names

    return made


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_answers_in_every_format(
    name, form, lmem, store, plan_file, moved, waiting, tmp_path
):
    copies = {name: str(tmp_path / name.lower()) for name in ("COPY", "COPY.jsonl")}
    places = {"PLAN": str(plan_file), **copies, **moved, **waiting(*COMMANDS[name])}
    words = [places.get(word, word) for word in COMMANDS[name]]
    done = lmem(*words, "--format", form, stdin=f'{{"content": "{TEXT}"}}\n')
    assert (done.code, "error" in done.err) == (0, False), done.err
    assert done.out.strip() or name in SILENT
    if form == "json":
        assert isinstance(done.json, dict | list)
    if form == "jsonl":
        assert all(isinstance(line, dict) for line in done.lines)
    if form == "quiet":
        assert all(" " not in line.strip() for line in done.out.splitlines()) or name == "sql"
        assert done.err == ""


@pytest.mark.parametrize("words", [["--format", "json", "list"], ["list", "--format", "json"]])
def test_a_global_option_stands_before_or_after_the_command(words, lmem, store):
    assert len(lmem(*words).json) == 5


def test_the_option_after_the_command_wins(lmem, store):
    done = lmem("--format", "quiet", "--store", "/nowhere", "list", "--store", store)
    assert (done.code, len(done.out.split())) == (0, 5)


def test_a_memory_is_printed_with_every_column_but_the_embedding(lmem, store):
    shown = lmem("get", "k0", "--format", "json").json
    assert "embedding" not in shown
    whole = lmem("get", "k0", "--format", "json", "--with-embedding").json
    assert set(whole) - set(shown) == {"embedding"}
    assert len(whole["embedding"]) == 384
    assert shown["event_at"] == "2025-01-01T12:00:00+00:00"
    assert (shown["metadata"], shown["tags"]) == (
        {"n": 0, "place": "Lisbon"},
        ["even", "two words"],
    )


def test_embeddings_are_listed_only_when_asked_for(lmem, store):
    listed = lmem("list", "--limit", "1", "--with-embedding", "--format", "json").json
    assert len(listed[0]["embedding"]) == 384
    assert "embedding" not in lmem("sql", "select * from memories", "--format", "json").json[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--user", "bob"], ["k4"]),
        (["--user", "bob", "--state", "any"], ["k4", "k5"]),
        (["--states", "retired"], ["k5"]),
        (["--state", "retired", "--state", "active"], ["k0", "k1", "k2", "k3", "k4", "k5"]),
        (["--tag", "two words", "--user", "ann"], ["k0", "k2"]),
        (["--metadata", "n=3"], ["k3"]),
        (["--metadata", "place=Lisbon", "--metadata", "n=0"], ["k0"]),
        (["--since", "2025-01-04", "--until", "2025-01-05T12:00:00Z"], ["k3"]),
        (["--key", "k2"], ["k2"]),
        (["--kind", "semantic"], []),
        (["--limit", "2", "--offset", "1"], ["k1", "k2"]),
        (["--limit", "2", "--newest-first"], ["k4", "k3"]),
        (["--min-importance", "0.6"], []),
        (["--valid-at", "2030-01-01"], ["k0", "k1", "k2", "k3", "k4"]),
    ],
)
def test_filters_choose(words, expected, lmem, store):
    assert [m["key"] for m in lmem("list", *words, "--format", "jsonl").lines] == expected


def test_what_a_human_sees_can_be_typed(lmem, store):
    """Tables show a key or a beginning of an id, and both name the memory."""
    shown = lmem("list", "--state", "any", "--user", "bob").out.splitlines()[1:]
    names = [line.split()[0] for line in shown]
    assert names == ["k4", "00000005"]
    assert [lmem("get", name, "--format", "quiet").code for name in names] == [0, 0]


def test_add_takes_every_detail(lmem, fresh):
    added = lmem(
        "add", "-", "--store", fresh, "--user", "ann", "--key", "tea", "--kind", "semantic",
        "--tag", "a", "--tag", "b", "--metadata", "n=1", "--metadata", "s=x=y", "--importance", "1",
        "--event-at", "2025-02-03T04:05:06+02:00", "--seq", "7", "--source-ref", "chat",
        "--author", "me", "--format", "quiet", stdin="tea\nwith milk\n",
    )  # fmt: skip
    got = lmem("get", added.out.strip(), "--store", fresh, "--format", "json").json
    expected = {
        "content": "tea\nwith milk", "user": "ann", "key": "tea", "kind": "semantic",
        "tags": ["a", "b"], "metadata": {"n": 1, "s": "x=y"}, "importance": 1.0, "seq": 7,
        "event_at": "2025-02-03T02:05:06+00:00", "source_ref": "chat",
    }  # fmt: skip
    assert {name: got[name] for name in expected} == expected
    assert lmem("log", "--store", fresh, "--format", "jsonl").lines[0]["actor"] == "me"


def test_adding_twice_names_the_memory_that_is_there(lmem, store):
    first = lmem("add", "said once", "--user", "ann", "--format", "json").json
    again = lmem("add", "said once", "--user", "ann", "--format", "json").json
    assert (again["id"], again["outcome"]) == (first["id"], "already_there")


def test_a_scope_is_a_boundary_for_names_too(lmem, store, ids):
    assert lmem("get", ids[0], "--user", "bob").code == 3
    assert lmem("retire", ids[0], "--user", "bob", "--yes").code == 3
    assert lmem("get", ids[0], "--user", "ann").code == 0


def test_refs_come_from_stdin(lmem, store, ids):
    listed = lmem("list", "--user", "ann", "--format", "quiet").out
    assert lmem("retire", "-", "--yes", stdin=listed).code == 0
    assert lmem("list", "--user", "ann", "--format", "quiet").out == ""


def test_a_branch_keeps_its_writes(lmem, store):
    assert lmem("delete", "k0", "--yes", "--branch", "side").code == 0
    assert lmem("get", "k0", "--branch", "side").code == 3
    assert lmem("get", "k0").code == 0
    assert lmem("branch", "side", "--delete", "--yes").code == 0
    assert lmem("branches", "--format", "quiet").out == ""


def test_tag_and_branch_without_a_name_list(lmem, store):
    assert lmem("tag", "--format", "json").json == {"start": 3}
    assert lmem("branch", "--format", "quiet").out == "side\n"


def test_a_hit_by_meaning_shows_how_near_it_is(lmem, store):
    """1.000 stood alone beside a text that had nothing to do with the question."""
    (near,) = lmem("search", "the red kettle is broken", "-k", "1", "--format", "json").json["hits"]
    head = lmem("search", "the red kettle is broken", "-k", "1").out.splitlines()[0]
    assert head.startswith(f"1.000  cos {near['similarity']:.2f}  ")
    assert len(head) <= 80
    assert "cos" not in lmem("search", "kettle", "--mode", "text", "-k", "1").out


def test_a_search_explains_itself(lmem, store):
    done = lmem("search", "kettle", "--mode", "text", "--explain")
    assert done.out.startswith("words: kettle\n")
    assert "from words 1.000 = 1.000 (not by vector, BM25" in " ".join(done.out.split())
    assert lmem("search", "zebra", "--mode", "text").err == "nothing found\n"


def test_a_search_ranks_as_asked(lmem, store):
    ranked = ("--importance", "0.5", "--half-life", "30d", "--fusion", "rrf", "--neighbours", "0")
    (hit,) = lmem("search", "kettle", "--k", "1", *ranked, "--format", "json").json["hits"]
    assert hit["parts"]["importance"] == 0.75
    assert hit["parts"]["recency"] < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--floor", "0.2"], "--floor says what --half-life leaves; give both"),
        (["--half-life", "0s"], "--half-life '0s' is no age"),
    ],
)
def test_a_search_says_what_its_age_lacks(lmem, store, options, message):
    done = lmem("search", "kettle", *options)
    assert (done.code, message in " ".join(done.err.split())) == (2, True), done.err


def test_init_says_whether_the_store_is_new(lmem, fresh):
    assert "made a new store" in lmem("init", "--store", fresh).err
    assert lmem("init", "--store", fresh).err == ""


def test_diff_lines_name_the_change(lmem, store):
    lines = lmem("diff", "3", "--format", "jsonl").lines
    assert [(line["change"], line["id"][:8]) for line in lines] == [("updated", "00000005")]
    assert json.loads(json.dumps(lines[0]["columns"])) == ["state_at", "state", "state_reason"]
    assert "1 updated" in lmem("diff", "3").out
