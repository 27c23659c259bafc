from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lance_memory import InvalidInputError, Memory
from lance_memory.curate.transform.command import CommandTransform
from lance_memory.curate.transform.execute import Execution, outcomes
from lance_memory.curate.transform.protocol import BatchTransform, Derived
from lance_memory.errors import TransformError

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")


def memory(content, **fields):
    times = {"created_at": NOON, "updated_at": NOON, "state_at": NOON}
    return Memory(id="m", revision=1, content=content, content_hash="", **times, **fields)


def clusters(*contents):
    return [[memory(content)] for content in contents]


def text(content):
    return Derived(content=content)


def told(answers):
    """Failures as texts, so that answers can be compared."""
    return [f"{type(a).__name__}: {a}" if isinstance(a, Exception) else a for a in answers]


START = """
import json, os, signal, sys, time, subprocess
with open({pids!r}, "a") as file:
    print(os.getpid(), file=file)
def say(**answer):
    print(json.dumps(answer), flush=True)
def asked():
    for line in sys.stdin:
        found = json.loads(line)
        yield found["id"], found["memories"][-1]["content"]
"""
SHOUT = """
for number, content in asked():
    say(id=number, content=content.upper())
"""


class Programs:
    """Python programs on disk, the commands that run them, and the processes that came of it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._pids = folder / "pids"
        self._open: list[CommandTransform] = []

    def __call__(self, body, **options):
        file = self._folder / f"program{len(self._open)}.py"
        file.write_text(START.format(pids=str(self._pids)) + body)
        transform = CommandTransform([sys.executable, "-S", str(file)], **options)
        self._open.append(transform)
        return transform

    def started(self):
        return [int(pid) for pid in self._pids.read_text().split()] if self._pids.exists() else []

    def alive(self):
        """Those still there, after a moment for what was killed to go."""
        return [pid for pid in self.started() if not gone(pid)]

    def close(self):
        while self._open:
            self._open.pop().close()


def gone(pid, within=2.0):
    """Whether the process is no more, or will be in a moment."""
    deadline = time.monotonic() + within
    while lives(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return not state.stdout.startswith("Z") and bool(state.stdout.strip())


@pytest.fixture
def programs(tmp_path):
    """Makes command transforms of Python programs; no process of them outlives the test."""
    made = Programs(tmp_path)
    yield made
    made.close()
    assert made.alive() == []


def test_a_program_answers_many_clusters_and_is_started_once(programs):
    shout = programs(SHOUT)
    assert isinstance(shout, BatchTransform)
    assert shout.many(clusters("a", "b", "c")) == [*map(text, "ABC")]
    assert shout([memory("tea")]) == text("TEA")
    assert len(programs.started()) == 1


def test_it_is_told_all_that_a_transform_may_need(programs):
    echo = programs(
        "for line in sys.stdin:\n"
        "    found = json.loads(line)\n"
        "    say(id=found['id'], content=json.dumps(found['memories']))\n"
    )
    first = memory("Olá,\n“tea”\u2028", kind="profile", tags=("a", "b"), metadata={"x": {"y": [1]}})
    second = memory("b", event_at=NOON, key="k", user="ana", actor="ana", role="user", quality=0.5)
    answer = json.loads(echo([first, second]).content)
    plain = {
        "id": "m",
        "content": "Olá,\n“tea”\u2028",
        "kind": "profile",
        "actor": "",
        "role": "",
        "event_at": None,
        "created_at": "2025-01-01T12:00:00+00:00",
        "tags": ["a", "b"],
        "metadata": {"x": {"y": [1]}},
        "importance": 0.5,
        "confidence": 1.0,
        "quality": None,
        "valid_from": None,
        "key": None,
        "tenant": "",
        "user": "",
        "agent": "",
        "session": "",
        "run": "",
    }
    other = {"content": "b", "kind": "episodic", "tags": [], "metadata": {}, "key": "k"}
    other |= {"event_at": "2025-01-01T12:00:00+00:00", "quality": 0.5}
    other |= {"user": "ana", "actor": "ana", "role": "user"}
    assert answer == [plain, {**plain, **other}]


def test_an_answer_can_be_a_memory_nothing_or_an_error(programs):
    answers = [
        {"content": "a"},
        {"content": "b", "kind": "profile", "tags": ["t"], "metadata": {"n": 1}, "importance": 0.9},
        {"content": "c", "confidence": 0.4, "kind": None, "tags": None, "memories": "ignored"},
        {"content": None},
        {"error": "too long"},
        {"content": "d", "tags": "t"},
        {"text": "e"},
        {"content": None, "error": None},
    ]
    program = programs(
        f"answers = json.loads({json.dumps(json.dumps(answers))})\n"
        "for answer, (number, _) in zip(answers, asked()):\n    say(id=number, **answer)\n"
    )
    assert told(program.many(clusters(*"abcdefgh"))) == [
        Derived(content="a"),
        Derived(content="b", kind="profile", tags=["t"], metadata={"n": 1}, importance=0.9),
        Derived(content="c", confidence=0.4),
        None,
        "TransformError: the program says: too long",
        "InvalidInputError: tags is 't'; it takes a list of texts",
        "InvalidInputError: the program answered without content; null leaves it alone",
        None,
    ]


def test_answers_may_come_in_any_order_within_a_batch(programs):
    backwards = programs(
        "from itertools import islice\n"
        "while batch := list(islice(asked(), 3)):\n"
        "    for number, content in reversed(batch):\n        say(id=number, content=content)\n"
    )
    assert backwards.many(clusters(*"abc")) == [*map(text, "abc")]
    assert backwards.many(clusters(*"def")) == [*map(text, "def")]


@pytest.mark.skipif(not shutil.which("jq"), reason="needs jq")
def test_jq_is_a_transform():
    with CommandTransform("jq --unbuffered -c '{id, content: .memories[-1].content}'") as jq:
        assert jq.many(clusters("a b", "“ç”")) == [*map(text, ["a b", "“ç”"])]


@pytest.mark.skipif(not shutil.which("sed"), reason="needs sed")
def test_sed_is_a_transform():
    script = r's/^{"id": \([0-9]*\),.*/{"id": \1, "content": "said"}/'
    with CommandTransform(["sed", "-u", script]) as sed:
        assert sed.many(clusters("a", "b")) == [*map(text, ["said", "said"])]


def test_a_command_is_parted_as_a_shell_does_but_no_shell_runs(tmp_path):
    code = "import json,sys\nfor line in sys.stdin:\n    print(json.dumps({'id': json.loads(line)['id'], 'content': sys.argv[1]}), flush=True)"
    file = tmp_path / "with space.py"
    file.write_text(code)
    with CommandTransform(f"'{sys.executable}' '{file}' '$HOME; echo *'") as program:
        assert program([memory("a")]) == text("$HOME; echo *")


def test_variables_are_set_beside_those_there_are(programs, monkeypatch):
    monkeypatch.setenv("LMEM_THERE", "there")
    body = "for n, _ in asked():\n    say(id=n, content=os.environ['LMEM_THERE'] + os.environ['LMEM_MORE'])\n"
    assert programs(body, env={"LMEM_MORE": "+more"})([memory("a")]) == text("there+more")


def test_long_lines_and_a_talkative_stderr_block_nothing(programs):
    talk = programs(
        "for number, content in asked():\n"
        "    sys.stderr.write('x' * 300_000 + '\\n')\n"
        "    say(id=number, content=content + 'z')\n"
    )
    long = "y" * 400_000
    assert talk.many(clusters(*[long] * 5)) == [text(long + "z")] * 5


DIES = "for number, content in asked():\n    if content == 'die':\n        {how}\n    say(id=number, content=content)\n"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("sys.exit(3)", "the program ended with status 3"),
        ("sys.exit('no model\\nhere')", "the program ended with status 1: no model\nhere"),
        ("os.kill(os.getpid(), 9)", "the program ended with status -9"),
        (
            "print('Loading...', flush=True)",
            "the program printed 'Loading...'; it answers in lines of JSON",
        ),
        ("print('5', flush=True)", "the program printed '5'; it answers in lines of JSON objects"),
        ("print('[' * 100000, flush=True)", "the program printed '[[[["),
        (
            "sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()",
            "the program printed '\ufffd'",
        ),
        (
            "print('{\"id\": 1, \"cont', end='', flush=True); sys.exit(4)",
            "ended with status 4 in the middle of a line",
        ),
        ("number = 99", "the program answered id 99, which it was not asked"),
        ("number = True", "the program answered id True"),
        ("number = 1", "the program answered id 1, which it was not asked or has answered before"),
        ("number = None", "the program answered id None"),
        ("os.close(1); time.sleep(30)", "the program closed its output"),
        ("print('x' * 20_000_000)", "the program printed a line longer than 16,777,216 bytes"),
    ],
)
def test_a_program_that_fails_loses_what_it_has_not_answered_and_starts_again(
    programs, how, reason
):
    program = programs(DIES.format(how=how))
    first, *others = told(program.many(clusters("a", "die", "b")))
    assert first == text("a")
    assert others[0].startswith("TransformError: the program ")
    assert reason in others[0]
    assert others == [others[0]] * 2
    assert program.many(clusters("c", "d")) == [text("c"), text("d")]
    failed, working = programs.started()
    assert gone(failed)
    assert lives(working)


@pytest.mark.parametrize(
    "hangs",
    [
        "time.sleep(30)",  # never reads: what is written fills the pipe
        "for number, content in asked():\n    time.sleep(30)",
        "for number, content in asked():\n    sys.stdout.write('[]\\n')",  # does not flush
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(30)",
        "child = subprocess.Popen(['sleep', '30'])\nopen(os.environ['CHILD'], 'w').write(str(child.pid))\nchild.wait()",
    ],
)
def test_a_silent_program_is_killed_with_all_it_started(programs, tmp_path, hangs):
    child = tmp_path / "child"
    program = programs(hangs, timeout=0.4, env={"CHILD": str(child), "PYTHONUNBUFFERED": ""})
    began = time.monotonic()
    answers = told(program.many(clusters("x" * 300_000, "b")))
    silent = "the program gave no answer within 0.4 s; it has to flush each line"
    assert answers == [f"TransformError: {silent}"] * 2
    assert time.monotonic() - began < 5
    assert programs.alive() == []
    if child.exists():
        assert gone(int(child.read_text()))


def test_the_timeout_counts_from_the_last_answer(programs):
    slow = programs(
        "for n, c in asked():\n    time.sleep(0.4)\n    say(id=n, content=c)\n", timeout=1.0
    )
    assert slow.many(clusters(*"abc")) == [*map(text, "abc")]


def test_the_answer_to_one_cluster_is_raised_where_it_is_an_error(programs):
    program = programs("for number, _ in asked():\n    say(id=number, error='too long')\n")
    with pytest.raises(TransformError, match=r"^the program says: too long$"):
        program([memory("a")])


def test_a_program_that_keeps_failing_is_not_started_for_ever(programs):
    program = programs("sys.exit(1)")
    for _ in range(5):
        (answer,) = program.many(clusters("a"))
        assert str(answer) == "the program ended with status 1"
    with pytest.raises(InvalidInputError, match="failed 5 times in a row and is not started again"):
        program.many(clusters("a"))
    assert len(programs.started()) == 5


def test_failures_that_are_not_in_a_row_do_not_add_up(programs):
    program = programs(DIES.format(how="sys.exit(1)"))
    for _ in range(7):
        assert isinstance(program.many(clusters("die"))[0], TransformError)
        assert program.many(clusters("a")) == [text("a")]


def test_threads_get_a_process_each_and_their_own_answers(programs):
    slow = programs("for n, c in asked():\n    time.sleep(0.1)\n    say(id=n, content=c)\n")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda c: slow([memory(c)]).content, "abcdef"))
    assert found == [*"abcdef"]
    assert 2 <= len(programs.started()) <= 3


def test_it_runs_within_a_pass(programs):
    program = programs(DIES.format(how="sys.exit('gone')"), batch_size=2)
    execution = Execution(workers=2, retries=1, first_wait=0.0)
    found = list(
        outcomes(clusters("a", "b", "die", "c", "d"), program, execution, stop=lambda: False)
    )
    assert [(o.derived and o.derived.content, o.reason) for o in found] == [
        ("a", ""),
        ("b", ""),
        (None, "the program ended with status 1: gone (2 tries)"),
        (None, "the program ended with status 1: gone (2 tries)"),
        ("d", ""),
    ]


def test_close_lets_a_program_end_by_itself(programs, tmp_path):
    body = f"{SHOUT}\nopen({str(tmp_path / 'bye')!r}, 'w').write('bye')\n"
    with programs(body) as shout:
        shout([memory("a")])
    assert (tmp_path / "bye").read_text() == "bye"
    with pytest.raises(InvalidInputError, match="is closed; make another one"):
        shout([memory("a")])
    shout.close()


@pytest.mark.slow
def test_close_kills_a_program_that_does_not_end_and_fails_the_call_under_way(programs):
    program = programs("for number, content in asked():\n    time.sleep(30)")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(program.many, clusters("a"))
        while not programs.started():
            time.sleep(0.01)
        program.close()
        assert told(call.result(5)) == ["TransformError: the program ended with status -9"]
    assert programs.alive() == []


def test_one_that_nobody_holds_any_more_leaves_no_process(tmp_path):
    made = Programs(tmp_path)
    shout = made(SHOUT)
    shout([memory("a")])
    made._open.clear()
    del shout
    gc.collect()
    assert made.alive() == []


BESIDE = """
import sys, time
from datetime import UTC, datetime
from lance_memory import Memory
from lance_memory.curate.transform.command import CommandTransform
now = datetime.now(UTC)
memory = Memory(id="m", revision=1, content="a", content_hash="", created_at=now, updated_at=now,
                state_at=now)
transform = CommandTransform([sys.executable, "-S", sys.argv[1]])
print(transform([memory]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("signalled", [None, signal.SIGINT])
def test_neither_the_end_of_the_interpreter_nor_ctrl_c_leaves_a_process(tmp_path, signalled):
    made = Programs(tmp_path)
    body = SHOUT if signalled is None else "signal.signal(2, signal.SIG_IGN)\ntime.sleep(60)\n"
    made(f"{body}\ntime.sleep(60)\n")
    command = [sys.executable, "-c", BESIDE, str(tmp_path / "program0.py")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ours:
        try:
            if signalled:
                while not made.started() and ours.poll() is None:
                    time.sleep(0.01)
                ours.send_signal(signalled)
            out, _ = ours.communicate(timeout=20)
        finally:
            ours.kill()
    assert ours.returncode == (-signalled if signalled else 0)
    assert ("content='A'" in out) == (signalled is None)
    assert len(made.started()) == 1
    assert made.alive() == []


def test_no_thread_or_pipe_is_left_behind(programs):
    before = threading.active_count()
    shout = programs(SHOUT)
    shout([memory("a")])
    assert threading.active_count() == before + 3
    shout.close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("command", "told_"),
    [
        ("", "the command is ''; it takes a program and arguments"),
        ([], "the command is []"),
        ("  ", "the command is '  '"),
        ("no-such-program -x", "there is no program 'no-such-program' that can be run"),
        ("./no/such", "there is no program './no/such'"),
        ("'open", 'the command "\'open" cannot be parted: No closing quotation'),
    ],
)
def test_a_command_that_cannot_be_run_is_named_at_once(command, told_):
    with pytest.raises(InvalidInputError) as caught:
        CommandTransform(command)
    assert told_ in str(caught.value)


def test_a_file_that_may_not_be_executed_is_no_program(tmp_path):
    file = tmp_path / "plain.py"
    file.write_text("print()")
    with pytest.raises(InvalidInputError, match="that can be run; give a path to an executable"):
        CommandTransform([str(file)])


def test_a_file_that_the_system_cannot_start_fails_with_its_reason(tmp_path):
    file = tmp_path / "odd"
    file.write_bytes(b"\x00\x01")
    file.chmod(0o755)
    odd = CommandTransform([str(file)])
    for _ in range(5):
        with pytest.raises(TransformError, match=r"odd` cannot be started: \[Errno 8\]"):
            odd([memory("a")])
    with pytest.raises(InvalidInputError, match="not started again"):
        odd([memory("a")])


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"batch_size": True}, {"timeout": 0}, {"timeout": float("nan")}]
)
def test_numbers_that_make_no_sense_are_refused(options):
    ((name, value),) = options.items()
    with pytest.raises(InvalidInputError, match=f"{name}={value}"):
        CommandTransform("true", **options)
