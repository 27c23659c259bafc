"""No write leads above a hard limit, cleaning up always goes, and what is used is what is there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from quota_child import open_store

from lance_memory import (
    ConsolidateOptions,
    Decision,
    Derived,
    FunctionEmbedder,
    IngestStatus,
    JobState,
    Limit,
    MemoryStore,
    Quota,
    QuotaExceededError,
    Quotas,
    Resource,
    ScopeError,
    State,
)
from lance_memory.govern.quota.counting import counted

CHILD = str(Path(__file__).with_name("quota_child.py"))
STORED = (Resource.ROWS, Resource.BYTES, Resource.VECTORS)
CONFUSABLE = ("acme", "ACME", "acme ", "acm_", "acme%", "acme'", "\u0430cme", "acme/x")


@pytest.fixture
def limited(tmp_path, reopen):
    """Opens the store anew, with such limits for everybody."""

    def opened(**limits):
        return reopen(tmp_path / "store", quotas=Quota(**limits))

    return opened


@pytest.fixture
def unembedded(tmp_path, reopen):
    """Opens the store with a model that is away: what is ingested gets no vector."""

    def away(texts):
        raise RuntimeError("the model is away")

    def opened():
        flaky = FunctionEmbedder(away, name="words-16", dimension=16)
        return reopen(tmp_path / "store", embedder=flaky)

    return opened


def hard(number):
    return Limit(hard=number)


# -- hard limits


@pytest.mark.parametrize(
    ("resource", "limit", "used", "asked"),
    [
        ("rows", 2, 2, 1),
        ("bytes", 30, 27, 7),
        ("vectors", 1, 1, 1),
        ("calls_a_day", 1, 1, 1),
        ("calls_a_month", 1, 1, 1),
    ],
)
def test_what_leads_above_a_hard_limit_is_refused_whole(limited, resource, limit, used, asked):
    store = limited(**{resource: hard(limit)})
    first = {"content": "äö", "tenant": "acme", "metadata": {"tür": [1, 2.0]}}  # 4 + 16 bytes
    second = {"content": "sevenab", "tenant": "acme", "embedding": None}
    store.add_many([first, second][: 1 if resource == "vectors" else 2])
    version = store.version
    with pytest.raises(QuotaExceededError) as caught:
        store.add_many([{"content": "a third", "tenant": "acme"}])
    error = caught.value
    assert (error.tenant, error.resource, error.used, error.asked, error.limit) == (
        "acme", resource, used, asked, limit,
    )  # fmt: skip
    assert "nothing was written" in str(error)
    assert store.version == version
    assert store.quota("acme").of(resource).used == used
    store.add("of another tenant", tenant="beta")


def test_every_way_to_add_is_looked_at(limited, tmp_path):
    store = limited()
    gone = store.add("gone", id="gone", tenant="t").id
    store.add("here", id="here", tenant="t", key="k")
    before = store.version
    store.add("and more", id="more", tenant="t")
    store.export_store(tmp_path / "archive.zip")
    store.delete("more")
    store.retire(gone)
    full = limited(rows=hard(1), bytes=hard(4), vectors=hard(1))
    version = full.version
    mine = full.scoped(tenant="t")
    for write in (
        lambda: full.add("x", tenant="t"),
        lambda: full.add_many([{"content": "x", "tenant": "t"}]),
        lambda: full.upsert("x", key="another", tenant="t"),
        lambda: full.upsert("longer", key="k", tenant="t"),
        lambda: full.update("here", content="longer"),
        lambda: full.update("here", metadata={"n": 1}),
        lambda: full.unretire("gone"),
        lambda: full.import_store(tmp_path / "archive.zip", on_conflict="skip"),
        lambda: full.rollback(before + 1),
        lambda: mine.rollback(before + 1),
        lambda: full.supersede("here", "longer than that"),
    ):
        with pytest.raises(QuotaExceededError):
            write()
    assert full.version == version
    assert full.update("here", importance=0.9).updated == 1
    assert full.upsert("new!", key="k", tenant="t").outcome == "stored"
    assert full.quota("t").of("rows").used == 1


def test_what_cleans_up_is_never_refused(limited, tmp_path):
    """Also far above every limit, as after it was lowered; and what becomes one names its sources.

    Those edges are bytes too: without a word for them, short memories could not become one.
    """
    store = limited()
    tags = {4: ["old"]}
    for number in range(8):
        text = f"the red kettle number {number}"
        store.add(text, id=f"m{number}", tenant="t", tags=tags.get(number, ()))
    start = store.version
    nothing = hard(0)
    full = limited(rows=nothing, bytes=nothing, vectors=nothing, calls_a_day=nothing)
    with pytest.raises(QuotaExceededError):
        full.add("x", tenant="t")
    assert full.retire("m0").updated == 1
    assert full.delete("m1").deleted == 1
    assert full.supersede(["m2", "m3"], "as long as both of them, and not longer").inserted == 1
    assert full.quota("t").of("bytes").used > full.quota("t").of("bytes").hard
    assert full.update("m4", content="shorter").updated == 1
    assert full.archive(tmp_path / "old.jsonl", tenant="t", tags="old").retired == 1
    assert full.rollback(start - 6).deleted > 0
    full.forget("m0", reason="she asked")
    assert full.quota("t").of("rows").used < 8


LONGER = "longer than the two of them together " * 9


def test_what_leaves_fewer_memories_is_refused_where_they_are_longer(limited):
    """A byte limit could be passed without end by changes that took rows away."""
    store = limited()
    texts = {"a": "the red kettle", "b": "the green tea", "c": "the train"}
    for name, text in texts.items():
        store.add(text, id=name, tenant="t", key="k" if name == "c" else None)
    used = store.quota("t").of("bytes").used
    assert used == len("the red kettle" + "the green tea" + "the train" + "k")
    full = limited(bytes=hard(used))
    version = full.version
    instead = {"content": LONGER, "key": "k", "tenant": "t"}
    for write in (
        lambda: full.supersede(["a", "b"], LONGER),
        lambda: full.supersede(["a", "b"], Derived(content="ab", tags=[LONGER])),
        lambda: full.supersede(["a", "b"], "ab", relation=LONGER),
        lambda: full.upsert_many([instead], retire=["a", "b"]),
        lambda: full.update("a", content=LONGER),
    ):
        with pytest.raises(QuotaExceededError) as caught:
            write()
        assert (caught.value.resource, caught.value.used, full.version) == ("bytes", used, version)
        assert caught.value.asked > len(LONGER) // 2


def test_a_change_is_looked_at_in_each_measure_by_itself(limited, unembedded):
    """Two without a vector become one that has one: fewer rows and bytes, and a vector more."""
    ids = unembedded().ingest(SAID, tenant="t", user="u").ids
    full = limited(rows=hard(0), bytes=hard(0), vectors=hard(0))
    assert (len(ids), full.quota("t").of("vectors").used) == (2, 0)
    with pytest.raises(QuotaExceededError, match="0 vectors, and 1 more would be above") as caught:
        full.supersede(ids, "nurse in Faro")
    assert (caught.value.resource, caught.value.asked) == ("vectors", 1)


def test_bytes_are_of_everything_that_was_written_into_a_memory(tmp_path, reopen):
    """The same for what is there, and for what a write would add: limits on the byte."""
    edges = [{"relation": "about", "target": "that", "note": "nö"}] * 2
    cases = {
        "tags": ({"tags": ["täg", "x"]}, 5),
        "key": ({"key": "kéy"}, 4),
        "names": ({"actor": "Ann", "role": "user", "source_ref": "turn/7"}, 13),
        "edges": ({"relationships": edges}, 24),
        "metadata": ({"metadata": {"a": [1, 2]}}, 11),
        "free": ({"source": "mail", "session": "s", "kind": "semantic", "quality": 0.5}, 0),
    }
    own = {name: Quota(bytes=hard(2 * (4 + more) - 1)) for name, (_, more) in cases.items()}
    store = reopen(tmp_path / "store", quotas=Quotas(tenants=own))
    for name, (fields, more) in cases.items():
        store.add("äbc", tenant=name, **fields)
        assert store.quota(name).of("bytes").used == 4 + more
        other = {"key": "kéz"} if name == "key" else {}
        with pytest.raises(QuotaExceededError) as caught:
            store.add("äbd", tenant=name, **{**fields, **other})
        assert (caught.value.used, caught.value.asked) == (4 + more, 4 + more)


def test_a_full_tenant_consolidates_short_memories(limited):
    """The names of the sources are longer than they are, and do not stand in its way."""
    store = limited()
    for number in range(4):
        store.add(f"tea {number}", tenant="t", user="u")
    used = store.quota("t").of("bytes").used
    full = limited(bytes=hard(used), rows=hard(4), calls_a_day=hard(0))
    done = full.consolidate(ConsolidateOptions(by="window"), lambda cluster: "tea 0 to 3", user="u")
    assert done.write.inserted == 1
    edges = 4 * len("consolidates" + store.list(states="superseded")[0].id)
    assert [full.quota("t").of(r).used for r in STORED] == [1, len("tea 0 to 3") + edges, 1]
    with pytest.raises(QuotaExceededError):
        full.add("x", tenant="t")


@pytest.mark.parametrize("others", [{}, {"bytes": Limit(hard=10**6), "vectors": Limit(hard=9)}])
def test_what_is_a_call_does_not_hang_on_other_limits(others, limited, unembedded):
    """A longer text was a call only where bytes had a limit too, and a late vector where they had.

    So a worker that makes the vectors later used up the calls of a tenant that said nothing.
    """
    ids = unembedded().ingest(SAID, tenant="t", user="u").ids
    store = limited(calls_a_day=hard(2), **others)
    assert store.embed_missing().embedded == len(ids)
    store.add("one", id="one", tenant="t")
    store.update("one", content="one, and more")
    store.update("one", content="shorter")
    store.update("one", importance=0.3)
    store.supersede([*ids, "one"], "a text that is longer than the others are together " * 9)
    assert store.quota("t").of("calls_a_day").used == 2
    with pytest.raises(QuotaExceededError, match="2 writes of this day, and 1 more"):
        store.add("three", tenant="t")


def test_what_is_hidden_takes_nothing_and_what_waits_does(limited):
    store = limited(rows=hard(3))
    first = store.add("one", tenant="t").id
    store.add("two", tenant="t", state="pending")
    store.retire(first)
    old = store.add("three", tenant="t", key="k", metadata={"a": 1}).id
    store.upsert("four", tenant="t", key="k")
    assert store.get(old).state is State.SUPERSEDED
    edge = len("updates" + old)
    assert [store.quota("t").of(r).used for r in STORED] == [2, len("two" + "four" + "k") + edge, 2]
    store.retire(store.list(tenant="t")[0].id)
    assert [store.quota("t").of(r).used for r in STORED] == [1, 3, 1]


def test_tenants_with_names_alike_have_quotas_of_their_own(tmp_path, reopen):
    own = Quotas(
        default=Quota(rows=hard(1)), tenants={"acme": Quota(rows=hard(2)), "free": Quota()}
    )
    store = reopen(tmp_path / "store", quotas=own)
    for tenant in ("", *CONFUSABLE):
        store.add("one", tenant=tenant)
    store.add("two", tenant="acme")
    for tenant in ("", *CONFUSABLE):
        with pytest.raises(QuotaExceededError) as caught:
            store.add("too many", tenant=tenant)
        assert caught.value.tenant == tenant
        whose = f"tenant {tenant!r}" if tenant else "what has no tenant"
        assert str(caught.value).startswith(f"{whose} has ")
    store.add_many([{"content": f"n{n}", "tenant": "free"} for n in range(5)])
    assert {s.tenant: s.of("rows").used for s in store.quotas()} == {
        **dict.fromkeys(("", *CONFUSABLE), 1),
        "acme": 2,
        "free": 5,
    }
    version = store.version
    with pytest.raises(QuotaExceededError) as caught:  # one of two has no room: neither is stored
        store.add_many([{"content": "n5", "tenant": "free"}, {"content": "x", "tenant": "acm_"}])
    assert (caught.value.tenant, store.version) == ("acm_", version)


@pytest.mark.slow
def test_two_processes_never_pass_a_limit_together(tmp_path):
    """One tenant has room for seven memories more, the other for five calls."""
    path = tmp_path / "store"
    open_store(path).add("here already", tenant="rows")
    command = [sys.executable, CHILD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen([*command, f"{n}", "8", "5"], **pipes) for n in range(2)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    stored = [json.loads(child.communicate(timeout=120)[0]) for child in children]
    assert {name: sum(one[name] for one in stored) for name in ("rows", "calls")} == {
        "rows": 7,
        "calls": 5,
    }
    after = open_store(path)
    assert (after.count(tenant="rows"), after.count(tenant="calls")) == (8, 5)


# -- soft limits


def test_above_a_soft_limit_a_write_goes_through_says_so_and_waits(limited):
    store = limited(rows=Limit(soft=1, hard=3), longest_wait=0.3)
    assert store.add("one", tenant="t").warnings == ()
    start = time.monotonic()
    second = store.add("two", tenant="t")
    between = time.monotonic()
    third = store.add_many([{"content": "three", "tenant": "t"}])
    assert between - start >= 0.15
    assert time.monotonic() - between >= 0.3
    assert second.warnings == (
        "tenant 't' has 2 of 3 memories, above the soft limit of 1; the write waited 0.150 s",
    )
    assert third.warnings == (
        "tenant 't' has 3 of 3 memories, above the soft limit of 1; the write waited 0.300 s",
    )
    assert store.retire(third.ids[0]).warnings == ()
    assert (store.quota("t").over_soft, store.quota("t").full) == (True, False)


def test_without_a_hard_limit_it_only_says_so(limited, tmp_path):
    soft = Limit(soft=0)
    store = limited(rows=soft, bytes=soft, vectors=soft, calls_a_day=soft, longest_wait=5.0)
    start = time.monotonic()
    results = [
        store.add("one two", tenant="t", key="k"),
        store.upsert("three", tenant="t", key="k"),
        store.update(store.list(tenant="t")[0].id, content="three and four"),
        store.ingest("I live in Faro, and I work as a nurse.", tenant="t", user="u"),
    ]
    store.export_store(tmp_path / "archive.zip")
    other = limited()
    other.delete([m.id for m in other.list()])
    results.append(limited(rows=soft).import_store(tmp_path / "archive.zip"))
    assert time.monotonic() - start < 4
    assert results[0].warnings == (
        "tenant 't' has 1 memory, above the soft limit of 0",
        "tenant 't' has 8 bytes, above the soft limit of 0",
        "tenant 't' has 1 vector, above the soft limit of 0",
        "tenant 't' has 1 write of this day, above the soft limit of 0",
    )
    assert [bool(result.warnings) for result in results] == [True] * 5


# -- calls


def test_calls_are_writes_that_add_by_the_day_and_the_month(limited, clock):
    clock.now = datetime(2025, 1, 31, 23, 0, tzinfo=UTC)
    store = limited(calls_a_day=hard(2), calls_a_month=hard(3), rows=hard(100))
    store.add("one", id="one", tenant="t", key="k")
    store.add("one", tenant="t", key="k")  # there already
    store.update("one", importance=0.1)
    store.retire("one")
    store.add_many([{"content": f"n{n}", "tenant": "t"} for n in range(5)])
    with pytest.raises(QuotaExceededError, match="writes of this day"):
        store.add("x", tenant="t")
    clock.now = datetime(2025, 2, 1, 0, 30, tzinfo=UTC)
    for number in range(2):
        store.add(f"day {number}", tenant="t")
    clock.now = datetime(2025, 2, 2, tzinfo=UTC)
    store.upsert("again", tenant="t", key="k")
    with pytest.raises(QuotaExceededError, match="writes of this month"):
        store.add("y", tenant="t")
    status = store.quota("t")
    assert [status.of(r).used for r in ("calls_a_day", "calls_a_month")] == [1, 3]
    clock.now = datetime(2025, 3, 1, tzinfo=UTC)
    assert [store.quota("t").of(r).used for r in ("calls_a_day", "calls_a_month")] == [0, 0]


def test_a_wrong_clock_does_not_end_the_calls_of_the_years_before_it(limited, clock):
    """Calls once counted in the period of the clock that was furthest ahead, until it came."""
    now = datetime(2025, 1, 31, 23, 59, tzinfo=UTC)
    store = limited(calls_a_day=hard(2), calls_a_month=hard(2))
    clock.now = now + timedelta(days=3_650)
    for number in range(2):
        store.add(f"far {number}", tenant="t")
    clock.now = now
    store.add("a third", tenant="t")
    clock.now = now + timedelta(minutes=1)
    store.add("a minute ahead", tenant="t")
    clock.now = now
    assert [store.quota("t").of(r).used for r in ("calls_a_day", "calls_a_month")] == [1, 1]
    store.add("behind, in the day and month that have begun", tenant="t")
    with pytest.raises(QuotaExceededError, match="writes of this day"):
        store.add("one more", tenant="t")


def test_a_write_that_fails_is_no_call_and_no_name_is_kept(limited, tmp_path):
    store = limited(calls_a_day=hard(5), rows=hard(1))
    store.add("one", tenant="Rosalind")
    for _ in range(9):
        with pytest.raises(QuotaExceededError, match="1 memory, and 1 more"):
            store.add("two", tenant="Rosalind")
    assert store.quota("Rosalind").of("calls_a_day").used == 1
    store.close()
    files = [path.read_bytes() for path in (tmp_path / "store" / "ingest").iterdir()]
    assert files
    assert not any(b"Rosalind" in content for content in files)


# -- ingest


SAID = "I live in Faro, and I work as a nurse."


def test_in_ingest_no_room_is_an_answer_and_the_same_may_be_said_again(limited):
    full = limited(rows=hard(0))
    answer = full.ingest(SAID, tenant="t", user="u")
    assert (answer.status, answer.reason, answer.ids) == (
        IngestStatus.REFUSED, "quota_exceeded", (),
    )  # fmt: skip
    refused = answer.decisions[-1]
    assert isinstance(refused, Decision)
    assert (refused.step, refused.verdict, refused.reason) == ("quota", "refused", "quota_exceeded")
    assert (refused.figures["used"], refused.figures["limit"]) == (0.0, 0.0)
    assert answer.counts["quota"] == {"quota_exceeded": 1}
    again = limited(rows=hard(100)).ingest(SAID, tenant="t", user="u")
    assert (again.status, bool(again.ids)) == (IngestStatus.DONE, True)


def test_a_job_without_room_dies_with_its_payload_and_can_be_tried_again(limited):
    full = limited(rows=hard(0))
    first = full.ingest(SAID, tenant="t", user="u", idempotency_key="once")
    assert (first.status, first.reason) == (IngestStatus.REFUSED, "quota_exceeded")
    queued = full.ingest("I was born in Tavira.", tenant="t", user="v", wait=False)
    assert queued.status is IngestStatus.QUEUED
    full.worker().drain()
    dead = full.jobs.get(queued.job)
    assert (dead.state, dead.attempts) == (JobState.DEAD, 1)
    assert dead.error.startswith("QuotaExceededError at ")
    roomy = limited(rows=hard(100))
    roomy.jobs.retry([first.job, queued.job])
    roomy.worker().drain()
    done = roomy.ingest(SAID, tenant="t", user="u", idempotency_key="once")
    assert (done.status, bool(done.ids)) == (IngestStatus.DONE, True)
    assert roomy.count(tenant="t", user="v") == 1


def test_a_worker_goes_on_where_there_is_no_room_for_vectors(tmp_path, reopen, embedder):
    """It has others to look after; what lacks a vector is found by words until there is room."""
    away = [True]

    def failing(texts):
        if away[0]:
            raise RuntimeError("away")
        return embedder.embed(texts)

    flaky = FunctionEmbedder(failing, name="words-16", dimension=16)
    store = reopen(tmp_path / "store", embedder=flaky, quotas=Quota(vectors=hard(0)))
    store.ingest(SAID, tenant="t", user="u")
    away[0] = False
    with pytest.raises(QuotaExceededError):
        store.embed_missing()
    store.worker().drain()
    assert store.count(tenant="t") > 0


# -- who sees what


def test_a_scoped_handle_sees_its_tenants_quota_alone(limited):
    store = limited(rows=hard(5))
    for tenant, number in (("acme", 2), ("beta", 3), ("", 1)):
        store.add_many([{"content": f"n{n}", "tenant": tenant, "user": "u"} for n in range(number)])
    acme = store.scoped(tenant="acme", user="u")
    assert (acme.quota().tenant, acme.quota().of("rows").used) == ("acme", 2)
    assert acme.quota("acme").uses == acme.quota().uses
    for refused in (lambda: acme.quota("beta"), acme.quotas, store.scoped(user="u").quota):
        with pytest.raises(ScopeError):
            refused()
    assert (store.quota().tenant, store.quota().of("rows").used) == ("", 1)
    with pytest.raises(QuotaExceededError):
        acme.add_many([f"more {n}" for n in range(4)])


def test_a_branch_has_the_same_limits_and_uses_of_its_own(limited):
    store = limited(rows=hard(2))
    store.add("one", tenant="t")
    side = store.branch("side")
    side.add("two", tenant="t")
    with pytest.raises(QuotaExceededError):
        side.add("three", tenant="t")
    store.add("two", tenant="t")
    assert (store.quota("t").full, side.quota("t").full) == (True, True)


def test_without_quotas_nothing_is_counted(store, tmp_path):
    store.add("one", tenant="t")
    status = store.quota("t")
    assert [use.used for use in status.uses] == [1, 3, 1, None, None]
    assert [(use.soft, use.hard) for use in status.uses] == [(None, None)] * 5
    assert not (tmp_path / "store" / "ingest").exists()
    assert str(status) == (
        "tenant 't': has room; rows 1; bytes 3; vectors 1; calls_a_day not counted; "
        "calls_a_month not counted"
    )


# -- what is carried forward is what is counted

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text('aä"\\\n', max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
WRITTEN = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.text("aä ", min_size=1, max_size=3).filter(str.strip), max_size=3),
        "actor": st.text("bü", max_size=3),
        "role": st.sampled_from(["", "user"]),
        "source_ref": st.text("c/", max_size=3),
        "relationships": st.lists(
            st.fixed_dictionaries(
                {
                    "relation": st.sampled_from(["about", "updates"]),
                    "target": st.sampled_from(["x", "ÿ"]),
                    "note": st.text("dö", max_size=3),
                }
            ),
            max_size=2,
        ),
    },
)
METADATA = st.dictionaries(st.text("abü", min_size=1, max_size=3), VALUES, max_size=3)
WHAT = (
    *("add", "add", "many", "upsert", "update", "retire", "unretire", "delete", "supersede"),
    *("rollback", "other", "optimize"),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(WHAT),
        st.integers(0, 5),
        METADATA,
        WRITTEN,
    ),
    min_size=3,
    max_size=8,
)


@settings(max_examples=8, deadline=None, derandomize=True)
@example(steps=[("add", 1, {}, {}), ("other", 1, {}, {}), ("retire", 1, {}, {})])
@given(steps=STEPS)
def test_what_is_carried_forward_is_what_a_count_finds(tmp_path_factory, embedder, steps):
    """Also where nobody looks in between, as after the steps with an odd pick."""
    path = tmp_path_factory.mktemp("carried") / "store"
    limits = dict.fromkeys(map(str, STORED), hard(10**9))
    options = {"embedder": embedder, "upkeep": None}
    store = MemoryStore.open(path, quotas=Quota(**limits), **options)
    other = MemoryStore.open(path, **options)
    for number, (what, pick, metadata, written) in enumerate([*steps, ("look", 0, {}, {})]):
        done(store, other, what, pick, {"metadata": metadata, **written}, number)
        if pick % 2:
            continue
        snapshot = store._snapshot()
        for tenant in ("a", "b"):
            for resource in STORED:
                carried = store._meter.used(snapshot, tenant, resource)
                assert carried == counted(snapshot, tenant, resource), (what, tenant, resource)


def done(store, other, what, pick, written, number):
    """One step, on memories that are there."""
    fields = {**written, "tenant": "ab"[pick % 2]}
    there = [m.id for m in store.list()]
    chosen = there[pick % len(there)] if there else None
    hidden = [m.id for m in store.list(states="retired")]
    if what == "add":
        store.add(f"ä thing {number}", **fields)
    elif what == "many":
        store.add_many([{"content": f"{number} of {n}", **fields} for n in range(pick)])
    elif what == "upsert":
        store.upsert(f"the {number}", key=f"k{pick}", **fields)
    elif what == "other":
        other.add(f"by another {number}", **fields)
    elif what == "optimize":
        store.optimize(index=None)
    elif what == "rollback":
        store.rollback(max(1, store.version - pick))
    elif what == "unretire" and hidden:
        store.unretire(hidden[:1])
    elif chosen is None:
        return
    elif what == "update":
        store.update(chosen, content=f"changed to {number}", **written)
    elif what == "supersede":
        alike = [m.id for m in store.list(tenant=store.get(chosen).tenant)]
        store.supersede(alike[:2], f"instead of {number}")
    elif what in ("retire", "delete"):
        getattr(store, what)(chosen)


def test_a_limit_is_looked_up_once_and_then_carried(limited):
    """So the cost of a write does not grow with what the tenant has."""
    store = limited(rows=hard(1000), bytes=hard(10**6))
    store.add("one", tenant="t")
    known = dict(store._meter._known)
    assert known == {("t", Resource.ROWS): 1, ("t", Resource.BYTES): 3}
    for number in range(3):
        store.add(f"n{number}", tenant="t")
        assert store._meter._version == store.version
    assert store._meter._known == {("t", Resource.ROWS): 4, ("t", Resource.BYTES): 9}
