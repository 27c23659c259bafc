"""The verb `ingest`, from what was said to one version, at once and by jobs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import (
    ConflictError,
    Conversation,
    ExtractionError,
    IngestStatus,
    InvalidInputError,
    Message,
    NotFoundError,
    OrderOptions,
    RejectedError,
    Retry,
    Rules,
    Scope,
    ScopeError,
    StorageError,
    WritePath,
)
from lance_memory.ingest import Extract, Passed, Redact, RedactionPolicy, Resolve
from lance_memory.record.memory import SCOPE_LEVELS
from lance_memory.testing import check

ANA = {"tenant": "acme", "user": "ana"}
OPEN = replace(WritePath(), gate=None)
START = datetime(2025, 1, 1, tzinfo=UTC)

SAID = [
    {
        "role": "user",
        "content": "I live in Paris and I work as a nurse.",
        "at": "2024-12-31T10:00Z",
    },
    {"role": "assistant", "content": "Your favourite colour is green.", "at": "2024-12-31T10:01Z"},
    {"role": "user", "content": "I love hiking in the Alps.", "at": "2024-12-31T10:02Z"},
]


def contents(view, **where):
    return sorted(memory.content for memory in view.list(**where))


def test_what_a_person_says_of_themselves_becomes_memories_and_the_rest_does_not(store):
    ana = store.scoped(**ANA)
    result = ana.ingest(SAID, session="s1")
    assert contents(ana) == ["I live in Paris", "I love hiking in the Alps.", "I work as a nurse."]
    assert (result.status, result.version, len(result.ids)) == ("done", store.version, 3)
    assert result.counts == {"keep": {"kept": 3}, "resolve": {"new": 3}}
    assert result.messages == 3
    assert {memory.session for memory in ana.list()} == {"s1"}
    assert store.log(limit=1)[0].operation == "ingest"


def test_a_job_is_one_version_and_can_be_reverted(store):
    ana = store.scoped(**ANA)
    ana.ingest(SAID)
    ana.ingest(["I moved to Berlin last week."])
    assert contents(ana, states="superseded") == ["I live in Paris"]
    store.revert(store.version)
    assert "I live in Paris" in contents(ana)
    check(store)


def test_playing_a_log_again_changes_nothing(store):
    ana = store.scoped(**ANA)
    ana.ingest(SAID, path=OPEN)
    before = store.to_arrow(states="any")
    again = ana.ingest(SAID, path=OPEN)
    assert store.to_arrow(states="any").equals(before)
    assert again.ids == ()
    assert again.counts["resolve"] == {"replayed": 3}


def test_recalled_text_that_is_fed_back_does_not_become_a_memory(store):
    ana = store.scoped(**ANA)
    ana.ingest(SAID, path=OPEN)
    recalled = [hit.memory.content for hit in ana.search("hiking Alps Paris").hits]
    for _ in range(3):
        ana.ingest([{"role": "system", "content": "\n".join(recalled)}], path=OPEN)
        ana.ingest([{"role": "assistant", "content": recalled[0]}], path=OPEN)
    assert len(ana.list(states="any")) == 3


def test_a_blocked_conversation_is_an_ordinary_answer(store):
    before = store.version
    result = store.scoped(**ANA).ingest(["hi"])
    assert (result.status, result.reason, result.ids) == ("L2", "low_quality", ())
    assert store.version == before


def test_secrets_are_in_no_file_of_the_store_at_any_time(store):
    said = "I live in Paris. My e-mail is ana@example.com. My password is hunter2hunter2."
    ana = store.scoped(**ANA)
    ana.ingest([said])
    ana.ingest([f"{said} I have a dog."], wait=False)
    raw = b"".join(p.read_bytes() for p in store._table.place.local.rglob("*") if p.is_file())
    assert b"ana@example.com" not in raw
    assert b"hunter2" not in raw
    assert store.count() > 0


def test_a_dry_run_says_what_would_be_and_writes_nothing(store):
    ana, before = store.scoped(**ANA), store.version
    would = ana.ingest(SAID, dry_run=True)
    assert (store.version, store.count(states="any")) == (before, 0)
    did = ana.ingest(SAID)
    assert (would.ids, would.counts) == (did.ids, did.counts)


def test_a_handle_kept_to_a_user_ingests_nothing_of_another(store):
    other = Conversation(messages=(Message(content="I live in Rome."),), scope=Scope(user="eva"))
    with pytest.raises(ScopeError):
        store.scoped(**ANA).ingest(other)
    with pytest.raises(InvalidInputError, match="2 tenants"):
        store.ingest([replace(other, scope=Scope(tenant=name)) for name in ("acme", "beta")])
    assert store.count(states="any") == 0


@pytest.mark.parametrize(
    "said", [[], None, b"I live in Paris", [3], [{"content": "x", "role": "?"}]]
)
def test_what_is_no_conversation_is_refused(store, said):
    with pytest.raises(InvalidInputError):
        store.ingest(said, tenant="acme")


def test_without_an_embedder_that_works_memories_are_found_by_words_and_mended_later(
    store, embedder, reopen, tmp_path
):
    class Failing:
        name, dimension = embedder.name, embedder.dimension

        def embed(self, texts):
            raise RuntimeError("the model is away")

    ana = reopen(tmp_path / "store", embedder=Failing()).scoped(**ANA)
    result = ana.ingest(SAID, path=OPEN)
    assert result.degraded[0].startswith("embed: ")
    assert len(result.ids) == 3
    store = reopen(tmp_path / "store")
    lacking = [f for f in store.doctor().findings if f.code == "no_vector"]
    assert lacking
    assert [hit.memory.content for hit in store.search("hiking", mode="text").hits] == [
        "I love hiking in the Alps."
    ]
    mended = store.embed_missing(limit=2)
    assert (mended.embedded, mended.left) == (2, 1)
    assert store.embed_missing().left == 0
    assert not [f for f in store.doctor().findings if f.code == "no_vector"]
    check(store)


@pytest.mark.disk
def test_a_worker_makes_the_vectors_that_were_missing(store, embedder, reopen, tmp_path):
    class Failing:
        name, dimension = embedder.name, embedder.dimension
        away = True

        def embed(self, texts):
            if self.away:
                raise RuntimeError("the model is away")
            return embedder.embed(texts)

    failing = Failing()
    store = reopen(tmp_path / "store", embedder=failing)
    store.scoped(**ANA).ingest(SAID, path=OPEN)
    store.worker().drain()
    assert store.embed_missing(limit=0).left == 3
    failing.away = False
    store.worker().drain()
    assert store.embed_missing(limit=0).left == 0


def test_an_overlay_adds_what_its_domain_knows_and_one_that_fails_undoes_nothing(store):
    class Failing:
        name = "broken"

        def additions(self, memories, *, now):
            raise KeyError("secret content")

    said = ["I got 1450 on the SAT, and my goal is to study physics at MIT."]
    path = replace(OPEN, overlays={"education": (*OPEN.overlays["education"], Failing())})
    result = store.scoped(**ANA).ingest(said, domain="education", path=path)
    laid = [d for d in result.decisions if d.step == "overlay"]
    assert [(d.verdict, d.reason) for d in laid] == [
        ("added", "education"),
        ("failed", "broken: KeyError"),
    ]
    assert result.ids
    assert any("education" in memory.metadata for memory in store.list())
    assert result.version == store.version


# -- jobs -----------------------------------------------------------------------------------------


@pytest.mark.disk
def test_a_queued_job_is_done_by_a_worker_and_tells_every_decision(store):
    ana = store.scoped(**ANA)
    queued = ana.ingest(SAID, wait=False, plan="enterprise")
    assert (queued.status, queued.ids, store.count()) == ("queued", (), 0)
    assert store.worker().drain() == 1
    job = store.jobs.get(queued.job)
    assert (job.state, job.memories) == ("done", 3)
    assert contents(ana) == ["I live in Paris", "I love hiking in the Alps.", "I work as a nurse."]
    assert ana.ingest(SAID, path=OPEN).counts["resolve"] == {"replayed": 3}


@pytest.mark.disk
def test_a_key_names_one_job_and_one_answer(store, reopen, tmp_path):
    ana = store.scoped(**ANA)
    first = ana.ingest(SAID, idempotency_key="k1")
    again = reopen(tmp_path / "store").scoped(**ANA).ingest(SAID, idempotency_key="k1")
    assert again == first
    assert first.status == "done"
    with pytest.raises(ConflictError):
        ana.ingest(["I live in Rome."], idempotency_key="k1")
    other = store.scoped(tenant="beta", user="ana").ingest(SAID, idempotency_key="k1")
    assert other.job != first.job


@pytest.mark.disk
def test_what_the_gate_said_to_a_key_it_says_again(store):
    ana = store.scoped(**ANA)
    assert ana.ingest(["hi"], idempotency_key="k").status == "L2"
    assert ana.ingest(["hi"], idempotency_key="k").status == "L2"
    assert [job.state for job in store.jobs.list()] == ["done"]


@pytest.mark.disk
def test_a_job_that_is_run_twice_stores_once(store):
    ana = store.scoped(**ANA)
    queued = ana.ingest(SAID, wait=False)
    records = store.jobs.records
    payload = records.payload(queued.job)
    store.worker().drain()
    before = store.to_arrow(states="any")
    store._run_job(WritePath(), payload, store.jobs.get(queued.job))
    assert store.to_arrow(states="any").equals(before)


@pytest.mark.disk
def test_forgetting_a_person_forgets_what_is_queued_and_what_the_gate_knows(store):
    ana, eva = store.scoped(**ANA), store.scoped(tenant="acme", user="eva")
    ana.ingest(SAID)
    ana.ingest(["I play the violin in an orchestra."], wait=False)
    eva.ingest(["I play the cello in a quartet."], wait=False)
    store.forget(**ANA)
    store.worker().drain()
    assert contents(store) == ["I play the cello in a quartet."]
    raw = b"".join(p.read_bytes() for p in store._table.place.local.rglob("*") if p.is_file())
    assert b"violin" not in raw
    assert ana.ingest(SAID).status == "done", "the gate remembers no input of hers"


# -- order ----------------------------------------------------------------------------------------


def event(seq, text):
    return [Message(content=text, seq=seq)]


@pytest.mark.disk
def test_events_that_come_too_early_wait_for_those_before_them(store):
    acme = store.scoped(tenant="acme", user="ana")
    late = acme.ingest(event(1, "I live in Rome."), ordered=True, path=OPEN)
    assert (late.status, store.count()) == ("buffered", 0)
    assert store.order.status("acme").gaps == ((0, 0),)
    first = acme.ingest(event(0, "I live in Paris."), ordered=True, path=OPEN)
    assert first.status == "done"
    assert store.jobs.get(late.job).state == "done"
    assert store.order.status("acme").contiguous == 1
    replay = acme.ingest(event(1, "I live in Rome."), ordered=True, path=OPEN)
    assert (replay.status, replay.reason) == ("done", "replayed")


@pytest.mark.disk
def test_a_gap_is_given_up_after_its_time_and_stays_to_be_seen(store, clock):
    acme = store.scoped(tenant="acme", user="ana")
    acme.ingest(event(0, "I live in Paris."), ordered=True, path=OPEN)
    early = acme.ingest(event(2, "I play the violin."), ordered=True, path=OPEN)
    store.worker(path=OPEN).drain()
    assert store.jobs.get(early.job).state == "waiting"
    clock.forward(minutes=6)
    store.worker(path=OPEN).drain()
    assert store.jobs.get(early.job).state == "done"
    marks = store.order.status("acme")
    assert (marks.contiguous, marks.gaps) == (0, ((1, 1),))


@pytest.mark.disk
def test_consolidation_goes_no_further_than_the_contiguous_watermark(store, clock):
    acme = store.scoped(tenant="acme", user="ana")
    for seq, text in (
        (0, "I like green tea"),
        (2, "I like green tea much"),
        (3, "I like green tea"),
    ):
        acme.ingest(event(seq, text), ordered=True, path=OPEN)
    clock.forward(minutes=6)
    store.worker(path=OPEN).drain()
    acme.add("the green tea is hot", seq=0)
    acme.add("green tea is the hot", seq=5)
    assert acme.consolidate(dry_run=True, guard=None).selected == len(
        [m for m in acme.list() if m.seq is None or m.seq <= 0]
    )
    store.order.skip("acme", (1, 1))
    assert acme.consolidate(dry_run=True, guard=None).selected == acme.count()


@pytest.mark.disk
def test_messages_without_numbers_cannot_be_ordered(store):
    with pytest.raises(InvalidInputError, match="no seq"):
        store.scoped(**ANA).ingest(SAID, ordered=True)


# -- laws -----------------------------------------------------------------------------------------

SENTENCES = [
    "I live in Paris.",
    "I moved to Berlin last week.",
    "I live in Rome.",
    "I love hiking in the Alps.",
    "I don't like hiking in the Alps.",
    "I work as a nurse.",
    "My sister Ana lives in Oslo.",
    "I might be allergic to nuts.",
    "What is the time?",
]


@st.composite
def logs(draw):
    """Conversations of two sessions, each message with a moment of its own."""
    chosen = draw(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6))
    return [
        Conversation(
            messages=(Message(content=text, ref=f"e{place}", at=START + timedelta(days=place)),),
            scope=Scope(tenant="acme", user="ana", session=f"s{place % 2}"),
        )
        for place, text in enumerate(chosen)
    ]


def picture(store):
    """All that is to be the same: without moments of writing and without places in a job."""
    return sorted(
        (m.content, str(m.state), m.superseded_by or "", m.source_ref, round(m.confidence, 5))
        for m in store.list(states="any")
    )


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(log=logs())
def test_a_batch_is_its_conversations_one_by_one_and_a_log_played_twice_is_played_once(
    log, reopen, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("laws")
    batch, single = reopen(folder / "batch"), reopen(folder / "single")
    batch.ingest(log, path=OPEN)
    for one in log:
        single.ingest(one, path=OPEN)
    assert picture(batch) == picture(single)
    batch.ingest(log, path=OPEN)
    assert picture(batch) == picture(single)


@pytest.mark.disk
def test_two_workers_at_once_do_what_one_does_in_whatever_order(reopen, tmp_path):
    said = [
        ("I live in Paris.", 0),
        ("I moved to Berlin last week.", 9),
        ("I love hiking in the Alps.", 2),
        ("I work as a nurse.", 3),
        ("I moved to Oslo last week.", 20),
        ("I don't like hiking in the Alps.", 12),
    ]
    log = [
        Conversation(
            messages=(Message(content=text, ref=f"e{place}", at=START + timedelta(days=day)),),
            scope=Scope(tenant="acme", user="ana", session=f"s{place}"),
        )
        for place, (text, day) in enumerate(said)
    ]
    one, two = reopen(tmp_path / "one"), reopen(tmp_path / "two", write_path=OPEN)
    for conversation in log:
        one.ingest(conversation, path=OPEN)
        two.ingest(conversation, wait=False)
    others = [reopen(tmp_path / "two") for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(lambda store: store.worker(path=OPEN).drain(), others))
    assert done == len(log)
    assert picture(two) == picture(one)
    check(two)


# -- scope ----------------------------------------------------------------------------------------


def test_a_handle_kept_to_a_session_resolves_within_it_and_one_of_a_user_across(store):
    ana = store.scoped(**ANA)
    ana.ingest(["I live in Paris."], session="s1", path=OPEN)
    narrow = ana.scoped(session="s2").ingest(["I moved to Berlin last week."], path=OPEN)
    assert narrow.counts["resolve"] == {"new": 1}
    assert contents(ana) == ["I live in Paris.", "I moved to Berlin last week."]
    ana.ingest(["I moved to Oslo last week."], session="s3", path=OPEN)
    assert contents(ana) == ["I moved to Oslo last week."]


@pytest.mark.disk
def test_forgetting_one_memory_by_name_touches_no_job_of_another(store):
    ana = store.scoped(**ANA)
    kept = ana.ingest(SAID)
    queued = ana.ingest(["I play the violin in an orchestra."], wait=False)
    bare = store.add("no scope at all")
    store.forget(kept.ids[0])
    store.forget(bare.id)
    assert store.unfinished_forgetting() is None
    assert store.jobs.get(queued.job).state == "queued"


# -- what may be repeated, forgotten, and where it stands -----------------------------------------


class Once:
    """An extractor that fails the first time, and then finds what rules find."""

    def __init__(self):
        self.failed = False

    def extract(self, conversation, *, reading):
        if not self.failed:
            self.failed = True
            raise ExtractionError("away", reason="away", passing=True)
        return Rules().extract(conversation, reading=reading)


@pytest.mark.parametrize("by_job", [False, pytest.param(True, marks=pytest.mark.disk)])
def test_a_call_that_failed_can_be_repeated(store, by_job):
    path = replace(WritePath(), extract=Extract(extractor=Once()))
    ana = store.scoped(**ANA)
    if by_job:
        assert ana.ingest(SAID, path=path, idempotency_key="k").status == "failed"
        [job] = store.jobs.list()
        store.jobs.retry([job.id])
        assert store.worker().drain() == 1
        return
    with pytest.raises(ExtractionError):
        ana.ingest(SAID, path=path)
    again = ana.ingest(SAID, path=path)
    assert (again.status, len(again.ids)) == ("done", 3)
    assert ana.ingest(SAID, path=path).status == "L3"


@pytest.mark.disk
def test_what_a_dead_job_brought_may_come_again_under_another_key(store):
    path = replace(WritePath(), extract=Extract(extractor=Once()))
    ana = store.scoped(**ANA)
    dead = ana.ingest(SAID, wait=False)
    assert ana.ingest(SAID, path=path, idempotency_key="while it may be done").status == "L3"
    store.worker(path=path, retry=Retry(attempts=1)).drain()
    assert store.jobs.get(dead.job).state == "dead"
    again = ana.ingest(SAID, path=path, idempotency_key="anew")
    assert (again.status, len(again.ids)) == ("done", 3)
    assert ana.ingest(SAID, path=path, idempotency_key="once more").status == "L3"


@pytest.mark.disk
def test_another_ledger_names_the_same_event_alike(reopen, tmp_path):
    said = [Message(content="I live in Paris.", ref="<1@example.com>", actor="ana@example.com")]
    first = reopen(tmp_path / "store")
    made = first.ingest(said, **ANA, path=OPEN)
    elsewhere = reopen(tmp_path / "store", ledger=tmp_path / "elsewhere")
    again = elsewhere.ingest(said, **ANA, path=OPEN)
    assert (len(made.ids), again.ids) == (1, ())
    assert again.counts["resolve"] == {"replayed": 1}
    first.close()
    elsewhere.close()


@pytest.mark.disk
def test_a_full_buffer_loses_nothing_that_is_sent_again(store):
    acme = store.scoped(**ANA)
    many = [Message(content=f"I have been to town number {n}.", seq=n) for n in range(2, 1_004)]
    with pytest.raises(RejectedError):
        acme.ingest(many, ordered=True)
    assert store.jobs.list() == []
    first = [Message(content="I live in Paris.", seq=0), Message(content="Good day.", seq=1)]
    assert acme.ingest(first, ordered=True, path=OPEN).status == "done"
    assert acme.ingest(many, ordered=True).status == "done"


@pytest.mark.disk
def test_a_scoped_handle_does_others_buffered_jobs_as_their_own(store):
    ana, eva = store.scoped(**ANA), store.scoped(tenant="acme", user="eva")
    early = eva.ingest(event(1, "I live in Rome."), ordered=True)
    ana.ingest(event(0, "I live in Paris."), ordered=True)
    assert store.jobs.get(early.job).state == "done"
    assert contents(eva) == ["I live in Rome."]


@pytest.mark.disk
def test_what_is_known_already_is_read_in_the_scope_of_the_job(reopen, tmp_path):
    class Asking:
        def extract(self, conversation, *, reading):
            reading.known()
            return Rules().extract(conversation, reading=reading)

    path = replace(OPEN, extract=Extract(extractor=Asking()))
    store = reopen(tmp_path / "store", write_path=path)
    eva = store.scoped(tenant="acme", user="eva")
    early = eva.ingest(event(1, "I live in Rome."), ordered=True)
    store.scoped(**ANA).ingest(event(0, "I live in Paris."), ordered=True)
    job = store.jobs.get(early.job)
    assert (job.state, job.error) == ("done", "")


@pytest.mark.disk
def test_a_queued_job_has_an_eta_once_a_job_was_done(store):
    ana = store.scoped(**ANA)
    assert ana.ingest(SAID, wait=False).eta is None
    store.worker().drain()
    assert ana.ingest(["I play the violin in an orchestra."], wait=False).eta > 0


@pytest.mark.disk
def test_a_job_whose_answer_was_lost_tells_the_memories_it_made(store):
    ana = store.scoped(**ANA)
    queued = ana.ingest(SAID, wait=False)
    parts = store.jobs.records.payload(queued.job)
    waiting = store.jobs.get(queued.job)
    lost = store._run_job(store._path, parts, waiting)
    again = store._run_job(store._path, parts, replace(waiting, attempts=2))
    assert sorted(again["ids"]) == sorted(lost["ids"])


@pytest.mark.disk
@pytest.mark.parametrize("seqs", [None, (0, 0)])
def test_a_job_that_was_accepted_halfway_goes_away_or_on(store, clock, seqs):
    desk = store.jobs
    one = Conversation(messages=(Message(content="I live in Paris.", seq=0),), scope=Scope(**ANA))
    cut = desk.accept([(one.scope, one.to_json())], tenant="acme", seqs=seqs, waiting=True)
    clock.forward(minutes=2)
    store.worker().drain()
    assert desk.find(cut.id) is None
    assert store.count() == 0


@pytest.mark.disk
def test_a_queued_job_takes_no_steps_of_its_caller(store):
    with pytest.raises(InvalidInputError, match="worker"):
        store.ingest(SAID, tenant="acme", path=OPEN, wait=False)


@pytest.mark.disk
def test_forgetting_reaches_the_jobs_of_every_branch_and_a_deleted_one_leaves_none(store):
    ana, side = store.scoped(**ANA), store.branch("side")
    ana.ingest(SAID)
    side.scoped(**ANA).ingest(["I play the violin in an orchestra."], wait=False)
    store.forget(**ANA)
    raw = b"".join(p.read_bytes() for p in store._table.place.local.rglob("*") if p.is_file())
    assert b"violin" not in raw
    side.worker().drain()
    assert side.count() == 0
    queued = side.scoped(**ANA).ingest(SAID, idempotency_key="k")
    store.delete_branch("side")
    assert store.branch("side").jobs.find(queued.job) is None


@pytest.mark.disk
def test_stores_that_share_a_place_for_their_jobs_share_no_job(reopen, tmp_path):
    one = reopen(tmp_path / "one", ledger=tmp_path / "jobs")
    two = reopen(tmp_path / "two", ledger=tmp_path / "jobs")
    one.scoped(**ANA).ingest(SAID, wait=False)
    assert (two.worker().drain(), two.count()) == (0, 0)
    plain = reopen(tmp_path / "one")
    with pytest.raises(InvalidInputError, match="ledger="):
        plain.forget(**ANA)
    assert (one.worker().drain(), one.count()) == (1, 3)


@pytest.mark.disk
def test_dry_runs_switch_nothing_off(store):
    ana = store.scoped(**ANA)
    ana.ingest(SAID)
    for _ in range(5):
        ana.ingest(SAID, dry_run=True)
    assert ana.ingest(SAID).status == "L3"


@pytest.mark.disk
def test_an_embedder_that_quotes_is_not_quoted_in_an_answer(store, embedder, reopen, tmp_path):
    class Quoting:
        name, dimension = embedder.name, embedder.dimension

        def embed(self, texts):
            raise RuntimeError(f"cannot embed {texts[0]}")

    quoting = reopen(tmp_path / "store", embedder=Quoting()).scoped(**ANA)
    answer = quoting.ingest(["My cat is called Secretia and I live in Paris."])
    assert "Secretia" not in str(answer.to_json())
    assert len(answer.degraded) == 2


@pytest.mark.disk
def test_forgetting_one_person_leaves_what_another_queued_in_the_same_words(store):
    said = "I live in Rome and I like tea."
    store.ingest([said], tenant="t1", user="a", path=OPEN)
    other = store.ingest([said], tenant="t2", user="b", wait=False)
    store.forget(tenant="t1", user="a")
    assert store.worker().drain() == 1
    assert store.jobs.get(other.job).memories > 0
    assert store.count(tenant="t1", states="any") == 0


def test_an_unknown_word_is_refused_and_stores_nothing_without_its_scope(store):
    with pytest.raises(InvalidInputError, match="usr"):
        store.ingest(SAID, usr="mara")
    assert store.count(states="any") == 0


def test_a_source_that_nobody_registered_is_refused(store):
    with pytest.raises(InvalidInputError, match="registered"):
        store.ingest(SAID, tenant="acme", source="web-chat")
    known = replace(OPEN, events=frozenset({"billing"}))
    assert store.ingest(SAID, tenant="acme", source="billing", path=known).status == "done"


def test_characters_that_nobody_sees_hide_nothing_from_redaction(store):
    hidden = "My e-mail is ana\u200b.lopez@exam\u00adple.com and I live in Rome."
    store.ingest([hidden], **ANA, path=OPEN)
    assert contents(store) != []
    assert all("lopez" not in text for text in contents(store))


def test_long_runs_of_space_cost_no_more_than_their_length(store):
    begun = time.process_time()
    store.ingest(["I like " + " \t\u3000" * 60_000 + "tea"], **ANA, path=OPEN)
    assert time.process_time() - begun < 5  # 40,000 took as long, and ten times as many a minute


@pytest.mark.disk
def test_of_the_jobs_of_a_plan_the_greater_priority_comes_first(store):
    ana, told = store.scoped(**ANA), []
    for text, priority in (("I live in Rome.", 0), ("I play the violin daily.", 5)):
        ana.ingest([text], wait=False, priority=priority)
    store.worker(told=lambda job: told.append(job.priority)).drain()
    assert told == [5, 0]


@pytest.mark.parametrize("given", [None, 5, [], RuntimeError("I live in Paris")])
def test_an_extractor_that_raises_or_gives_rubbish_is_told_of_without_a_word(store, given):
    class Odd:
        def extract(self, conversation, *, reading):
            if isinstance(given, Exception):
                raise given
            return given

    path = replace(OPEN, extract=Extract(extractor=Odd()))
    result = store.ingest(SAID, **ANA, path=path)
    assert [(d.step, d.verdict) for d in result.decisions] == [("extract", "failed")]
    assert "Paris" not in str(result.to_json())


@pytest.mark.disk
def test_forgetting_one_of_a_job_lets_in_nothing_that_the_gate_had_blocked(store):
    def one(user, text):
        scope = Scope(tenant="acme", user=user)
        return Conversation(messages=(Message(content=text),), scope=scope)

    said = [
        one("eva", "I play the violin in an orchestra."),
        one("ana", "hi"),
        one("ana", "I live in Rome and I work as a nurse."),
    ]
    queued = store.ingest(said, wait=False)
    store.forget(tenant="acme", user="eva")
    store.worker().drain()
    job = store.jobs.get(queued.job)
    assert (job.state, job.memories) == ("done", 2)
    decisions = [d["step"] for d in job.answer["decisions"]]
    assert "gate" not in decisions, "what was known of it went with her"
    assert contents(store) == ["I live in Rome", "I work as a nurse."]
    assert {d["event"] for d in job.answer["decisions"]} == {store.list()[0].source_ref}


def test_what_is_said_without_a_time_stands_in_the_order_in_which_it_was_said(store):
    said = [
        "I work as a nurse.",
        "I love hiking in the Alps.",
        "I play the violin.",
        "I hate mushrooms.",
    ]
    store.ingest(said, **ANA, path=OPEN)
    assert [memory.content for memory in store.list()] == said


def test_a_repeated_call_is_known_whatever_is_taken_out_of_it(store):
    """The digest of a call was that of what its own redaction had left."""
    ana, said = store.scoped(**ANA), ["I live in Paris, and ana@example.com reaches me there."]
    first = ana.ingest(said, idempotency_key="k", wait=False)
    hashed = replace(OPEN, redact=Redact(RedactionPolicy(kinds={"email": "hash"})))
    dropped = replace(OPEN, redact=Redact(RedactionPolicy(default="drop_message")))
    for path in (hashed, dropped):
        assert ana.ingest(said, path=path, idempotency_key="k").job == first.job
    with pytest.raises(ConflictError, match="another payload"):
        ana.ingest(["I live in Rome."], path=hashed, idempotency_key="k")


def test_no_value_can_be_tried_out_on_the_digest_of_a_call(store):
    secrets = ("hunter2hunter2", "Tr0ub4dor&3")
    told = [[f"My password is {secret}. I live in Paris."] for secret in secrets]
    calls = [store.ingest(one, tenant="t", idempotency_key="k", wait=False) for one in told]
    assert calls[0].job == calls[1].job
    with pytest.raises(ConflictError):
        store.ingest(["My password is gone. I live in Rome."], tenant="t", idempotency_key="k")


def test_a_call_that_goes_on_where_another_was_killed_takes_what_that_one_has_left(store):
    """The gate let in places of this call's conversations, and the payload was the other's."""

    class Killed(Exception):
        pass

    class Gate:
        name = "gate"

        def __init__(self, *, killed):
            self.killed = killed

        def __call__(self, items, around):
            if self.killed:
                raise Killed
            return Passed(items=tuple(one for one in items if "[email]" not in one.text))

    texts = {"1": "ana@example.com is how I am reached.", "2": "I live in Oslo."}
    said = [
        Conversation(messages=(Message(content=text),), scope=Scope(**ANA, session=session))
        for session, text in texts.items()
    ]
    dropping = Redact(RedactionPolicy(default="drop_message"))
    first = replace(WritePath(), redact=dropping, gate=Gate(killed=True))
    with pytest.raises(Killed):
        store.ingest(said, path=first, idempotency_key="k")
    second = replace(WritePath(), gate=Gate(killed=False))
    assert store.ingest(said, path=second, idempotency_key="k").status == "done"
    assert contents(store) == ["I live in Oslo."]


@pytest.mark.parametrize("given", [ZeroDivisionError("I live in Paris"), None])
def test_where_a_classifier_fails_the_standard_rules_judge_and_the_answer_says_so(store, given):
    """It ended `ingest` with its own error."""

    def failing(earlier, later, *, cosine):
        if given is not None:
            raise given

    path, ana = replace(OPEN, resolve=Resolve(classifier=failing)), store.scoped(**ANA)
    ana.ingest(["I live in Paris."], path=path)
    told = ana.ingest(["I moved to Berlin last week."], path=path)
    kind = "gave NoneType" if given is None else "ZeroDivisionError"
    degraded = f"resolve: the classifier failed ({kind}); the standard rules judged instead"
    assert told.degraded == (degraded,)
    assert told.counts["resolve"] == {"update": 1}
    assert contents(ana) == ["I moved to Berlin last week."]
    check(store)


def test_an_error_of_ours_that_a_classifier_raises_ends_the_job_with_nothing_written(store):
    def away(earlier, later, *, cosine):
        raise ExtractionError("the model is away", reason="away", passing=True)

    path, ana = replace(OPEN, resolve=Resolve(classifier=away)), store.scoped(**ANA)
    ana.ingest(["I live in Paris."], path=path)
    before = store.version
    with pytest.raises(ExtractionError):
        ana.ingest(["I moved to Berlin last week."], path=path)
    assert store.version == before
    assert ana.ingest(["I moved to Berlin."], path=path, idempotency_key="k").status == "failed"


@pytest.mark.parametrize("level", [*SCOPE_LEVELS, "domain"])
def test_half_a_character_in_a_name_is_refused_as_everywhere(store, level):
    """It was "redaction_failed", or ended the job."""
    with pytest.raises(InvalidInputError, match=f"{level} holds a lone surrogate at position 1"):
        store.ingest(["I live in Paris."], **{level: "a\ud800"})


@pytest.mark.parametrize("how", [{}, {"idempotency_key": "k"}])
def test_a_message_of_a_time_that_cannot_be_stored_is_refused_alone(store, how):
    """It ended the whole job."""
    times = {
        "I live in Paris.": datetime.min.replace(tzinfo=UTC),
        "I love hiking in the Alps.": datetime(1, 1, 2, tzinfo=UTC),
        "I play the violin until January.": datetime(9998, 12, 31, 23, 59, 59, tzinfo=UTC),
        "I work as a nurse.": datetime(9999, 1, 1, tzinfo=UTC),
    }
    said = [Message(content=text, at=at) for text, at in times.items()]
    ana = store.scoped(**ANA)
    result = ana.ingest(said, path=OPEN, **how)
    assert contents(ana) == ["I love hiking in the Alps.", "I play the violin until January."]
    assert result.counts["normalise"] == {"time_out_of_range": 2}
    gone = ana.ingest([said[0]], path=OPEN)
    assert (gone.status, gone.reason) == ("refused", "time_out_of_range")
    check(store)


def numbered(seq, text):
    return [{"role": "user", "content": text, "seq": seq}]


@pytest.mark.disk
def test_a_store_is_opened_with_how_long_and_for_how_many_events_are_waited_for(
    reopen, tmp_path, clock
):
    """`OrderOptions` could not be given."""
    options = OrderOptions(bound=1, start=1, timeout=timedelta(hours=1))
    path = replace(OPEN, order=options)
    store = reopen(tmp_path / "store", write_path=path, clock=clock)
    ana = store.scoped(**ANA)
    assert ana.ingest(numbered(1, "I live in Paris."), ordered=True).status == "done"
    early = ana.ingest(numbered(3, "I love hiking in the Alps."), ordered=True)
    assert early.status == "buffered"
    with pytest.raises(RejectedError, match="the bound is 1"):
        ana.ingest(numbered(4, "I work as a nurse."), ordered=True)
    clock.forward(minutes=50)
    store.worker().drain()
    assert store.jobs.get(early.job).state == "waiting"
    clock.forward(minutes=20)
    store.worker().drain()
    assert store.jobs.get(early.job).state == "done"


@pytest.mark.disk
def test_a_handle_kept_to_a_scope_sees_and_awaits_its_own_jobs_and_no_others(store):
    """`jobs` refused it, also for the job that it had handed in."""
    ana, eva = store.scoped(**ANA), store.scoped(**{**ANA, "user": "eva"})
    mine = ana.ingest(["I live in Paris."], wait=False).job
    other = eva.ingest(["I live in Rome."], wait=False).job
    both = store.ingest(
        [
            Conversation(messages=(Message(content="I ride."),), scope=Scope(**{**ANA, "user": u}))
            for u in ("ana", "eva")
        ],
        wait=False,
    ).job
    assert [job.id for job in ana.jobs.list()] == [mine]
    assert (ana.jobs.get(mine).id, ana.jobs.find(mine).id) == (mine, mine)
    for id in (other, both, other[:-1], ""):
        with pytest.raises(NotFoundError):
            ana.jobs.get(id)
        assert ana.jobs.find(id) is None
    assert {job.id for job in store.scoped(tenant="acme").jobs.list()} == {mine, other, both}
    store.worker().drain()
    assert ana.jobs.wait(mine, timeout=1).state == "done"
    for verb in ("retry", "purge"):
        with pytest.raises(ScopeError, match=verb):
            getattr(ana.jobs, verb)([mine])
    assert store.jobs.get(mine).state == "done"


@pytest.mark.disk
def test_a_dead_job_whose_memories_are_stored_gives_their_ids_when_it_is_tried_again(
    store, monkeypatch
):
    """A job dies after its commit where its worker is killed again and again."""
    ana = store.scoped(**ANA)
    job = ana.ingest(["I live in Paris."], wait=False).job

    def killed(*_, **__):
        raise StorageError("the ledger is away")

    worker = store.worker(path=OPEN, retry=Retry(attempts=1))
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "_answer", killed)
        assert worker.work(job).state == "dead"
    (memory,) = ana.list()
    store.jobs.retry([job])
    assert worker.work(job).answer["ids"] == [memory.id]


@pytest.mark.parametrize("how", [{}, {"idempotency_key": "k"}])
def test_whoever_asks_is_told_how_far_each_step_is(store, how):
    said = [
        Conversation(
            messages=(Message(content=f"I live in {city}."),), scope=Scope(**ANA, session=c)
        )
        for c, city in (("1", "Paris"), ("2", "Rome"))
    ]
    told = []
    store.ingest(said, path=OPEN, progress=lambda *one: told.append(one), **how)
    steps = [("redact", 1, 2), ("redact", 2, 2), ("extract", 1, 2), ("extract", 2, 2)]
    assert told == [*steps, ("embed", 2, 2)]


def test_a_dry_run_where_nothing_is_remembered_yet_asks_the_layers_that_remember(store):
    """It noted that there is no ledger to ask, and let a repeated question through."""
    asked = "Which of the museums in Paris are open on Mondays in August?"
    said = [
        Conversation(messages=(Message(content=asked),), scope=Scope(**ANA, session=session))
        for session in "ab"
    ]
    would = store.ingest(said, dry_run=True)
    assert would.degraded == ()
    assert would.counts["gate"] == {"duplicate_query": 1}
    assert not ledger_of(store).exists()
    assert store.ingest(said).counts == would.counts


def ledger_of(store):
    return store._table.place.local / "ingest" / "ledger.sqlite"


def test_every_memory_that_is_handed_in_is_told_of_with_its_place_and_version(store):
    """C08: stored, already there, waiting or discarded, and why; never "done" with nothing there."""
    asked = {"tenant": "acme", "user": "ana"}
    first = store.ingest("I live in Faro and I am allergic to peanuts.", **asked)
    assert (first.uri, first.version) == (store.uri, store.version)
    again = store.ingest("I am allergic to peanuts.", session="another day", **asked)
    none = store.ingest("ok", session="a third", **asked)

    assert {store.get(id).content for id in first.ids} == {
        "I live in Faro",
        "I am allergic to peanuts.",
    }
    (known,) = [d for d in again.decisions if d.step == "resolve"]
    assert (again.ids, again.version, known.verdict) == ((), first.version + 1, "reject")
    assert known.memory in first.ids
    assert (none.status, none.ids, none.reason) == (IngestStatus.L2, (), "low_quality")
