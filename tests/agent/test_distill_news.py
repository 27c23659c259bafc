"""A pass reads what can have changed since the last one, and makes what a pass over all would."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory import Distiller, DistillOptions, MemoryStore, RetentionPolicy, Scope
from lance_memory.testing import check

EARLY = datetime(2024, 12, 1, 10, tzinfo=UTC)
ONLY = DistillOptions(of=("session",))


@pytest.fixture(autouse=True)
def _however_few(monkeypatch):
    """A store of a few memories is read whole else, as that is sooner done."""
    monkeypatch.setattr("lance_memory.agent.distill.reached._FEW", -1)


def say(store, number=3, *, session="s1", user="ann", at=EARLY, **more):
    return store.add_many(
        {
            "content": f"I paid {n + 10} euros for kettle {n} ({session}).",
            "tenant": "t",
            "user": user,
            "session": session,
            "event_at": at + timedelta(minutes=n),
            **more,
        }
        for n in range(number)
    ).ids


def made(result):
    return sorted((str(one), str(one.scope)) for one in result.snapshots)


def settled(store, options=None):
    """Passes until the last one's own snapshots are not news any more."""
    for _ in range(2):
        Distiller(store, options=options).distill()


# -- what is read --------------------------------------------------------------------------------


def test_of_a_long_history_only_what_has_news_is_read(store):
    for n in range(20):
        say(store, 12, session=f"old {n}", at=EARLY - timedelta(days=n))
    settled(store)
    assert Distiller(store).distill().read == 0
    say(store, session="new", at=EARLY + timedelta(days=1))
    say(store, 1, session="old 3", at=EARLY + timedelta(days=2))
    result = Distiller(store).distill()
    assert made(result) == [
        ("day 2024-12-02", "tenant=t/user=ann"),
        ("session new", "tenant=t/user=ann/session=new"),
        ("session old 3", "tenant=t/user=ann/session=old 3"),
    ]
    assert (result.read, result.unchanged) == (16, 39)
    assert Distiller(store).distill(whole=True, dry_run=True).read == 244


def test_what_others_do_costs_a_user_nothing(store):
    say(store)
    ann = store.scoped(tenant="t", user="ann")
    settled(ann)
    say(store, 9, user="bob", session="s2")
    assert Distiller(ann).distill().read == 0
    assert Distiller(store.scoped(tenant="t", user="bob")).distill().read == 9


def test_a_merge_of_files_changes_nothing_and_loses_nothing(store):
    say(store)
    settled(store)
    say(store, 2, session="s2", at=EARLY - timedelta(days=1))
    store.optimize()
    result = Distiller(store).distill()
    assert [name for name, _ in made(result)] == ["day 2024-11-30", "session s2"]
    check(store)


def test_after_a_deletion_everything_is_read_again(store):
    ids = say(store)
    say(store, session="s2", at=EARLY - timedelta(days=1))
    settled(store)
    store.delete(ids)
    result = Distiller(store).distill()
    assert (result.read, len(result.retired)) == (3, 2)
    assert Distiller(store).distill().read in (0, 3)


def test_a_note_of_another_history_is_not_believed(store, tmp_path, reopen):
    """A store that was put back from a backup goes on to the same numbers with other rows."""
    say(store)
    settled(store)
    (key,) = [key for key, _ in store.ledger.items("distill")]
    other = reopen(tmp_path / "other")
    say(other, session="s9")
    say(other, session="s8", at=EARLY - timedelta(days=1))
    while other.version < store.version:
        say(other, 1, session="later", at=EARLY - timedelta(days=other.version + 2))
    other.ledger.put("distill", key, store.ledger.get("distill", key))
    assert {"session s8", "session s9"} <= {name for name, _ in made(Distiller(other).distill())}


def test_what_was_refused_is_tried_again_without_news(store):
    for n in range(3):
        say(store, session=f"s{n}", at=EARLY - timedelta(days=n))
    picky = Distiller(
        store, lambda c: None if c[0].session == "s1" else "\n".join(m.content for m in c)
    )
    assert [one.name for one in picky.distill().refused] == ["s1", "2024-11-30"]
    for _ in range(2):
        picky.distill()
    again = picky.distill()
    assert (len(again.refused), again.read) == (2, 3)
    assert made(Distiller(store).distill()) == [
        ("day 2024-11-30", "tenant=t/user=ann"),
        ("session s1", "tenant=t/user=ann/session=s1"),
    ]


def test_time_alone_is_news(store, clock):
    """A memory expires, and its snapshot with it; a day is over; nobody has written anything."""
    end = clock.now + timedelta(hours=30)
    say(store)
    say(store, 1, at=EARLY + timedelta(hours=1), expires_at=end)
    say(store, session="today", at=clock.now)
    settled(store)
    clock.forward(hours=25)
    assert made(Distiller(store).distill()) == [("day 2025-01-01", "tenant=t/user=ann")]
    settled(store)
    clock.forward(hours=6)
    result = Distiller(store).distill()
    assert [name for name, _ in made(result)] == ["day 2024-12-01", "session s1"]
    assert {len(one.sources) for one in result.snapshots} == {3}
    assert Distiller(store).distill(whole=True).snapshots == ()


def test_what_was_missing_before_an_event_lets_it_in_once_it_comes(store, clock):
    def arrive(*seqs, job):
        store.order.arrived("t", seqs, job=job, now=clock())

    arrive(0, 1, job="a")
    store.order.done("t", "a")
    arrive(3, job="b")  # 2 is missing
    for seq in (0, 1, 3):
        say(store, 1, at=EARLY + timedelta(hours=seq), seq=seq)
    settled(store)
    assert {len(m.relationships) for m in store.list(source="distilled")} == {2}
    store.order.skip("t", (2, 2))
    store.order.done("t", "b")
    result = Distiller(store).distill()
    assert ([one.seq_to for one in result.snapshots], result.watermarks) == ([3, 3], {"t": 3})


def test_the_notes_name_nobody(store):
    say(store, session="Zanzibar", user="Zanzibar")
    kept = store.scoped(tenant="t", user="Zanzibar")
    settled(kept)
    raw = [key.encode() + value for key, value in store.ledger.items("distill")]
    assert len(raw) == 1
    assert b"Zanzibar" not in raw[0]


def test_a_snapshot_whose_sources_were_all_wrong_gives_way_to_what_is_right(store):
    """The pass retired it and put another in its place at once, which ended every pass."""
    ids = say(store)
    Distiller(store, options=ONLY).distill()
    store.retire(ids, reason="not true")
    say(store, 2, at=EARLY + timedelta(hours=1))
    result = Distiller(store, options=ONLY).distill()
    assert (len(result.snapshots), result.retired) == (1, ())
    assert [len(one.relationships) for one in store.list(source="distilled")] == [3]
    check(store)


# -- the law -------------------------------------------------------------------------------------


STEPS = [
    *("say", "say", "say late", "say to come", "edit", "move", "retire", "supersede", "expire"),
    *("put away", "delete", "wait", "wait", "gap", "optimize", "roll back", "drop a snapshot"),
]


def picky(cluster):
    """Leaves one session alone, and so shows what is tried again."""
    return None if cluster[0].session == "b" else "\n".join(m.content for m in cluster)


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_pass_by_its_notes_is_a_pass_over_everything(tmp_path, reopen, ticking, data):
    store = reopen(tmp_path / uuid.uuid4().hex, clock=ticking())
    distiller = Distiller(
        store, picky, options=DistillOptions(max_snapshots=3, max_sources=3, max_dropped=1)
    )
    story = Story(store=store, data=data)
    for user in ("ann", "bob"):
        story.say("b", user=user, back=1)
    for _ in range(data.draw(st.integers(3, 8))):
        for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=3)):
            story.tell(step)
        by_notes, by_all = (distiller.distill(whole=w, dry_run=True) for w in (False, True))
        assert told(by_notes) == told(by_all)
        distiller.distill()
    assert distiller.distill(whole=True).watermarks == {}
    check(store, history=False)


def told(result):
    made_ = [(str(one), one.scope, one.content, one.sources) for one in result.snapshots]
    refused = sorted((str(one), str(one.scope)) for one in result.refused)
    return made_, refused, result.unchanged, result.left, sorted(result.retired)


@dataclass
class Story:
    """What happens to the memories of two users, one of whose events are numbered."""

    store: MemoryStore
    data: st.DataObject
    number: int = 0

    def say(self, session, *, user, back, **more):
        """Two memories, so many days back."""
        at = self.store.clock() - timedelta(days=back)
        for _ in range(2):
            if user == "ann":
                self.store.order.arrived("t", [self.number], job=f"j{self.number}", now=at)
                self.store.order.done("t", f"j{self.number}")
                more["seq"] = self.number
            where = {"tenant": "t", "user": user, "session": session}
            text = f"Number {self.number} in Porto."
            self.store.add(text, **{k: v for k, v in where.items() if v}, event_at=at, **more)
            self.number += 1

    def tell(self, step):
        """One thing that happens."""
        store, draw = self.store, self.data.draw
        own = [m for m in store.list(kinds="episodic") if m.source != "distilled"]
        some = [draw(st.sampled_from(own)).id] if own else []
        session = draw(st.sampled_from(["a", "b", ""]))
        user = draw(st.sampled_from(["ann", "bob"]))
        match step:
            case "say":
                self.say(session, user=user, back=0)
            case "say late":
                self.say(session, user=user, back=draw(st.integers(1, 4)))
            case "say to come":
                self.say(session, user=user, back=-1)
            case "expire":
                end = store.clock() + timedelta(days=1)
                self.say(session, user=user, back=1, expires_at=end)
            case "edit" if some:
                store.update(some[0], content=f"Changed {self.number}.")
            case "move" if some:
                store.update(some[0], event_at=store.clock() - timedelta(days=2))
            case "retire" if some:
                store.retire(some, reason="not true")
            case "supersede" if some:
                store.supersede(some, f"Better {self.number}.")
            case "put away":
                policy = RetentionPolicy(ages={"episodic": timedelta(days=3)})
                store.retain(policy, archive=None)
            case "delete" if some:
                store.delete(some)
            case "wait":
                store.clock.forward(hours=draw(st.sampled_from([1, 13, 30])))
            case "gap":
                self.number += 1
            case "optimize":
                store.optimize()
            case "roll back":
                store.rollback(max(2, store.version - draw(st.integers(1, 4))))
            case "drop a snapshot":
                for memory in store.list(source="distilled")[:1]:
                    store.retire(memory.id, reason="not wanted")


def test_a_scope_of_its_own_has_a_note_of_its_own(store):
    say(store)
    settled(store)
    say(store, 2, session="s2")
    assert len(Distiller(store.scoped(tenant="t")).distill().snapshots) == 2
    assert Distiller(store).distill().snapshots == ()
    assert {m.scope.user for m in store.list(source="distilled")} == {"ann"}
    assert Scope(tenant="t", user="ann", session="s2") in {m.scope for m in store.list()}
