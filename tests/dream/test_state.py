"""The status that passes leave, and the lock that keeps them apart."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from lance_memory import DreamOutcome, DreamResult, Running, StorageError
from lance_memory.dream.lock import held, is_held
from lance_memory.dream.state import Passes, State

AT = datetime(2025, 3, 5, 12, 0, 0, 5, tzinfo=UTC)
LAST = DreamResult(
    outcome=DreamOutcome.CONSOLIDATED, at=AT, version=7, trigger="dream: idle 10m", clusters=2,
    skipped=1, rows_saved=5, cut="9 s were over", seconds=9.5,
)  # fmt: skip
STATE = State(
    running=Running(pid=7, host="here", since=AT, trigger="dream: once", about="main"),
    passes={
        "main": Passes(last=LAST, since=AT, seen=6, unfinished=True),
        'main user="ann"': Passes(last=LAST),
        "side": Passes(),
    },
)


def test_what_was_written_is_read(tmp_path):
    STATE.write(tmp_path / "dream.json")
    assert State.read(tmp_path / "dream.json") == STATE
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
    assert State.read(path) == State()


def test_every_beginning_of_the_file_is_survived(tmp_path):
    path = tmp_path / "dream.json"
    STATE.write(path)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        assert State.read(path) == State()


def test_the_status_of_the_longest_ago_goes_first(tmp_path):
    state = State()
    for number in range(300):
        state = state.having(f"user {number}", Passes(seen=number))
    state = state.having("user 50", Passes(seen=1_000))
    assert len(state.passes) == 256
    assert list(state.passes)[:2] == ["user 44", "user 45"]
    assert list(state.passes)[-1] == "user 50"


def test_a_failed_pass_leaves_what_was_new_as_new():
    before = Passes(last=LAST, since=AT, seen=6, unfinished=True)
    failed = DreamResult(outcome=DreamOutcome.FAILED, at=AT, reason="no")
    assert before.then(failed, rows=9) == Passes(last=failed, since=AT, seen=6, unfinished=True)


def test_what_cannot_be_written_is_a_storage_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StorageError, match=r"dream\.json cannot be written"):
        STATE.write(file / "dream.json")
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
    STATE.write(tmp_path / "dream.json")
    told = json.loads((tmp_path / "dream.json").read_text(encoding="utf-8"))
    assert told["running"]["since"] == "2025-03-05T12:00:00.000005+00:00"
    assert told["passes"]["main"]["last"]["outcome"] == "consolidated"
