"""`lmem workspace`: what a person sees of it, and that nothing goes unasked."""

from __future__ import annotations

import shlex

import pytest

from lance_memory import MemoryStore, Workspace

T = ("--tenant", "t")


@pytest.fixture
def told(store):
    """A workspace with two versions of a prompt, a skill and a policy."""
    workspace = Workspace(MemoryStore.open(store, author="ops").scoped(tenant="t"))
    workspace.set_prompt("system", "Be kind.", reason="begin")
    workspace.set_prompt("system", "Be kind.\nBe brief.", reason="shorter")
    workspace.set_skill("search", "Look twice.", kind="tool")
    workspace.set_policy("retention", {"days": 90})
    return workspace


def lines(done):
    return [" ".join(line.split()) for line in done.out.splitlines()]


def test_all_of_it_is_a_line_for_each(lmem, told):
    lmem("workspace", "disable", "search", *T, "--agent", "bot", "--author", "me")
    shown = lines(lmem("workspace", "show", *T, "--agent", "bot"))
    day = f"{told.get('prompt', 'system').at:%Y-%m-%d}"
    assert shown == [
        "ITEM VERSION SINCE OF CONTENT",
        f'policy/retention 1 {day} tenant {{ "days": 90 }}',
        f"prompt/system 2 {day} tenant Be kind. Be brief.",
        f"skill/search 1 off {day} bot Look twice.",
    ]


def test_json_has_it_by_its_parts(lmem, told):
    state = lmem("workspace", "show", *T, "--format", "json").json
    parts = ("memory_mode", "prompts", "policies", "flags")
    assert {name: state[name] for name in parts} == {
        "memory_mode": "hybrid",
        "prompts": {"system": "Be kind.\nBe brief."},
        "policies": {"retention": {"days": 90}},
        "flags": {},
    }
    assert state["skills"]["search"]["kind"] == "tool"
    assert [item["version"] for item in state["items"]] == [1, 2, 1]


def test_a_past_version_shows_what_was_told_then(lmem, told):
    then = lmem("log", "--format", "json").json[-2]["version"]
    whole = lmem("workspace", "show", "prompt/system", *T, "--at", then + 1, "--format", "json")
    assert (whole.json["value"], whole.json["version"]) == ("Be kind.", 1)


def test_the_history_says_what_each_version_changed(lmem, told):
    shown = lines(lmem("workspace", "history", "prompt/system", *T, "--diff"))
    assert [line for line in shown if line[0] in "+-"] == ["+Be kind.", "+Be brief."]
    assert ["begin" in line for line in shown].index(True) == 1
    told.remove("prompt", "system")
    assert "removed" in lmem("workspace", "history", "prompt/system", *T).out


def test_a_skill_that_is_set_anew_keeps_its_kind(lmem, told):
    lmem("workspace", "set", "skill/search", "-", *T, "--disabled", stdin="Look once.\n")
    one = told.state().skills["search"]
    assert (one.text, one.kind, one.enabled, one.version) == ("Look once.", "tool", False, 2)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["show"], 2, "whose workspace? give --tenant NAME"),
        (["show", "--user", "ann"], 2, "whose workspace?"),
        (["show", "system", *T], 2, "'system' is not PART/NAME"),
        (["show", "prompt/nobody", *T], 3, "there are: system"),
        (["show", "grant/x", *T], 2, "--part 'grant'"),
        (["set", "policy/p", "{", *T], 2, "is no JSON"),
        (["set", "prompt/p", "x", "--kind", "tool", *T], 2, "--kind, --enabled and --disabled"),
        (["set", "prompt/system", "x", "--expect", "1", *T], 4, "version 2 stands"),
        (["set", "prompt/system", "x", "--user", "ann", *T], 2, "changed for all users"),
        (["set", "setting/memory_mode", "best", *T], 2, "vector, hybrid, distilled"),
        (["rollback", "prompt/system", "7", *T], 3, "no version 7"),
        (["remove", "flag/x", *T], 3, "no flag 'x'"),
        (["enable", "sing", *T], 3, "there are: search"),
        (["import", "nowhere", *T], 3, "no workspace.json"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(lmem, told, words, code, message):
    before = told.state()
    done = lmem("workspace", *words)
    assert (done.code, message in done.err) == (code, True), done.err
    assert told.state() == before


@pytest.mark.parametrize("verb", ["remove", "import"])
def test_nothing_that_is_told_goes_unasked(lmem, told, tmp_path, verb):
    told.export_files(tmp_path / "w")
    (tmp_path / "w/skills/search.md").unlink()
    words = {
        "remove": ["remove", "skill/search"],
        "import": ["import", tmp_path / "w"],
    }[verb]
    before = told.state()
    refused = lmem("workspace", *words, *T)
    assert (refused.code, refused.out, "--yes" in refused.err) == (2, "", True)
    shown = lmem("workspace", *words, *T, "--dry-run")
    assert (shown.code, "nothing was written" in shown.err) == (0, True)
    assert shown.out.strip()
    assert lmem("workspace", *words, *T, stdin="n\n", terminal=True).code == 2
    assert told.state() == before
    assert lmem("workspace", *words, *T, stdin="y\n", terminal=True).code == 0
    assert told.state() != before


CHANGES = {
    "set": ["set", "prompt/system", "Be kind."],
    "rollback": ["rollback", "prompt/system", "1"],
    "enable": ["enable", "search"],
    "disable": ["disable", "search"],
}


@pytest.mark.parametrize("verb", CHANGES)
def test_what_can_be_undone_as_it_was_done_is_shown_and_not_asked_about(lmem, told, verb):
    """One rule for all that make a new version of one item."""
    if verb == "enable":
        told.disable("search")
    before = told.state()
    planned = lmem("workspace", *CHANGES[verb], *T, "--dry-run")
    assert (planned.code, planned.err) == (0, "dry run: nothing was written\n")
    assert told.state() == before
    done = lmem("workspace", *CHANGES[verb], *T)
    assert done.code == 0
    assert lines(done)[1:] == lines(planned)[1:] != []
    (hint,) = done.err.splitlines()
    name, command = hint.split(": ", 1)
    assert (name, command.split()[:2]) == ("to undo", ["lmem", "workspace"])
    values = [(item.key, item.value) for item in told.state().items]
    assert values != [(item.key, item.value) for item in before.items]
    assert lmem(*shlex.split(command)[1:]).code == 0
    assert [(i.key, i.value) for i in told.state().items] == [
        (i.key, i.value) for i in before.items
    ]


def test_what_was_before_what_is_now_and_how_to_undo_it(lmem, told):
    done = lmem("workspace", "rollback", "prompt/system", "1", *T)
    assert lines(done) == [
        f"prompt/system is at version 3 (store version {told.state().version})",
        "Be kind.",
        "-Be brief.",
    ]
    assert done.err == "to undo: lmem workspace rollback prompt/system 2 --tenant=t\n"
    own = lmem("workspace", "set", "prompt/system", "Be exact.", *T, "--agent", "the bot")
    assert lines(own)[1:] == ["-Be kind.", "+Be exact."]
    assert own.err == "to undo: lmem workspace remove prompt/system --tenant=t '--agent=the bot'\n"
    again = lmem("workspace", "set", "prompt/system", "Be kind.", *T)
    assert (lines(again), again.err) == (["prompt/system says so already, at version 3"], "")


def test_a_dry_run_says_in_json_what_becomes_of_the_item(lmem, told):
    words = ("workspace", "set", "policy/retention", '{"days": 30}', *T, "--dry-run")
    assert lmem(*words, "--format", "json").json == {
        "part": "policy",
        "name": "retention",
        "version": 1,
        "before": {"days": 90},
        "after": {"days": 30},
        "diff": [" {", '-  "days": 90', '+  "days": 30', " }"],
    }
    assert lmem(*words, "--expect", "4").code == 4
    done = lmem("workspace", "set", "policy/retention", '{"days": 30}', *T, "--format", "json").json
    assert (done["before"]["version"], done["item"]["version"]) == (1, 2)


def test_files_go_there_and_back(lmem, told, tmp_path):
    done = lmem("workspace", "export", tmp_path / "w", *T, "--format", "quiet")
    assert done.out.split() == ["prompts/system.md", "skills/search.md", "workspace.json"]
    again = lmem("workspace", "export", tmp_path / "w", *T)
    assert (again.code, "overwrite it with --overwrite" in again.err) == (2, True)
    assert lmem("workspace", "export", tmp_path / "w", *T, "--overwrite").code == 0
    (tmp_path / "w/prompts/judge.md").write_text("Be fair.\n")
    plan = lmem("workspace", "import", tmp_path / "w", *T, "--dry-run")
    assert lines(plan) == [
        "workspace of tenant=t: 1 added, 0 changed, 0 removed, 3 the same",
        "+ prompt/judge",
    ]
    other = ("--tenant", "other", "--yes", "--reason", "moved")
    assert lmem("workspace", "import", tmp_path / "w", *other).code == 0
    prompts = lmem("workspace", "show", "--tenant", "other", "--format", "json").json["prompts"]
    assert prompts == {"system": "Be kind.\nBe brief.", "judge": "Be fair."}
    same = lmem("workspace", "import", tmp_path / "w", *other)
    assert (same.code, "nothing differs" in same.err) == (0, True)
