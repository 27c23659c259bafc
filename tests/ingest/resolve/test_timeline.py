"""One topic, walked on where something later is said, is the topic walked anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from resolve_kit import Talk, likes, lives

from lance_memory.ingest.candidate import Resolution
from lance_memory.ingest.resolve import (
    STANDARD,
    Judgement,
    OnClash,
    Resolve,
    Routing,
    Standard,
    Whose,
)
from lance_memory.ingest.resolve.held import Held, Saying
from lance_memory.ingest.resolve.statement import Statement
from lance_memory.ingest.resolve.timeline import Walk, settle
from lance_memory.record.memory import State

ROUTINGS = [
    Routing(),
    Routing(policies=dict.fromkeys(Whose, OnClash.RECENT)),
    Routing(policies=dict.fromkeys(Whose, OnClash.REVIEW)),
]
WHAT = st.one_of(
    st.tuples(st.just("says"), st.integers(0, 3), st.booleans(), st.sampled_from([0.4, 0.9])),
    st.tuples(st.just("hears"), st.integers(0, 5), st.booleans(), st.sampled_from([0.4, 0.9])),
    st.tuples(st.just("moves"), st.integers(0, 5), st.booleans(), st.just(0.9)),
)
LOGS = st.lists(st.tuples(WHAT, st.sampled_from([1, 1, 1, 1, 0, -3])), min_size=1, max_size=14)


def saying_of(candidate, day):
    known = Statement.of(candidate)
    return Saying(
        at=candidate.event_at,
        id=f"{candidate.id}@{day}",
        event=candidate.event,
        confidence=candidate.confidence,
        authority=known.authority,
        announced=known.announced,
    )


def held_of(candidate, day):
    return Held(
        statement=Statement.of(candidate),
        kind="semantic",
        content_hash="",
        event=candidate.event,
        state=State.ACTIVE,
        own=saying_of(candidate, day),
    )


def done(members, what, day):
    """One thing more happens to a topic."""
    kind, number, flag, confidence = what
    if kind == "says" or not members:
        event = f"e{len(members)}"
        said = lives(f"Town{number}", day=day, change=flag, confidence=confidence, event=event)
        members.append(held_of(said, day))
    elif kind == "hears":
        member = members[number % len(members)]
        again = lives("Town", day=day, change=flag, confidence=confidence)
        member.hear(saying_of(again, day))
    else:  # something else changes how one stands
        member = members[number % len(members)]
        member.state, member.reason = State.ACTIVE, "approved"
        member.settled = "both" if flag else "new"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(log=LOGS, routing=st.sampled_from(ROUTINGS))
def test_a_walk_that_goes_on_comes_to_what_a_new_one_comes_to(log, routing):
    on, anew, walk, day = [], [], Walk(), 100
    for what, step in log:
        day += step
        for members in (on, anew):
            done(members, what, day)
        settle(on, STANDARD, routing, walk=walk)
        settle(anew, STANDARD, routing)
        assert [one.now() for one in on] == [one.now() for one in anew]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting(Standard):
    """The standard rules, and how often they were asked."""

    asked: list[int] = field(default_factory=list)

    def __call__(self, earlier, later, *, cosine):
        self.asked.append(1)
        return Standard.__call__(self, earlier, later, cosine=cosine)

    def may_repeat(self, earlier, later):
        return Standard.may_repeat(self, earlier, later)


def test_what_a_topic_takes_grows_with_what_is_said_and_not_with_its_square(talk):
    """500 residences in one job took a minute: each was compared with all, again and again."""
    classifier = Counting()
    talk.resolve = Resolve(classifier=classifier)
    number = 120
    talk.put(*(lives(f"Town{i}", day=i, change=True) for i in range(number)))
    assert talk.visible() == [f"I moved and now live in Town{number - 1}"]
    assert len(classifier.asked) < 3 * number


def test_a_classifier_that_is_called_in_its_own_way_is_asked_about_all_pairs(talk):
    """What it inherits says nothing of how it answers."""

    class Rash(Standard):
        def __call__(self, earlier, later, *, cosine):
            return Judgement(resolution=Resolution.REJECT, reason="whatever", timeless=True)

    talk.resolve = Resolve(classifier=Rash())
    talk.put(lives("Lisbon"), lives("Porto", day=1), lives("Faro", day=2))
    assert talk.visible() == ["I live in Lisbon"]


def test_what_is_said_of_many_topics_is_compared_within_them(talk):
    classifier = Counting()
    talk = Talk(talk.store, Resolve(classifier=classifier))
    talk.put(*(likes(f"thing{i}", day=i) for i in range(60)))
    assert len(talk.visible()) == 60
    assert len(classifier.asked) < 3 * 60
