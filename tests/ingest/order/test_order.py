"""Events of a tenant are worked off once each, in order, whatever order they arrive in."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from forked import Forked
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import MemoryStore
from lance_memory.errors import InvalidInputError, RejectedError
from lance_memory.ingest.order import (
    Arrival,
    Arrived,
    Order,
    OrderOptions,
    Watermarks,
    boundary,
)
from lance_memory.ledger import open_ledger

NOW = datetime(2025, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=6)


@pytest.fixture
def order():
    ledger = open_ledger(":memory:")
    yield Order(ledger)
    ledger.close()


def arrive(order, first, last=None, *, at=NOW, tenant="t"):
    """The status of a job that is named by its first event."""
    seqs = range(first, (first if last is None else last) + 1)
    return order.arrived(tenant, seqs, job=f"j{first}", now=at).status


def test_what_is_next_is_ready_and_what_is_not_waits(order):
    assert arrive(order, 3, 4) is Arrived.BUFFERED
    assert arrive(order, 0, 2) is Arrived.READY
    assert order.status("t") == Watermarks(
        ingested=4, contiguous=-1, distilled=-1, buffered=2, running=("j0",)
    )
    assert order.done("t", "j0") == ("j3",)
    assert order.done("t", "j3") == ()
    assert order.status("t") == Watermarks(ingested=4, contiguous=4, distilled=-1)


def test_a_job_waits_for_the_one_before_it_to_be_done(order):
    assert arrive(order, 0) is Arrived.READY
    assert arrive(order, 1) is Arrived.BUFFERED
    assert order.overdue(LATER) == ()  # nothing is missing: the one before it still runs
    assert order.done("t", "j0") == ("j1",)


def test_what_was_here_before_is_replayed_and_its_job_asked_about_again(order):
    assert arrive(order, 0, 2) is Arrived.READY
    assert arrive(order, 0, 2) is Arrived.READY  # the same job: its caller was killed, say
    again = order.arrived("t", [0, 1, 2], job="other", now=NOW)
    assert again == Arrival(status=Arrived.REPLAYED)
    order.done("t", "j0")
    assert arrive(order, 0, 2) is Arrived.REPLAYED
    assert order.done("t", "j0") == ()


def test_of_a_job_that_was_here_in_part_the_rest_is_fresh(order):
    arrive(order, 0, 2)
    order.done("t", "j0")
    arrival = order.arrived("t", range(1, 6), job="j", now=NOW)
    assert arrival == Arrival(status=Arrived.READY, fresh=((3, 5),))
    assert [seq for seq in range(1, 6) if arrival.has(seq)] == [3, 4, 5]


def test_conversations_whose_events_interleave_lose_none(order):
    assert order.arrived("t", [0, 2, 4], job="a", now=NOW).status is Arrived.READY
    assert order.arrived("t", [1, 3, 5], job="b", now=NOW).status is Arrived.BUFFERED
    assert order.done("t", "a") == ("b",)
    assert order.status("t").contiguous == 0
    order.done("t", "b")
    assert order.status("t").contiguous == 5


def test_after_the_time_out_a_gap_is_passed_and_recorded(order):
    arrive(order, 0)
    order.done("t", "j0")
    arrive(order, 5, 6)
    arrive(order, 8)
    assert order.overdue(NOW + timedelta(minutes=4)) == ()
    assert order.overdue(LATER) == (("t", "j5"),)
    assert order.status("t") == Watermarks(
        ingested=8,
        contiguous=0,
        distilled=-1,
        gaps=((1, 4), (7, 7)),
        given_up=((1, 4),),
        buffered=1,
        running=("j5",),
    )
    assert order.overdue(LATER) == ()  # one after the other
    assert order.done("t", "j5") == ()
    assert order.overdue(LATER) == (("t", "j8"),)


def test_what_arrives_late_fills_its_gap_at_once(order):
    arrive(order, 2)
    order.overdue(LATER)
    order.done("t", "j2")
    assert arrive(order, 0, at=LATER) is Arrived.READY
    assert arrive(order, 1, at=LATER) is Arrived.READY
    assert order.status("t").contiguous == -1
    order.done("t", "j1")
    order.done("t", "j0")
    assert order.status("t") == Watermarks(ingested=2, contiguous=2, distilled=-1)


def test_a_skipped_gap_counts_as_done_and_is_worked_off_if_it_comes(order):
    arrive(order, 2)
    assert order.skip("t", (0, 1)) == ("j2",)
    order.done("t", "j2")
    assert order.status("t") == Watermarks(ingested=2, contiguous=2, distilled=-1)
    assert arrive(order, 1) is Arrived.READY
    assert order.status("t").contiguous == 2
    order.done("t", "j1")
    assert order.status("t").contiguous == 2
    assert arrive(order, 1) is Arrived.REPLAYED


def test_skipping_touches_nothing_that_has_arrived(order):
    arrive(order, 1)
    order.skip("t", (0, 9))
    assert order.status("t").running == ("j1",)
    assert order.status("t").contiguous == 0


def test_a_job_that_was_given_up_leaves_a_gap_that_it_may_fill_again(order):
    arrive(order, 0)
    arrive(order, 1)
    assert order.failed("t", "j0") == ("j1",)
    assert order.status("t").given_up == ((0, 0),)
    order.done("t", "j1")
    assert order.status("t").contiguous == -1
    assert arrive(order, 0) is Arrived.READY
    order.done("t", "j0")
    assert order.status("t").contiguous == 1


def test_a_full_buffer_is_a_refusal_that_says_so():
    order = Order(open_ledger(":memory:"), OrderOptions(bound=3))
    arrive(order, 1, 2)
    with pytest.raises(RejectedError, match="buffer is full: 5 events"):
        arrive(order, 5, 7)
    assert order.status("t").buffered == 2
    assert arrive(order, 0) is Arrived.READY  # what is next never waits


def test_distilled_goes_up_to_the_contiguous_watermark_and_never_back(order):
    arrive(order, 0, 3)
    with pytest.raises(InvalidInputError, match="not reached"):
        order.distilled("t", 2)
    order.done("t", "j0")
    assert order.distilled("t", 3).distilled == 3
    assert order.distilled("t", 1).distilled == 3
    with pytest.raises(InvalidInputError, match="complete up to 3"):
        order.distilled("t", 4)


def test_tenants_have_nothing_to_do_with_each_other(order):
    assert arrive(order, 1, tenant="a") is Arrived.BUFFERED
    assert arrive(order, 0, tenant="b") is Arrived.READY
    assert order.status("c") == Watermarks(ingested=-1, contiguous=-1, distilled=-1)
    assert [*order.tenants()] == ["a", "b"]


def test_the_first_number_is_an_option():
    order = Order(open_ledger(":memory:"), OrderOptions(start=1))
    assert arrive(order, 1) is Arrived.READY
    with pytest.raises(InvalidInputError, match="from 1 on"):
        arrive(order, 0)


@pytest.mark.parametrize("options", [{"bound": -1}, {"start": -1}, {"timeout": -timedelta(1)}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidInputError, match="negative"):
        OrderOptions(**options)


def test_times_and_gaps_that_make_no_sense_are_refused(order):
    with pytest.raises(InvalidInputError, match="no time zone"):
        order.arrived("t", [0], job="j", now=datetime(2025, 1, 1))
    with pytest.raises(InvalidInputError, match="at least one"):
        order.arrived("t", [], job="j", now=NOW)
    with pytest.raises(InvalidInputError, match="in that order"):
        order.skip("t", (3, 2))


@st.composite
def deliveries(draw):
    """Jobs that share out 0..n among them, and the order in which they and replays arrive."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    jobs = [range(start, start + n) for start, n in zip(starts, sizes, strict=True)]
    extra = draw(st.lists(st.sampled_from(jobs), max_size=5))
    return draw(st.permutations([*jobs, *extra])), draw(st.integers(0, 2**16))


@settings(max_examples=150, deadline=None)
@given(deliveries())
def test_whatever_the_order_and_the_replays_each_event_is_worked_off_once_and_in_order(drawn):
    arriving, seed = drawn
    chance, order, running, worked, marks = (
        random.Random(seed),
        Order(open_ledger(":memory:")),
        [],
        [],
        [],
    )
    events = {}

    def work():
        name = running.pop(0)
        worked.extend(events.pop(name))
        running.extend(order.done("t", name))

    for number, seqs in enumerate(arriving):
        name = f"job {number}"
        arrival = order.arrived("t", seqs, job=name, now=NOW)
        events[name] = [seq for seq in seqs if arrival.has(seq)]
        if arrival.status is Arrived.READY:
            running.append(name)
        while running and chance.random() < 0.5:
            work()
        marks.append(order.status("t"))
        assert marks[-1].contiguous <= marks[-1].ingested
    while running:
        work()
    last = max(seqs[-1] for seqs in arriving)
    assert worked == [*range(last + 1)]
    assert order.status("t") == Watermarks(ingested=last, contiguous=last, distilled=-1)
    assert [m.contiguous for m in marks] == sorted(m.contiguous for m in marks)


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(8)), st.sets(st.integers(0, 7)), st.integers(0, 2**16))
def test_past_gaps_too_each_event_is_worked_off_once_and_no_watermark_goes_back(seqs, lost, seed):
    chance, order, running, worked, marks = (
        random.Random(seed),
        Order(open_ledger(":memory:")),
        [],
        [],
        [-1],
    )
    for seq in [*(s for s in seqs if s not in lost), *lost]:
        if arrive(order, seq) is Arrived.READY:
            running.append(f"j{seq}")
        if chance.random() < 0.5:
            running += [job for _, job in order.overdue(LATER)]
        while running and chance.random() < 0.7:
            name = running.pop(chance.randrange(len(running)))
            worked.append(name)
            running += order.done("t", name)
        marks.append(order.status("t").contiguous)
    while running := [*running, *(job for _, job in order.overdue(LATER))]:
        worked.append(name := running.pop())
        running += order.done("t", name)
    assert sorted(worked) == [f"j{seq}" for seq in range(8)]
    assert marks == sorted(marks)
    assert order.status("t") == Watermarks(ingested=7, contiguous=7, distilled=-1)


ONE = """
import sys
from datetime import UTC, datetime
from lance_memory.ingest.order import Arrived, Order
from lance_memory.ledger import open_ledger

order, mine, jobs = Order(open_ledger(sys.argv[1])), [], [int(seq) for seq in sys.argv[2].split(",")]
running = []
for seq in jobs:
    now = datetime(2025, 1, 1, tzinfo=UTC)
    if order.arrived("t", [seq], job=f"{seq}", now=now).status is Arrived.READY:
        running.append(str(seq))
    while running:
        mine.append(running.pop(0))
        running += order.done("t", mine[-1])
print(",".join(mine))
"""


def test_two_processes_at_once_share_the_events_out_and_work_off_each_once(tmp_path):
    place = str(tmp_path / "ledger.sqlite")
    seqs = random.Random(4).sample(range(60), 60)
    halves = [seqs[:40], seqs[20:]]  # a third of them comes from both
    script = tmp_path / "one.py"
    script.write_text(ONE)
    started = [Forked(script, place, ",".join(map(str, half))) for half in halves]
    worked = [process.communicate()[0].strip() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    mine = [int(seq) for part in worked if part for seq in part.split(",")]
    assert set(mine) == set(range(60))
    marks = Order(open_ledger(place)).status("t")
    assert marks == Watermarks(ingested=59, contiguous=59, distilled=-1)


def test_memories_past_a_gap_are_left_out_of_what_may_be_consolidated(order, tmp_path, embedder):
    hostile = "x' OR '1'='1"
    store = MemoryStore.open(tmp_path / "s", embedder=embedder)
    rows = [("t", 0), ("t", 2), ("t", None), (hostile, 5), (hostile, 6), ("other", 9)]
    for tenant, seq in rows:
        store.add(f"memory {seq} of {len(tenant)}", tenant=tenant, seq=seq)
    assert boundary(order) is None
    arrive(order, 0)
    order.done("t", "j0")
    assert boundary(order) is None  # nothing is outstanding
    arrive(order, 2)
    arrive(order, 6, tenant=hostile)
    order.skip(hostile, (0, 5))  # releases the sixth, which runs from now on
    kept = store._snapshot().scan(boundary(order), columns=["tenant", "seq"]).to_pylist()
    assert sorted((row["tenant"], str(row["seq"])) for row in kept) == sorted(
        [("t", "0"), ("t", "None"), (hostile, "5"), ("other", "9")]
    )
    assert boundary(order, ["other"]) is None
    assert order.ceiling("t") == 0
    assert order.ceiling("nobody") is None
    store.close()
