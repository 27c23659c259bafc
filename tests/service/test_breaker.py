"""A breaker stops calling what keeps failing, tries again after its rest, and holds up no thread."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lance_memory.errors import InvalidInputError
from lance_memory.service.breaker import Breaker, BreakerOpenError

REST = 0.05


def breaker(**options):
    return Breaker("service", **{"counts": (OSError,), "failures": 2, "rest": REST, **options})


def fail():
    raise OSError("gone")


def failed(of, times):
    for _ in range(times):
        with pytest.raises(OSError, match="gone"):
            of.call(fail)


def outcome(of, work):
    try:
        return of.call(work)
    except BreakerOpenError:
        return "refused"


def test_what_it_calls_passes_through():
    one = breaker()
    assert one.call(lambda: 5) == 5
    failed(one, 1)
    with pytest.raises(KeyError):
        one.call(lambda: {}[1])


def test_it_opens_after_so_many_failures_in_a_row():
    one = breaker(rest=60.0)
    failed(one, 1)
    one.call(lambda: 5)
    failed(one, 1)
    assert not one.is_open
    failed(one, 1)
    assert one.is_open
    with pytest.raises(BreakerOpenError, match="service kept failing"):
        one.call(lambda: 5)


def test_exceptions_that_do_not_count_leave_it_closed():
    one = breaker()
    for _ in range(5):
        with pytest.raises(KeyError):
            one.call(lambda: {}[1])
    assert one.call(lambda: 5) == 5


def test_after_its_rest_a_success_closes_it():
    one = breaker()
    failed(one, 2)
    time.sleep(REST)
    assert not one.is_open
    assert [one.call(lambda: 5) for _ in range(3)] == [5, 5, 5]
    failed(one, 1)
    assert one.call(lambda: 5) == 5


def test_after_its_rest_a_failure_opens_it_again():
    one = breaker(rest=1.0)
    failed(one, 2)
    time.sleep(1.0)
    failed(one, 1)
    assert outcome(one, lambda: 5) == "refused"


def test_only_one_call_tries_whether_it_works_again():
    one = breaker()
    failed(one, 2)
    time.sleep(REST)
    inside, let_go = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert let_go.wait(20)
        return "tried"

    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(one.call, wait)
        assert inside.wait(20)
        assert outcome(one, lambda: 5) == "refused"
        let_go.set()
        assert trial.result(20) == "tried"
    assert outcome(one, lambda: 5) == 5


def test_threads_call_at_the_same_time():
    one, meeting = breaker(), threading.Barrier(4, timeout=20)
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(lambda _: one.call(meeting.wait), range(4)))) == 4


def test_failures_of_many_threads_open_it():
    one, meeting = breaker(rest=60.0), threading.Barrier(4, timeout=20)

    def fail_together():
        meeting.wait()
        raise OSError("gone")

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(one.call, fail_together) for _ in range(4)]:
            with pytest.raises(OSError, match="gone"):
                future.result(20)
    assert outcome(one, lambda: 5) == "refused"


@pytest.mark.parametrize(
    "options", [{"failures": 0}, {"failures": 1.5}, {"rest": 0}, {"rest": float("nan")}]
)
def test_numbers_out_of_bounds_are_refused(options):
    with pytest.raises(InvalidInputError, match="it takes"):
        breaker(**options)
