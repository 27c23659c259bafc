"""A workspace as files: there and back, as one version, and never outside of the directory."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ScopeError,
    Workspace,
    WorkspacePart,
)
from lance_memory.agent.workspace.files import from_files, to_files
from lance_memory.agent.workspace.values import checked_value


@pytest.fixture
def acme(store):
    return Workspace(store.scoped(tenant="acme"))


@pytest.fixture
def full(acme):
    acme.set_prompt("system", "You are kind.\n")
    acme.set_skill("search", "Look twice.", kind="tool", enabled=False)
    acme.set_memory_mode("vector")
    acme.set_policy("retention", {"days": 90})
    acme.set_flag("beta", True)
    return acme


def values(workspace):
    return {str(item): item.value for item in workspace.state().items}


def files_in(directory):
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


def test_the_files_are_for_people(full, tmp_path):
    names = full.export_files(tmp_path / "w")
    assert names == ["prompts/system.md", "skills/search.md", "workspace.json"]
    settings_of = {
        "flags": {"beta": True},
        "format": "lance-memory workspace 1",
        "memory_mode": "vector",
        "policies": {"retention": {"days": 90}},
    }
    assert files_in(tmp_path / "w") == {
        "prompts/system.md": b"You are kind.\n\n",
        "skills/search.md": b"---\nkind: tool\nenabled: false\n---\nLook twice.\n",
        "workspace.json": (json.dumps(settings_of, indent=2) + "\n").encode(),
    }
    assert (tmp_path / "w").stat().st_mode & 0o777 == 0o700


def test_export_and_import_give_back_the_same_as_one_version(full, store, tmp_path):
    full.export_files(tmp_path / "w")
    other = Workspace(store.scoped(tenant="other"))
    before = store.version
    done = other.import_files(tmp_path / "w", reason="moved")
    assert (values(other), done.version) == (values(full), before + 1)
    assert (store.log()[0].inserted, store.log()[0].reason) == (5, "moved")
    again = other.import_files(tmp_path / "w")
    assert (again.version, bool(again.plan), len(again.plan.same)) == (before + 1, False, 5)


NAMES = st.from_regex(r"[a-z0-9_][a-z0-9_.-]{0,8}[a-z0-9_]", fullmatch=True).filter(
    lambda name: name.split(".")[0] not in {"con", "prn", "aux", "nul"}
)
TEXTS = st.text(min_size=1, max_size=40).filter(lambda text: text.strip())
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ITEMS = st.fixed_dictionaries(
    {
        "prompt": st.dictionaries(NAMES, TEXTS, max_size=3),
        "skill": st.dictionaries(
            NAMES,
            st.fixed_dictionaries(
                {"text": TEXTS, "kind": st.just("") | NAMES, "enabled": st.booleans()}
            ),
            max_size=3,
        ),
        "policy": st.dictionaries(NAMES, JSON.filter(lambda v: v is not None), max_size=3),
        "flag": st.dictionaries(NAMES, st.booleans() | st.integers(0, 9) | st.text(), max_size=3),
        "setting": st.sampled_from([{}, {"memory_mode": "distilled"}]),
    }
)


@settings(deadline=None, max_examples=60)
@given(ITEMS)
def test_what_is_written_is_what_is_read(items):
    told = {
        (WorkspacePart(part), name): checked_value(part, value)
        for part, named in items.items()
        for name, value in named.items()
    }
    assert from_files(to_files(told)) == told


@settings(deadline=None, max_examples=4)
@given(ITEMS)
def test_a_store_gives_back_what_files_told_it(tmp_path_factory, embedder, items):
    from lance_memory import MemoryStore

    told = {
        (WorkspacePart(part), name): checked_value(part, value)
        for part, named in items.items()
        for name, value in named.items()
    }
    where = tmp_path_factory.mktemp("w")
    for name, content in to_files(told).items():
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_bytes(content)
    store = MemoryStore.open(where / "store", embedder=embedder, upkeep=None)
    workspace = Workspace(store.scoped(tenant="t"))
    workspace.import_files(where)
    workspace.export_files(where / "again")
    assert files_in(where / "again") == to_files(told)


def test_an_import_says_first_what_it_would_do(full, store, tmp_path):
    home = tmp_path / "w"
    full.export_files(home)
    (home / "prompts/system.md").write_text("You are brief.\n")
    (home / "prompts/judge.md").write_text("Be fair.\n")
    (home / "skills/search.md").unlink()
    before = store.version
    plan = full.import_files(home, dry_run=True)
    assert store.version == before
    told = [[str(c) for c in some] for some in (plan.added, plan.changed, plan.removed)]
    assert told == [["prompt/judge"], ["prompt/system"], ["skill/search"]]
    (changed,) = plan.changed
    assert (changed.version, changed.before, changed.after) == (
        *(1, "You are kind.\n", "You are brief."),
    )
    assert plan.same == ("flag/beta", "policy/retention", "setting/memory_mode")
    done = full.apply(plan, reason="reviewed")
    assert done.version == before + 1
    assert full.state().prompts == {"judge": "Be fair.", "system": "You are brief."}
    assert full.skills() == []
    (entry, *_) = store.log()
    assert (entry.inserted, entry.updated, entry.reason) == (2, 2, "reviewed")
    store.revert(done.version)
    assert [s.name for s in full.skills()] == ["search"]


def test_a_plan_is_stale_once_an_item_of_it_was_changed(full, store, tmp_path):
    full.export_files(tmp_path / "w")
    (tmp_path / "w/prompts/system.md").write_text("You are brief.")
    (tmp_path / "w/skills/search.md").unlink()
    plan = full.import_files(tmp_path / "w", dry_run=True)
    full.set_flag("beta", False)  # not in the plan
    full.enable("search")
    before = store.version
    with pytest.raises(ConflictError, match="skill/search: version 2 stands, and not version 1"):
        full.apply(plan)
    assert store.version == before
    with pytest.raises(InvalidInputError, match="of the workspace of tenant=acme"):
        Workspace(store.scoped(tenant="other")).apply(plan)
    with pytest.raises(InvalidInputError, match="takes a WorkspacePlan"):
        full.apply(tmp_path / "w")


def test_an_agents_files_have_its_own_items_alone(full, store, tmp_path):
    bot = Workspace(store.scoped(tenant="acme", agent="bot"))
    bot.set_prompt("system", "I am the bot.")
    assert bot.export_files(tmp_path / "w") == ["prompts/system.md", "workspace.json"]
    assert not bot.import_files(tmp_path / "w").plan
    assert len(bot.state().items) == 5


def test_a_user_imports_nothing(full, store, tmp_path):
    full.export_files(tmp_path / "w")
    ann = Workspace(store.scoped(tenant="acme", user="ann"))
    with pytest.raises(ScopeError, match="changed for all users"):
        ann.import_files(tmp_path / "w", dry_run=True)


def test_files_that_are_there_are_replaced_only_when_asked(full, tmp_path):
    home = tmp_path / "w"
    full.export_files(home)
    (home / "README.md").write_text("mine")
    (home / "prompts/.hidden").write_text("somebody else's")
    full.remove("skill", "search")
    full.set_prompt("judge", "Be fair.")
    before = files_in(home)
    with pytest.raises(InvalidInputError, match="has files of a workspace, such as prompts/sys"):
        full.export_files(home)
    assert files_in(home) == before
    full.export_files(home, overwrite=True)
    assert sorted(files_in(home)) == [
        *(
            "README.md",
            "prompts/.hidden",
            "prompts/judge.md",
            "prompts/system.md",
            "workspace.json",
        ),
    ]


def test_a_directory_that_is_there_and_has_none_takes_them(full, tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/code.py").write_text("pass")
    full.export_files(tmp_path / "repo")
    assert "code.py" in files_in(tmp_path / "repo")


def test_an_export_that_fails_leaves_nothing(full, tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lance_memory.agent.workspace.files.write_whole", full_disk)
    with pytest.raises(OSError, match="No space left"):
        full.export_files(tmp_path / "w")
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_store_is_no_place_for_files(full, store, tmp_path):
    with pytest.raises(InvalidInputError, match="is inside the store"):
        full.export_files(tmp_path / "store" / "w")


def test_a_directory_without_workspace_json_is_none(full, tmp_path):
    for place in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotFoundError, match=r"no workspace\.json"):
            full.import_files(place)
    assert len(full.state().items) == 5


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("workspace.json", b"{", "workspace.json: it is not JSON"),
        ("workspace.json", b"[]", "it is a JSON object with format"),
        ("workspace.json", b'{"format": "x"}', "with format 'lance-memory workspace 1'"),
        ("workspace.json", b"\xff", "not UTF-8"),
        ("prompts/system.md", b"\xff", "prompts/system.md: it is not UTF-8"),
        ("prompts/system.md", b"\n", "not blank"),
        ("prompts/system.md", b"x" * 262_200, "262,200 bytes; it takes 262,144"),
        ("prompts/system.md", b"x" * 300_000, "more than"),
        ("prompts/a b.md", b"x", "prompts/a b.md: name="),
        ("prompts/notes.txt", b"x", "it is no file NAME.md"),
        ("skills/s.md", b"---\nkind: tool\nx", "does not end with it"),
        ("skills/s.md", b"---\nowner: me\n---\nx", "header has the line 'owner: me'"),
        ("skills/s.md", b"---\nenabled: yes\n---\nx", "enabled='yes'"),
        ("skills/s.md", b"---\nkind: a b\n---\nx", "kind="),
    ],
)
def test_a_file_that_is_none_of_a_workspaces_is_named(full_files, file, content, words):
    workspace, home = full_files
    before = (home / file).read_bytes() if (home / file).exists() else None
    (home / file).write_bytes(content)
    try:
        with pytest.raises(InvalidInputError, match=words):
            workspace.import_files(home)
    finally:
        (home / file).unlink()
        if before is not None:
            (home / file).write_bytes(before)


@pytest.fixture(scope="module")
def full_files(tmp_path_factory, embedder):
    """A workspace of one prompt, and its files; the tests put everything back."""
    from lance_memory import MemoryStore

    place = tmp_path_factory.mktemp("full")
    store = MemoryStore.open(place / "store", embedder=embedder, upkeep=None)
    workspace = Workspace(store.scoped(tenant="t"))
    workspace.set_prompt("system", "kind")
    workspace.export_files(place / "w")
    return workspace, place / "w"


def test_a_skill_may_come_without_a_header_and_with_any_line_ends(full, tmp_path):
    home = tmp_path / "w"
    full.export_files(home)
    (home / "skills/plain.md").write_bytes(b"Just do it.")
    (home / "skills/dos.md").write_bytes(b"---\r\nenabled: false\r\n---\r\nOne\r\nTwo\r\n")
    full.import_files(home)
    plain, dos = (full.state().skills[name] for name in ("plain", "dos"))
    assert (plain.text, plain.kind, plain.enabled) == ("Just do it.", "", True)
    assert (dos.text, dos.enabled) == ("One\r\nTwo\r", False)


@pytest.mark.parametrize("link", ["workspace.json", "prompts", "prompts/x.md", "skills"])
def test_no_link_is_followed(link, full, tmp_path):
    home, outside = tmp_path / "w", tmp_path / "outside"
    full.export_files(home)
    outside.mkdir()
    (outside / "x.md").write_text("secret")
    target = outside if "." not in link else outside / "x.md"
    place = home / link
    if place.is_dir():
        place.rename(tmp_path / "away")
    place.unlink(missing_ok=True)
    place.symlink_to(target, target_is_directory=target.is_dir())
    with pytest.raises(InvalidInputError, match=f"{link}: it is a link"):
        full.import_files(home)
    with pytest.raises(InvalidInputError, match="it is a link"):
        full.export_files(home, overwrite=True)
    assert files_in(outside) == {"x.md": b"secret"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_no_file(full, tmp_path):
    full.export_files(tmp_path / "w")
    os.mkfifo(tmp_path / "w/prompts/pipe.md")
    with pytest.raises(InvalidInputError, match=r"pipe\.md: it is no file"):
        full.import_files(tmp_path / "w")


def test_a_header_behind_a_byte_order_mark_is_one():
    """A disabled skill that such an editor had saved came back enabled, its header in its text."""
    saved = b"\xef\xbb\xbf---\r\nkind: tool\r\nenabled: false\r\n---\r\nstir\r\n"
    (skill,) = from_files({"skills/stir.md": saved}).values()
    assert skill == {"text": "stir\r", "kind": "tool", "enabled": False}


def test_a_dry_run_refuses_two_names_that_differ_in_case_alone(acme, tmp_path):
    """dry-run == apply."""
    acme.set_prompt("system", "be kind")
    acme.export_files(tmp_path / "w")
    if (tmp_path / "w/prompts/System.md").exists():
        pytest.skip("this file system does not tell case apart")
    (tmp_path / "w/prompts/System.md").write_text("be brief\n")
    for dry_run in (True, False):
        with pytest.raises(InvalidInputError, match="differ in case alone"):
            acme.import_files(tmp_path / "w", dry_run=dry_run)
