"""What an agent is told: versions, checks, history, and never a memory."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    Decay,
    InvalidInputError,
    ItemOutcome,
    Limit,
    MemoryMode,
    NotFoundError,
    Quota,
    QuotaExceededError,
    Scope,
    ScopeError,
    Skill,
    StoreFormatError,
    Workspace,
    WorkspacePart,
    WorkspaceView,
)
from lance_memory.testing import check

ACME = Scope(tenant="acme")


@pytest.fixture
def store(tmp_path, reopen):
    return reopen(tmp_path / "store", author="ops")


@pytest.fixture
def acme(store):
    return Workspace(store.scoped(tenant="acme"))


def told(workspace):
    """Everything, without versions."""
    state = workspace.state()
    skills = {name: (one.text, one.kind, one.enabled) for name, one in state.skills.items()}
    return state.memory_mode, state.prompts, skills, state.policies, state.flags


def test_a_new_workspace_is_empty_and_recalls_by_meaning_and_words(acme):
    assert told(acme) == (MemoryMode.HYBRID, {}, {}, {}, {})
    assert (acme.memory_mode, acme.skills(), acme.flag("beta")) == (MemoryMode.HYBRID, [], False)
    with pytest.raises(NotFoundError, match="no prompt 'system' in the workspace of tenant=acme"):
        acme.prompt()


def test_what_is_set_is_read_back(acme):
    acme.set_prompt("system", "You are kind.\n")
    acme.set_skill("search", "Look twice.", kind="tool")
    acme.set_skill("sing", "La la.", enabled=False)
    acme.set_memory_mode("distilled")
    acme.set_policy("retention", {"days": 90, "kinds": ["episodic"]})
    acme.set_flag("beta", True)
    acme.set_flag("share", 0.25)
    assert told(acme) == (
        MemoryMode.DISTILLED,
        {"system": "You are kind.\n"},
        {"search": ("Look twice.", "tool", True), "sing": ("La la.", "", False)},
        {"retention": {"days": 90, "kinds": ["episodic"]}},
        {"beta": True, "share": 0.25},
    )
    assert acme.prompt() == "You are kind.\n"
    search = Skill(name="search", text="Look twice.", kind="tool", version=1)
    assert acme.skills(enabled=True) == [search]
    assert acme.policy("retention")["days"] == 90
    assert (acme.flag("share"), acme.flag("other", default="x")) == (0.25, "x")


def test_every_change_is_a_version_with_who_when_and_why(acme, store, clock):
    first = acme.set_prompt("system", "one", reason="begin")
    second = acme.set_prompt("system", "two", reason="better")
    assert (second.outcome, second.version) == (ItemOutcome.SET, first.version + 1)
    history = acme.history("prompt", "system")
    assert [(i.version, i.text, i.by, i.reason) for i in history] == [
        (1, "one", "ops", "begin"),
        (2, "two", "ops", "better"),
    ]
    assert history[0].at < history[0].until <= history[1].at + timedelta(minutes=1)
    assert (history[1].until, history[1].removed) == (None, False)
    (entry, *_) = store.log()
    assert (entry.operation, entry.reason, entry.actor) == ("upsert", "better", "ops")
    check(store)


def test_the_same_value_again_makes_no_version(acme, store):
    acme.set_policy("p", {"a": 1, "b": [True]})
    before = store.version
    again = acme.set_policy("p", {"b": [True], "a": 1})
    assert (again.outcome, again.item.version) == (ItemOutcome.UNCHANGED, 1)
    assert store.version == before
    assert acme.set_policy("p", {"b": [1], "a": 1}).outcome is ItemOutcome.SET  # true is not 1


def test_a_stale_version_writes_nothing_and_the_error_names_the_present_one(acme, store):
    acme.set_prompt("system", "one", expected_version=0)
    acme.set_prompt("system", "two", expected_version=1)
    before = store.version
    for stale in (0, 1, 3):
        with pytest.raises(ConflictError, match="prompt/system: version 2 stands, and not"):
            acme.set_prompt("system", "three", expected_version=stale)
        with pytest.raises(ConflictError, match="version 2 stands"):
            acme.remove("prompt", "system", expected_version=stale)
        with pytest.raises(ConflictError, match="version 2 stands"):
            acme.rollback("prompt", "system", 1, expected_version=stale)
    with pytest.raises(ConflictError, match="nothing stands, and not version 4"):
        acme.set_flag("f", True, expected_version=4)
    assert store.version == before
    assert acme.prompt() == "two"


def test_of_many_who_read_the_same_version_one_wins(acme, tmp_path, reopen):
    acme.set_prompt("system", "start")
    outcomes = []

    def change(number):
        handle = Workspace(reopen(tmp_path / "store").scoped(tenant="acme"))
        try:
            handle.set_prompt("system", f"by {number}", expected_version=1)
        except ConflictError:
            outcomes.append("conflict")
        else:
            outcomes.append("won")

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(outcomes) == ["conflict", "conflict", "conflict", "won"]
    assert [i.version for i in acme.history("prompt", "system")] == [1, 2]


def test_of_many_who_remove_an_item_one_does(acme, tmp_path, reopen):
    """Guards the answer of the others, who found it gone and said that they had removed it."""
    acme.set_prompt("system", "start")
    handles = [Workspace(reopen(tmp_path / "store").scoped(tenant="acme")) for _ in range(3)]
    ready, outcomes = threading.Barrier(len(handles)), []

    def remove(handle):
        ready.wait()
        try:
            outcomes.append(handle.remove("prompt", "system").outcome)
        except NotFoundError:
            outcomes.append("gone")

    threads = [threading.Thread(target=remove, args=(handle,)) for handle in handles]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(outcomes) == ["gone", "gone", ItemOutcome.REMOVED]


def test_without_a_check_nobody_loses_a_version(acme, tmp_path, reopen):
    def change(number):
        Workspace(reopen(tmp_path / "store").scoped(tenant="acme")).set_flag("f", number)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    history = acme.history("flag", "f")
    assert [i.version for i in history] == [1, 2, 3, 4]
    assert {i.value for i in history} == {0, 1, 2, 3}


def test_a_rollback_is_a_new_version_with_the_old_value(acme):
    for text in ("one", "two"):
        acme.set_prompt("system", text)
    back = acme.rollback("prompt", "system", 1)
    assert (back.item.version, back.item.reason) == (3, "rollback to version 1")
    assert [i.text for i in acme.history("prompt", "system")] == ["one", "two", "one"]
    assert acme.rollback("prompt", "system", 3).outcome is ItemOutcome.UNCHANGED
    with pytest.raises(NotFoundError, match="no version 9 of the prompt 'system'"):
        acme.rollback("prompt", "system", 9)


def test_what_was_removed_comes_back_under_the_next_number(acme, store):
    acme.set_skill("search", "Look.", kind="tool")
    gone = acme.remove("skill", "search", reason="not used")
    assert (gone.outcome, gone.item.version, acme.skills()) == (ItemOutcome.REMOVED, 1, [])
    (one,) = acme.history("skill", "search")
    assert (one.removed, one.until is None) == (True, False)
    with pytest.raises(NotFoundError, match="has no skill 'search' of its own"):
        acme.remove("skill", "search")
    acme.rollback("skill", "search", 1)
    assert acme.skills() == [Skill(name="search", text="Look.", kind="tool", version=2)]
    check(store)


def test_a_skill_is_switched_and_nothing_else_of_it(acme):
    acme.set_skill("search", "Look.", kind="tool")
    acme.disable("search", reason="costs")
    assert acme.skills(enabled=True) == []
    acme.enable("search")
    assert acme.skills() == [Skill(name="search", text="Look.", kind="tool", version=3)]
    with pytest.raises(NotFoundError, match=r"no skill 'sing'.*there are: search"):
        acme.enable("sing")


def test_versions_of_an_item_are_compared_line_by_line(acme):
    acme.set_prompt("system", "Be kind.\nBe brief.")
    acme.set_prompt("system", "Be kind.\nBe exact.")
    assert acme.diff("prompt", "system", 1) == [
        "--- prompt/system version 1",
        "+++ prompt/system version 2",
        "@@ -1,2 +1,2 @@",
        " Be kind.",
        "-Be brief.",
        "+Be exact.",
    ]


def test_of_a_skill_its_kind_and_its_switch_are_compared_too(acme):
    """Guards against a version that seems to have changed nothing."""
    acme.set_skill("search", "Look.", kind="tool")
    done = acme.disable("search")
    assert done.change.lines == [" kind: tool", "-enabled: yes", "+enabled: no", " Look."]
    assert acme.diff("skill", "search", 1)[3:] == done.change.lines


def test_a_change_says_what_was_told_before(acme, store):
    first = acme.set_prompt("system", "one")
    second = acme.set_prompt("system", "two")
    assert (first.before, second.before.value, second.before.version) == (None, "one", 1)
    bot = Workspace(store.scoped(tenant="acme", agent="bot"))
    own = bot.set_prompt("system", "three")
    assert (own.before.value, own.before.scope, own.item.version) == ("two", ACME, 1)
    assert own.change.lines == ["-two", "+three"]
    gone = bot.remove("prompt", "system")
    assert (gone.before.value, gone.change.lines) == ("three", ["-three"])


def test_a_version_is_had_by_its_number_whether_it_stands_or_not(acme):
    acme.set_flag("f", 1)
    acme.set_flag("f", 2)
    acme.remove("flag", "f")
    assert [acme.get("flag", "f", version=n).value for n in (1, 2)] == [1, 2]
    with pytest.raises(NotFoundError, match="no version 3 of the flag 'f'"):
        acme.get("flag", "f", version=3)
    with pytest.raises(InvalidInputError, match="version=0"):
        acme.get("flag", "f", version=0)


def test_a_plan_writes_nothing_and_is_what_setting_does(acme, store):
    """dry-run == apply."""
    acme.set_skill("search", "Look.", kind="tool")
    bot = Workspace(store.scoped(tenant="acme", agent="bot"))
    before = store.version
    for workspace, own in ((acme, 1), (bot, 0)):
        planned = workspace.plan("skill", "search", {"text": "Look twice."}, expected_version=own)
        assert (planned.version, store.version) == (own, before)
        done = workspace.set("skill", "search", {"text": "Look twice."}, expected_version=own)
        assert done.change.lines == planned.lines
        assert (done.before.value, done.item.value) == (planned.before, planned.after)
        before = store.version


def test_a_plan_refuses_what_setting_refuses(acme, store):
    acme.set_prompt("system", "one")
    store.add("mine", tenant="acme", key="workspace:flag/taken")
    ann = Workspace(store.scoped(tenant="acme", user="ann"))
    for workspace, words, expected, error in (
        (acme, ("prompt", "system", " "), None, InvalidInputError),
        (acme, ("prompt", "a/b", "x"), None, InvalidInputError),
        (acme, ("prompt", "System", "x"), None, InvalidInputError),
        (acme, ("prompt", "system", "x"), 7, ConflictError),
        (acme, ("flag", "taken", True), None, ConflictError),
        (ann, ("prompt", "system", "x"), None, ScopeError),
    ):
        for verb in (workspace.plan, workspace.set):
            with pytest.raises(error):
                verb(*words, expected_version=expected)


def test_going_back_in_the_store_gives_version_numbers_again(acme, store):
    """As `Workspace` says: what was read before is to be read anew."""
    acme.set_prompt("system", "one")
    before = store.version
    acme.set_prompt("system", "two")
    store.rollback(before)
    assert acme.set_prompt("system", "three", expected_version=1).item.version == 2
    assert [i.text for i in acme.history("prompt", "system")] == ["one", "three"]


def test_a_full_tenant_can_be_told_what_to_do(tmp_path, reopen):
    """The workspace is no memory: it takes no room, so that the policy that makes room can be set."""
    rows, size = Limit(hard=1), Limit(hard=40)
    store = reopen(tmp_path / "store", quotas=Quota(rows=rows, bytes=size, vectors=rows))
    store.add("the only memory there is room for", tenant="acme")
    with pytest.raises(QuotaExceededError):
        store.add("another", tenant="acme")
    full = Workspace(store.scoped(tenant="acme"))
    assert full.set_policy("retention", {"keep_days": 7}).warnings == ()
    assert full.set_prompt("system", "Be brief, and more than forty bytes long.").item.version == 1
    assert full.rollback("prompt", "system", 1).item.text.startswith("Be brief")
    status = store.quota(tenant="acme")
    assert [use.used for use in status.uses[:3]] == [1, 33, 1]


def test_each_value_is_shown_in_a_line_with_its_id(acme):
    done = acme.set_prompt("system", "Be kind.\nBe brief.")
    at = f"{done.item.id}>"
    assert str(done) == f"version {done.version}: prompt/system is at version 1"
    assert repr(done) == f"<ItemResult {done}, id {at}"
    shown = f"<WorkspaceItem prompt/system version 1: 'Be kind. Be brief.'; tenant=acme, id {at}"
    assert repr(done.item) == shown
    acme.set_skill("search", "Look. " * 30, kind="tool", enabled=False)
    acme.set_policy("a", 1)
    acme.set_policy("b", 1)
    (skill,) = acme.skills()
    assert repr(skill) == (
        f"<Skill 'search' (tool), disabled, version 1: '{('Look. ' * 30)[:59].rstrip()}…'>"
    )
    state = acme.state()
    assert repr(state) == (
        f"<WorkspaceState of tenant=acme version {state.version}: memory mode hybrid, "
        "2 policies, 1 prompt, 1 skill>"
    )
    assert repr(acme.plan("prompt", "system", "Be kind.")) == (
        "<ItemChange prompt/system (at version 1): Be kind.; -Be brief.>"
    )


# -- whose ---------------------------------------------------------------------------------------


def test_a_workspace_belongs_to_a_tenant_or_an_agent(store):
    for handle in (store, store.scoped(user="ann"), store.scoped(session="s", run="r")):
        with pytest.raises(ScopeError, match="a workspace is a tenant's or an agent's"):
            Workspace(handle)
    assert Workspace(store.scoped(agent="a")).scope == Scope(agent="a")


def test_a_user_reads_the_workspace_around_and_changes_nothing_of_it(acme, store):
    acme.set_prompt("system", "for all")
    ann = Workspace(store.scoped(tenant="acme", user="ann", session="s"))
    assert (ann.scope, ann.prompt()) == (ACME, "for all")
    before = store.version
    for change in (
        lambda: ann.set_prompt("system", "mine"),
        lambda: ann.set_memory_mode("vector"),
        lambda: ann.remove("prompt", "system"),
        lambda: ann.rollback("prompt", "system", 1),
    ):
        with pytest.raises(
            ScopeError, match=r"changed for all users.*use the handle of tenant=acme"
        ):
            change()
    assert store.version == before


def test_an_agent_has_what_its_tenant_has_where_it_says_nothing_itself(acme, store):
    acme.set_prompt("system", "of all")
    acme.set_skill("search", "Look.")
    acme.set_memory_mode("vector")
    bot = Workspace(store.scoped(tenant="acme", agent="bot"))
    bot.set_prompt("system", "of the bot", expected_version=0)
    bot.disable("search")
    assert (bot.prompt(), bot.memory_mode, bot.skills(enabled=True)) == ("of the bot", "vector", [])
    assert [(str(i), i.scope.agent) for i in bot.state().items] == [
        ("prompt/system", "bot"),
        ("setting/memory_mode", ""),
        ("skill/search", "bot"),
    ]
    assert (acme.prompt(), len(acme.skills(enabled=True))) == ("of all", 1)
    other = Workspace(store.scoped(tenant="acme", agent="other"))
    assert other.prompt() == "of all"
    bot.remove("prompt", "system")
    assert bot.prompt() == "of all"
    with pytest.raises(NotFoundError):
        bot.remove("setting", "memory_mode")


def test_no_tenant_sees_another_ones(acme, store):
    acme.set_prompt("system", "secret")
    for scope in ({"tenant": "ACME"}, {"tenant": "acm"}, {"tenant": "acme%"}, {"agent": "acme"}):
        other = Workspace(store.scoped(**scope))
        assert told(other) == (MemoryMode.HYBRID, {}, {}, {}, {})
        assert other.history("prompt", "system") == []


# -- what may be said ----------------------------------------------------------------------------


BAD_NAMES = (
    *("", ".", "..", "a/b", "a\\b", "../x", ".hidden", "-x", "a.", "a b", "é", "a\n", "x" * 101),
    *("con", "NUL.md", "com1", 5, None),
)


def test_a_name_is_a_files_on_every_system(acme, store):
    for name in BAD_NAMES:
        with pytest.raises(InvalidInputError, match="name="):
            acme.set_prompt(name, "text")
    assert store.count(states="any") == 0


REFUSED = [
    (lambda w: w.set_prompt("p", " \n"), "not blank"),
    (lambda w: w.set_prompt("p", "x" * 262_145), "262,145 bytes; it takes 262,144 at most"),
    (lambda w: w.set_prompt("p", "\ud800"), "surrogate"),
    (lambda w: w.set_skill("s", "x", kind="a b"), "kind="),
    (lambda w: w.set_skill("s", "x", enabled=1), "enabled=1"),
    (lambda w: w.set_memory_mode("best"), "vector, hybrid, distilled"),
    (lambda w: w.set_policy("p", None), "policy=None"),
    (lambda w: w.set_policy("p", {"a": {1, 2}}), "JSON"),
    (lambda w: w.set_policy("p", float("nan")), "JSON"),
    (lambda w: w.set_policy("p", ["x" * 70_000]), "at most"),
    (lambda w: w.set_flag("f", None), "flag=None"),
    (lambda w: w.set_flag("f", [1]), "flag="),
    (lambda w: w.set("grant", "g", {}), "part="),
    (lambda w: w.set("setting", "other", 1), "no setting 'other'"),
    (lambda w: w.set("skill", "s", {"text": "x", "who": 1}), "it takes: text, kind, enabled"),
]


def test_what_makes_no_sense_is_refused_by_name(acme, store):
    for act, words in REFUSED:
        with pytest.raises(InvalidInputError, match=words):
            act(acme)
    assert store.count(states="any") == 0


def test_names_that_differ_in_case_alone_are_refused(acme):
    acme.set_prompt("System", "one")
    with pytest.raises(InvalidInputError, match="differ in case alone"):
        acme.set_prompt("system", "two")
    acme.set_skill("system", "another part has names of its own")


def test_equal_texts_are_not_one_item(acme):
    for name in ("a", "b"):
        acme.set_prompt(name, "the same")
        acme.set_skill(name, "the same")
    assert acme.state().prompts == {"a": "the same", "b": "the same"}
    assert {name: s.text for name, s in acme.state().skills.items()} == acme.state().prompts


def test_other_rows_of_the_kind_are_none_of_its_business(acme, store):
    store.add("a grant", tenant="acme", kind="workspace", key="workspace:grant/g")
    store.add("nothing", tenant="acme", kind="workspace")
    assert acme.state().items == ()
    foreign = store.add("prompt x", tenant="acme", kind="workspace", key="workspace:prompt/x").id
    with pytest.raises(StoreFormatError, match=foreign):
        acme.state()


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("prompt/x", {}),
        ("prompt/x", {"workspace": {"version": 1, "value": 5}}),
        ("prompt/x", {"workspace": {"version": True, "value": "be kind"}}),
        ("skill/x", {"workspace": {"version": 1, "value": {"texts": "be kind"}}}),
        ("setting/memory_mode", {"workspace": {"version": 1, "value": "best"}}),
    ],
)
def test_what_something_else_wrote_is_said_and_gone_when_it_is_retired(acme, store, key, said):
    """Guards against advice that does not help, and against a reader's own error far from it."""
    part, name = key.split("/")
    row = {"kind": "workspace", "key": f"workspace:{key}", "metadata": said}
    foreign = store.add("x", tenant="acme", **row).id
    with pytest.raises(StoreFormatError, match=f"{foreign}.* retire it, and set the item again"):
        acme.state()
    store.retire(foreign)
    value = {"prompt": "be kind", "skill": {"text": "look"}, "setting": "vector"}[part]
    assert acme.set(part, name, value).item.version == 1
    assert [item.version for item in acme.history(part, name)] == [1]


def test_what_others_keep_under_an_items_key_is_not_looked_into(acme, store):
    """A user's row once ended every read of the tenant's workspace."""
    acme.set_prompt("system", "be brief")
    bot = Workspace(store.scoped(tenant="acme", agent="bot"))
    bot.set_prompt("system", "be kind")
    user = store.scoped(tenant="acme", user="ann")
    user.add("prompt system", kind="workspace", key="workspace:prompt/system")
    for who, text in ((acme, "be brief"), (bot, "be kind"), (WorkspaceView(user), "be brief")):
        assert who.state().prompts == {"system": text}
        assert [item.value for item in who.history("prompt", "system")] == [text]
    assert acme.set_prompt("system", "be clear").item.version == 2


def test_a_key_that_is_another_memorys_is_told_at_once(acme, store):
    """It was tried against sixty times, and then said to have been changed meanwhile."""
    other = store.add("mine", tenant="acme", key="workspace:prompt/system")
    with pytest.raises(ConflictError, match=f"memory {other.id} .* is none of a workspace"):
        acme.set_prompt("system", "be brief")
    assert acme.state().items == ()


# -- told, and not remembered --------------------------------------------------------------------


def test_no_read_takes_what_an_agent_is_told_for_a_memory(tmp_path, reopen):
    store = reopen(tmp_path / "store", record_queries=True)
    tenant = store.scoped(tenant="acme")
    workspace = Workspace(tenant)
    workspace.set_prompt("system", "the kettle is red")
    workspace.set_prompt("other", "the kettle is red indeed")
    tenant.add("the kettle is red", kind="semantic")
    mine = ["the kettle is red"]
    for mode in ("text", "vector", "hybrid"):
        hits = tenant.search("prompt system the kettle is red", mode=mode, k=9)
        assert [h.memory.content for h in hits] == mine
    assert [m.content for m in tenant.list()] == mine
    assert [m.content for m in tenant.iter()] == mine
    assert (tenant.count(), tenant.stats().visible, tenant.stats().rows) == (1, 1, 3)
    assert tenant.usage().memories.num_rows == 1
    fading = tenant.plan_retirement(below=1, decay=Decay(half_life=timedelta(days=1)))
    assert fading.considered == 1
    assert tenant.pending() == []
    with pytest.raises(NotFoundError):
        tenant.retire("workspace:prompt/nothing")
    tenant.retire(tags=[])
    assert workspace.prompt() == "the kettle is red"


def test_consolidation_has_no_source_in_it_whatever_is_asked(store):
    tenant = store.scoped(tenant="acme")
    for name in "ab":
        Workspace(tenant).set_prompt(name, "the kettle is red")
    options = ConsolidateOptions(by="tenant")
    for where in ({}, {"states": "any"}, {"kinds": "workspace"}):
        assert tenant.consolidate(options, dry_run=True, **where).selected == 0


def test_training_data_has_nothing_of_it(store, tmp_path):
    tenant = store.scoped(tenant="acme")
    Workspace(tenant).set_prompt("system", "the kettle is red")
    tenant.add("the kettle is blue")
    for number, where in enumerate(({}, {"states": "any"})):
        file = tmp_path / f"{number}.jsonl"
        assert tenant.export(file, **where).counts.examples == 1
        assert "red" not in file.read_text()


# -- the history that it shares ------------------------------------------------------------------


def test_a_past_version_of_the_store_shows_what_was_told_then(acme, store):
    acme.set_prompt("system", "one")
    acme.set_flag("beta", True)
    then = store.version
    acme.set_prompt("system", "two")
    acme.remove("flag", "beta")
    past = acme.at(then)
    assert told(past)[1:] == ({"system": "one"}, {}, {}, {"beta": True})
    assert [i.version for i in past.history("prompt", "system")] == [1]
    assert type(past) is WorkspaceView
    assert not hasattr(past, "set_prompt")
    assert WorkspaceView(store.at(then).scoped(tenant="acme")).state() == past.state()


def test_the_stores_own_going_back_takes_the_workspace_along(acme, store):
    acme.set_prompt("system", "one")
    then = store.version
    changed = acme.set_prompt("system", "two").version
    store.revert(changed)
    assert (acme.prompt(), acme.get("prompt", "system").version) == ("one", 1)
    acme.set_prompt("system", "three")
    store.rollback(then)
    assert acme.prompt() == "one"
    assert len(store.diff(then).inserted) == 0
    check(store)


def test_what_is_forgotten_is_in_no_version(acme, store):
    acme.set_prompt("system", "my secret is 4711-0815-2342")
    acme.set_prompt("system", "nothing to see")
    (old, _) = acme.history("prompt", "system")
    store.forget(old.id, reason="a secret in a prompt")
    assert [i.version for i in acme.history("prompt", "system")] == [2]
    assert acme.set_prompt("system", "more").item.version == 3
    store.forget(tenant="acme", states="any")
    assert acme.state().items == ()


def test_an_archive_carries_a_workspace_with_its_history(acme, store, tmp_path, reopen):
    acme.set_prompt("system", "one")
    acme.set_prompt("system", "two")
    acme.set_skill("s", "x", enabled=False)
    acme.remove("skill", "s")
    store.export_store(tmp_path / "archive")
    other = reopen(tmp_path / "other")
    other.import_store(tmp_path / "archive")
    moved = Workspace(other.scoped(tenant="acme"))
    assert told(moved) == told(acme)
    for part, name in ((WorkspacePart.PROMPT, "system"), (WorkspacePart.SKILL, "s")):
        assert moved.history(part, name) == acme.history(part, name)
