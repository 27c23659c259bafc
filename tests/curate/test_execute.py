from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import InvalidInputError, Memory
from lance_memory.curate.transform.execute import Execution, Outcome, outcomes
from lance_memory.curate.transform.protocol import Derived
from lance_memory.errors import TransformError

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def memory(content, **fields):
    times = {"created_at": NOON, "updated_at": NOON, "state_at": NOON}
    return Memory(id="m", revision=1, content=content, content_hash="", **times, **fields)


def clusters(*contents):
    return [[memory(content)] for content in contents]


def never():
    return False


def run(contents, transform, *, stop=never, **options):
    found = outcomes(clusters(*contents), transform, Execution(**options), stop=stop)
    return list(found)


def derived(content):
    return Outcome(derived=Derived(content=content))


def failed(reason):
    return Outcome(reason=reason, failed=True)


def passing(reason):
    """A failure that may be none if asked again."""
    return Outcome(reason=reason, failed=True, may_pass=True)


LEFT = Outcome(reason="the transform left it alone")


def by_word(cluster):
    """What its content says: raise, give nothing, give nonsense, or a text."""
    content = cluster[0].content
    if content.startswith("raise"):
        raise ValueError(content)
    if content == "number":
        return 5
    return {"none": None, "blank": " \n"}.get(content, content.upper())


@dataclass
class ByWord:
    """The same many at a time."""

    batch_size: int

    def many(self, clusters):
        return [self.one(cluster) for cluster in clusters]

    def one(self, cluster):
        try:
            return by_word(cluster)
        except ValueError as error:
            return error

    def __call__(self, cluster):
        return by_word(cluster)


WAYS = [
    {},
    {"workers": 4},
    {"timeout": 5.0},
    {"workers": 2, "timeout": 5.0},
    {"workers": 2, "executor": "threads"},
]


@pytest.fixture
def executors():
    with ThreadPoolExecutor(2) as pool:
        yield {"threads": pool}


@pytest.fixture(params=WAYS, ids=str)
def way(request, executors):
    name = request.param.get("executor")
    return {**request.param, **({"executor": executors[name]} if name else {})}


def test_each_answer_becomes_the_outcome_of_its_cluster(way):
    contents = ["tea", "none", "blank", "number", "raise this", "milk"]
    expected = [
        derived("TEA"),
        LEFT,
        failed("the transform gave an empty text"),
        failed("the transform gave 5; it gives a text, a Derived or None"),
        passing("it raised ValueError: raise this"),
        derived("MILK"),
    ]
    assert run(contents, by_word, **way) == expected
    assert run(contents, ByWord(4), **way) == expected


WORDS = st.sampled_from(["tea", "milk", "none", "blank", "number", "raise a", "raise b"])


@settings(max_examples=60, deadline=None)
@given(
    contents=st.lists(WORDS, max_size=12),
    size=st.integers(1, 5),
    workers=st.integers(2, 4),
    retries=st.integers(0, 1),
)
def test_outcomes_do_not_depend_on_workers_or_batches(contents, size, workers, retries):
    alone = run(contents, by_word, retries=retries, first_wait=0.0)
    for transform in (by_word, ByWord(size)):
        assert run(contents, transform, workers=1, retries=retries, first_wait=0.0) == alone
        assert run(contents, transform, workers=workers, retries=retries, first_wait=0.0) == alone


def test_a_process_pool_gives_the_same(tmp_path, monkeypatch):
    source = "def shout(cluster):\n    if cluster[0].content == 'odd':\n        raise Odd(1, 2)\n"
    source += "    return cluster[0].content.upper()\n"
    source += (
        "class Odd(Exception):\n    def __init__(self, a, b):\n        super().__init__('odd')\n"
    )
    (tmp_path / "shouting.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    from shouting import shout

    contents = ["tea", "odd", *"abcdef"]
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        found = run(contents, shout, workers=2, executor=pool)
        unsendable = run(["tea"], lambda _: None, executor=pool)
    assert found == [
        derived("TEA"),
        passing("it raised Odd: odd"),  # cannot be pickled back as an exception
        *map(derived, "ABCDEF"),
    ]
    assert unsendable[0].failed
    assert "lambda" in unsendable[0].reason


def test_a_process_that_dies_fails_the_clusters_and_not_the_pass(tmp_path, monkeypatch):
    (tmp_path / "dying.py").write_text("import os\ndef die(cluster):\n    os._exit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    from dying import die

    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as pool:
        found = run(["a", "b", "c"], die, executor=pool, retries=3, first_wait=9.0)
    assert [(o.failed, "tries" in o.reason, "BrokenProcessPool" in o.reason) for o in found] == [
        (True, False, True)
    ] * 3


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["one"], "the transform gave 1 answer for 2 clusters"),
        (["one", "two", "three"], "the transform gave 3 answers for 2 clusters"),
        (None, "the transform gave None for a batch"),
        ("ab", "the transform gave 'ab' for a batch"),
    ],
)
def test_a_wrong_number_of_answers_fails_the_whole_batch(way, answers, reason):
    transform = ByWord(2)
    transform.many = lambda _: answers
    assert run(["a", "b", "c", "d"], transform, **{**way, "retries": 1}) == [failed(reason)] * 4


def test_a_reason_is_one_short_line(way):
    def rant(cluster):
        raise RuntimeError("one\ntwo " + "x" * 5_000)

    def told(cluster):
        raise TransformError("the service is down")

    (found,) = run(["a"], rant, **way)
    assert found.reason.startswith("it raised RuntimeError: one two xxx")
    assert len(found.reason) < 250
    assert run(["a"], told, **way) == [passing("the service is down")]
    assert run(["a"], raising(KeyError), **way) == [passing("it raised KeyError")]


def test_a_reason_holds_nothing_that_a_terminal_would_obey(way):
    odd = RuntimeError("\x1b[31mred\x07 \u202eback\x00 \x9b2J")
    (found,) = run(["a"], raising(odd), **way)
    assert found.reason == "it raised RuntimeError: \ufffd[31mred\ufffd \ufffdback\ufffd \ufffd2J"
    (found,) = run(["a"], raising(TransformError("\x1b]0;title")), **way)
    assert found.reason == "\ufffd]0;title"


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\x00", " \u2028\x1b\u00a0\u2060", ""])
def test_a_text_that_nobody_can_see_is_empty(unseen):
    assert run(["a"], lambda _: unseen) == [failed("the transform gave an empty text")]
    assert run(["a"], lambda _: f"{unseen}👩\u200d👧") == [derived(f"{unseen}👩\u200d👧")]


def raising(*errors):
    """Raises each in turn, then gives "done"."""
    left = list(errors)

    def transform(cluster):
        if left:
            raise left.pop(0)
        return "done"

    return transform


def test_what_may_pass_is_tried_again(way):
    options = {**way, "retries": 2, "first_wait": 0.01}
    assert run(["a"], raising(OSError(), OSError()), **options) == [derived("done")]
    assert run(["a"], raising(*[OSError("no")] * 3), **options) == [
        passing("it raised OSError: no (3 tries)")
    ]


def test_only_the_failed_clusters_of_a_batch_are_tried_again(way):
    calls = []

    class Flaky(ByWord):
        def many(self, clusters):
            calls.append([cluster[0].content for cluster in clusters])
            fails = len(calls) < 3
            return [OSError() if c == "b" and fails else c for c in calls[-1]]

    found = run(["a", "b", "c"], Flaky(3), **{**way, "retries": 2, "first_wait": 0.0})
    assert found == [derived("a"), derived("b"), derived("c")]
    assert calls == [["a", "b", "c"], ["b"], ["b"]]


def test_an_answer_that_would_be_the_same_is_not_asked_for_again(way):
    seen = []

    def transform(cluster):
        seen.append(cluster[0].content)
        if cluster[0].content == "lasting":
            raise InvalidInputError("no such model")
        return by_word(cluster)

    run(["none", "blank", "number", "lasting"], transform, **{**way, "retries": 3})
    assert sorted(seen) == ["blank", "lasting", "none", "number"]


def test_waits_between_tries_double():
    moments = []

    def transform(cluster):
        moments.append(time.monotonic())
        raise OSError

    run(["a"], transform, retries=3, first_wait=0.1)
    gaps = np.diff(moments)
    assert np.all(gaps >= [0.1, 0.2, 0.4])
    assert gaps.sum() < 1.4  # and not as long again


@pytest.mark.parametrize("workers", [1, 3])
def test_a_call_that_takes_too_long_is_abandoned_and_the_pass_goes_on(workers):
    release = threading.Event()

    def transform(cluster):
        if cluster[0].content == "slow":
            release.wait(30)
            return "late"
        return cluster[0].content

    contents = ["slow", "a", "b", "slow", "c"]
    options = {"workers": workers, "timeout": 0.3, "retries": 1, "first_wait": 0.0}
    began = time.monotonic()
    found = run(contents, transform, **options)
    late = passing("it took longer than 0.3 s (2 tries)")
    assert found == [late, derived("a"), derived("b"), late, derived("c")]
    assert time.monotonic() - began < 5
    release.set()


def test_a_late_answer_goes_nowhere():
    """An abandoned call that ends while others run must not be taken for theirs."""

    next_began, ended = threading.Event(), threading.Event()

    def transform(cluster):
        if cluster[0].content == "slow":
            next_began.wait(30)
            ended.set()
        else:
            next_began.set()
            ended.wait(30)
        return cluster[0].content

    found = run(["slow", *["next"] * 4], transform, timeout=0.4)
    assert found == [passing("it took longer than 0.4 s"), *[derived("next")] * 4]


def test_a_call_that_waits_for_a_busy_executor_is_told_apart():
    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        options = {"executor": pool, "workers": 2, "timeout": 0.2}
        found = run(["a", "b"], lambda _: release.wait(30), **options)
        release.set()
    assert found == [
        passing("it took longer than 0.2 s"),
        passing("it did not begin within 0.2 s"),
    ]


def test_a_call_that_its_executor_cancels_fails():
    queued = threading.Event()
    pool = ThreadPoolExecutor(1)

    def transform(cluster):
        queued.wait(5)
        pool.shutdown(wait=False, cancel_futures=True)
        return "done"

    def both():
        yield [memory("a")]
        yield [memory("b")]

    threading.Timer(0.2, queued.set).start()
    found = outcomes(both(), transform, Execution(executor=pool, workers=2), stop=never)
    assert list(found) == [derived("done"), passing("it raised CancelledError")]


def test_an_executor_that_was_shut_down_is_refused():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(InvalidInputError, match=r"takes no calls: .* that is not shut down"):
        run(["a"], by_word, executor=pool)


HANGING = """
import time
from datetime import UTC, datetime
from lance_memory import Memory
from lance_memory.curate.transform.execute import Execution, outcomes
now = datetime.now(UTC)
memory = Memory(id="m", revision=1, content="a", content_hash="", created_at=now, updated_at=now,
                state_at=now)
def hang(cluster):
    time.sleep(60)
execution = Execution(timeout=0.2)
print([o.reason for o in outcomes([[memory]], hang, execution, stop=lambda: False)], flush=True)
"""


@pytest.mark.slow
def test_an_abandoned_call_does_not_keep_the_interpreter_from_exiting():
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout == "['it took longer than 0.2 s']\n"
    assert ended.stderr == ""


INTERRUPTED = HANGING.replace("timeout=0.2", "workers=4").replace("[[memory]]", "[[memory]] * 9")


@pytest.mark.slow
def test_ctrl_c_ends_the_pass_while_calls_run():
    program = INTERRUPTED.replace("cluster):", "cluster):\n    import os; os.write(1, b'in\\n')")
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            first = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=10)
        finally:
            process.kill()
    assert first == "in\n"
    assert told.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_the_transform_ends_the_pass(way, error):
    with pytest.raises(error):
        run(["a", "b"], raising(error()), **{**way, "retries": 5})


def test_one_worker_runs_in_the_thread_of_the_caller():
    threads = []
    run(["a", "b"], lambda _: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()] * 2


def test_several_workers_run_at_the_same_time():
    together = threading.Barrier(3)

    def transform(cluster):
        together.wait(5)  # raises unless three calls are here at once
        return cluster[0].content

    assert run("abcdef", transform, workers=3) == [*map(derived, "abcdef")]


@pytest.mark.parametrize(("options", "most"), [({}, 1), ({"workers": 3}, 12)])
def test_clusters_are_taken_as_they_are_needed(options, most):
    taken = []

    def endless():
        for number in count():
            taken.append(number)
            yield [memory(str(number))]

    found = outcomes(endless(), lambda c: c[0].content, Execution(**options), stop=never)
    for given_so_far, outcome in enumerate(islice(found, 200)):
        assert outcome == derived(str(given_so_far))
        assert len(taken) - given_so_far <= most + 1
    found.close()
    assert len(taken) <= 200 + most


def test_a_slow_first_call_does_not_hold_up_the_others_without_end():
    first = threading.Event()
    taken = []

    def many():
        for number in range(100):
            taken.append(number)
            yield [memory(str(number))]

    def transform(cluster):
        if cluster[0].content == "0":
            first.wait(5)
        return cluster[0].content

    threading.Timer(0.5, lambda: (reached.append(len(taken)), first.set())).start()
    reached = []
    found = list(outcomes(many(), transform, Execution(workers=2), stop=never))
    assert found == [derived(str(n)) for n in range(100)]
    assert reached == [8]


def test_a_free_worker_takes_the_next_cluster_at_once():
    release = threading.Event()

    def transform(cluster):
        number = int(cluster[0].content)
        if number < 7:
            release.wait(5)
        elif number == 31:
            moments.append(time.monotonic())
            release.set()

    moments = [time.monotonic()]
    run([str(n) for n in range(32)], transform, workers=8)
    began, reached = moments
    assert reached - began < 0.6  # 25 calls, one after the other


def test_stop_ends_it_with_the_first_clusters(way):
    stop = threading.Event()
    began = []

    def transform(cluster):
        began.append(cluster[0].content)
        if cluster[0].content == "3":
            stop.set()
        return cluster[0].content

    found = run([str(n) for n in range(50)], transform, stop=stop.is_set, **way)
    assert found == [derived(str(n)) for n in range(len(found))]
    assert len(found) <= len(began) < 25
    assert "3" in began


def test_stop_before_the_first_call_gives_nothing(way):
    assert run(["a"], raising(AssertionError()), stop=lambda: True, **way) == []


def test_stop_does_not_wait_for_calls_or_for_the_next_try():
    stop, release = threading.Event(), threading.Event()
    threading.Timer(0.2, stop.set).start()
    began = time.monotonic()
    assert run(["a", "b"], lambda _: release.wait(30), stop=stop.is_set, workers=2) == []
    release.set()
    stop.clear()
    threading.Timer(0.2, stop.set).start()
    waiting = {"retries": 3, "first_wait": 30.0}
    assert run(["a", "b"], raising(OSError()), stop=stop.is_set, **waiting) == []
    assert time.monotonic() - began < 5


def test_stop_gives_what_is_known_of_a_batch_that_waits():
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    waiting = {"retries": 3, "first_wait": 30.0}
    found = run(["a", "raise b", "c"], ByWord(3), stop=stop.is_set, **waiting)
    assert found == [derived("A")]


def test_a_transform_gets_copies(way):
    vector = np.ones(3, dtype=np.float32)
    kept = memory("tea", metadata={"deep": {"list": [1]}}, embedding=vector)
    seen = []

    def spoil(cluster):
        seen.append((cluster[0].metadata["deep"]["list"][:], cluster[0].embedding.tolist()))
        cluster[0].metadata["deep"]["list"].append(2)
        cluster[0].embedding[:] = 0
        if len(seen) == 1:
            raise OSError
        return "spoiled"

    execution = Execution(**{**way, "retries": 1, "first_wait": 0.0})
    assert list(outcomes([[kept]], spoil, execution, stop=never)) == [derived("spoiled")]
    assert kept.metadata == {"deep": {"list": [1]}}
    assert kept.embedding.tolist() == [1, 1, 1]
    assert seen == [([1], [1, 1, 1])] * 2


def test_an_error_of_the_clusters_themselves_is_raised(way):
    def broken():
        yield [memory("a")]
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        list(outcomes(broken(), by_word, Execution(**way), stop=never))


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    found = outcomes(clusters(*"abcdef"), by_word, Execution(workers=3), stop=never)
    next(found)
    found.close()
    run("abcdef", by_word, workers=3)
    deadline = time.monotonic() + 2
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"workers": 0}, "workers=0; it takes a whole number from 1 on"),
        ({"workers": True}, "workers=True"),
        ({"workers": 1.5}, "workers=1.5"),
        ({"retries": -1}, "retries=-1; it takes a whole number from 0 on"),
        ({"timeout": 0}, "timeout=0; it takes seconds above 0"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"first_wait": -1}, "first_wait=-1; it takes a number from 0 on"),
        ({"first_wait": float("nan")}, "first_wait=nan"),
        ({"executor": map}, "it takes a concurrent.futures.Executor, or None"),
    ],
)
def test_an_execution_that_makes_no_sense_is_refused(options, told):
    with pytest.raises(InvalidInputError) as caught:
        Execution(**options)
    assert told in str(caught.value)


@pytest.mark.parametrize("size", [0, True, 2.0])
def test_a_batch_size_that_makes_no_sense_is_refused(size):
    with pytest.raises(InvalidInputError, match=f"batch_size={size}"):
        run(["a"], ByWord(size))
