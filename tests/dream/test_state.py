"""The status that passes leave, and the lock that keeps them apart."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lance_memory import (
    ConsolidateOptions,
    ConsolidationPlan,
    DreamOutcome,
    DreamResult,
    StorageError,
)
from lance_memory.dream.lock import held, is_held
from lance_memory.dream.results import Running
from lance_memory.dream.state import Course, Passes
from lance_memory.dream.stretch import Stretch

AT = datetime(2025, 3, 5, 12, 0, 0, 5, tzinfo=UTC)
LAST = DreamResult(
    outcome=DreamOutcome.CONSOLIDATED, at=AT, version=7, trigger="dream: idle 10m", clusters=2,
    skipped=1, rows_saved=5, cut="9 s were over", seconds=9.5,
)  # fmt: skip
TOP, LOW = (AT, "b"), (AT - timedelta(days=1), "a")
PASSES = Passes(
    running=Running(pid=7, host="here", since=AT, trigger="dream: once", about="main"),
    courses={
        "main": Course(last=LAST, since=AT, seen=6, top=TOP, below=LOW, down=True),
        'main user="ann"': Course(last=LAST),
        "side": Course(),
    },
)


def test_what_was_written_is_read(tmp_path):
    PASSES.write(tmp_path / "dream.json")
    assert Passes.read(tmp_path / "dream.json") == PASSES
    assert [p.name for p in tmp_path.iterdir()] == ["dream.json"]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"\xff", b"{", b"[]", b"{}", b'{"running": 3, "passes": {}}', b'"x"',
     b'{"running": null, "passes": {"main": {"last": {"outcome": "odd"}}}}',
     b'{"running": {"pid": 1, "since": "never"}, "passes": {}}'],
)  # fmt: skip
def test_a_file_that_is_missing_torn_or_odd_says_nothing(tmp_path, content):
    path = tmp_path / "dream.json"
    if content is not None:
        path.write_bytes(content)
    assert Passes.read(path) == Passes()


def test_every_beginning_of_the_file_is_survived(tmp_path):
    path = tmp_path / "dream.json"
    PASSES.write(path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        assert Passes.read(path) == Passes()


def test_the_status_of_the_longest_ago_goes_first(tmp_path):
    passes = Passes()
    for number in range(300):
        passes = passes.having(f"user {number}", Course(seen=number))
    passes = passes.having("user 50", Course(seen=1_000))
    assert len(passes.courses) == 256
    assert list(passes.courses)[:2] == ["user 44", "user 45"]
    assert list(passes.courses)[-1] == "user 50"


def test_a_failed_pass_leaves_what_was_new_as_new():
    before = Course(last=LAST, since=AT, seen=6, top=TOP, below=LOW, down=True)
    failed = DreamResult(outcome=DreamOutcome.FAILED, at=AT, reason="no")
    assert before.then(failed) == Course(
        last=failed, since=AT, seen=6, top=TOP, below=LOW, down=True
    )


PLAN = ConsolidationPlan(
    version=9, at=AT, op_id="o", options=ConsolidateOptions(), clusters=(), selected=4
)


def passed(course, *, top, rest, begun=None):
    done = DreamResult(outcome=DreamOutcome.NOTHING, at=AT, plan=PLAN)
    return course.then(done, begun=begun, stretch=Stretch(top=top, rest=rest))


def day(number, name="m"):
    return AT + timedelta(days=number), name


def test_passes_go_down_until_they_reach_what_was_looked_at_before():
    first = passed(Course(), top=day(9), rest=day(7))
    assert (first.below, first.top, first.seen, first.unfinished) == (day(7), day(9), 9, True)
    assert first.begin(new=False) == first.begin(new=True) == day(7)
    second = passed(first, begun=day(7), top=day(6), rest=day(5))
    assert (second.below, second.top, second.down) == (day(5), day(9), True)
    assert (second.begin(new=False), second.begin(new=True)) == (day(5), None)
    newer = passed(second, top=day(11), rest=day(8))
    assert (newer.below, newer.top, newer.down) == (day(5), day(11), False)
    end = passed(newer, begun=day(5), top=day(4), rest=None)
    assert (end.below, end.top, end.unfinished, end.begin(new=False)) == (
        None,
        day(11),
        False,
        None,
    )
    later = passed(end, top=day(12), rest=day(11, "n"))
    assert later.below is None
    gap = passed(end, top=day(13), rest=day(11, "l"))
    assert gap.below == day(11, "l")


def test_a_stretch_is_taken_in_the_order_of_learning():
    rows = [(1, "a"), (3, "c"), (2, "b"), (3, "b"), (3, "a")]
    table = pa.table(
        {"created_at": [day(number)[0] for number, _ in rows], "id": [name for _, name in rows]}
    )

    def taken(begun=None, most=None):
        found = Stretch.of(table, begun=begun, max_rows=most)
        return found.top, found.rest

    assert taken() == (day(3, "a"), None)
    assert taken(most=5) == (day(3, "a"), None)
    assert taken(most=2) == (day(3, "a"), day(3, "b"))
    assert taken(begun=day(3, "b"), most=2) == (day(3, "c"), day(2, "b"))
    assert taken(begun=day(3, ""), most=4) == (day(3, "a"), day(2, "b"))
    assert taken(begun=day(1, "a"), most=2) == (None, None)


def test_what_cannot_be_written_is_a_storage_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StorageError, match=r"dream\.json cannot be written"):
        PASSES.write(file / "dream.json")
    with (
        pytest.raises(StorageError, match=r"dream\.lock cannot be locked"),
        held(file / "dream.lock"),
    ):
        pass


# -- the lock -------------------------------------------------------------------------------


def test_one_holds_the_lock_at_a_time(tmp_path):
    path = tmp_path / "dream.lock"
    assert is_held(path) is False
    assert not path.exists()
    with held(path) as first, held(path) as second:
        assert (first, second) == (True, False)
        assert is_held(path) is True
    assert is_held(path) is False
    with held(path) as again:
        assert again


def test_the_lock_ends_with_the_process_that_holds_it(tmp_path):
    path = tmp_path / "dream.lock"
    code = (
        "import sys, pathlib; from lance_memory.dream.lock import held\n"
        "with held(pathlib.Path(sys.argv[1])): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"held\n"
        assert is_held(path) is True
        child.kill()
    assert is_held(path) is False


def test_the_file_is_json_that_a_person_can_read(tmp_path):
    PASSES.write(tmp_path / "dream.json")
    told = json.loads((tmp_path / "dream.json").read_text(encoding="utf-8"))
    assert told["running"]["since"] == "2025-03-05T12:00:00.000005+00:00"
    assert told["passes"]["main"]["last"]["outcome"] == "consolidated"
