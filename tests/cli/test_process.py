"""What only a process of its own shows: start-up, Ctrl-C, closed pipes, terminals."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_tree import commands

from lance_memory import MemoryStore

LMEM = str(Path(sys.executable).with_name("lmem"))
ENGINE = ("lance", "lancedb", "pyarrow", "polars", "numpy", "onnxruntime", "rich", "lance_memory")


def test_help_imports_no_engine():
    code = (
        "import sys; from lmem.main import main; main(['--help']);"
        f"print([m for m in {ENGINE!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "lmem", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    named = subprocess.run([LMEM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == named.stdout != ""


def test_help_is_quick():
    """Processor time, which does not depend on what else the machine does."""
    times = []
    while len(times) < 3 and min(times, default=2.0) > 1.0:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([LMEM, "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"lmem --help: {min(times):.2f} s")  # noqa: T201
    assert min(times) <= 1.0


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help(name, lmem):
    done = lmem(*name.split(), "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: lmem {name}")
    assert "--store" in done.out
    assert "--format" in done.out


def test_every_command_of_the_contract_exists():
    promised = (
        "init add import get list search update retire delete consolidate log diff tag branch "
        "checkout rollback revert stats"
    )
    assert set(promised.split()) <= set(commands())


SEVERAL = """
import sys
from lmem.main import main
sys.exit(max(main([*words.split(), "--store", sys.argv[1]]) for words in sys.argv[2:]))
"""


def test_off_a_terminal_there_is_no_colour(store):
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL, str(store), "list", "log", "diff 3"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "\x1b" not in done.stdout + done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    for said in ("the red kettle is broken", "retire", "wrong"):
        assert said in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(store):
    done = subprocess.run(
        f"{LMEM} list --format json --store {store} | head -n 1; exit ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_before_anything_is_written_says_so(store, version):
    before = version()
    with subprocess.Popen(
        [LMEM, "import", "-", "--store", str(store)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdin
        child.stdin.write(b'{"content": "a"}\n' * 20_000)  # returns once the child reads
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, b"")
    assert err == b"interrupted: nothing was written\n"
    assert version() == before


FORGETTING = """
import os, signal, sys
from lance_memory.govern.forget import run
def prove(*given):
    os.kill(os.getpid(), signal.SIGINT)
run.prove = prove
from lmem.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_while_forgetting_says_that_it_was_begun_and_the_same_again_goes_on(store, lmem):
    """Before the proof: no version is made after it, and the memory can be found no more."""
    one = MemoryStore.open(store).list()[0].id
    command = ["--store", str(store), "forget", one, "--yes", "--format", "quiet"]
    done = subprocess.run(
        [sys.executable, "-c", FORGETTING, *command],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    told = "interrupted: forgetting 1 memory was begun; `lmem forget --finish` goes on\n"
    assert (done.returncode, done.stderr) == (130, told)
    again = lmem(*command)
    assert (again.code, again.out) == (0, f"{one}\n"), again.err


LOADING = """
import builtins, os, signal, sys
before = builtins.__import__
def load(name, *given, **options):
    if name == sys.argv[1] and "lmem.main" in sys.modules:
        builtins.__import__ = before
        os.kill(os.getpid(), signal.SIGINT)
    return before(name, *given, **options)
builtins.__import__ = load
from lmem.main import main
sys.exit(main(["list", "--store", "none"]))
"""


@pytest.mark.parametrize("module", ["typing", "typer.main", "lmem.errors", "pydantic", "lance"])
def test_ctrl_c_while_a_module_loads_says_so(module, tmp_path):
    """In our own first lines, in the parser, in what it loads to parse, in the engine."""
    done = subprocess.run(
        [sys.executable, "-c", LOADING, module],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted: nothing was written\n")


def test_ctrl_c_at_any_moment_of_the_start_says_so(tmp_path):
    """Before our first line, which may be the case for the first 30 ms here, Python has its own."""
    for wait in (0.03, 0.06, 0.09, 0.12, 0.15):
        with subprocess.Popen(
            [LMEM, "list", "--store", str(tmp_path / "none")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as child:  # fmt: skip
            time.sleep(wait)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=30)
        if "lmem/main.py" in err or child.returncode == 130:
            assert (child.returncode, err) == (130, "interrupted: nothing was written\n")


@pytest.mark.slow
def test_ctrl_c_while_embedding_leaves_the_store_unchanged(store, version, tmp_path):
    """Also shows that a terminal gets a progress bar."""
    before = version()
    file = tmp_path / "many.jsonl"
    file.write_text(
        "".join(json.dumps({"content": f"memory number {i} " * 20}) + "\n" for i in range(5_000)),
        encoding="utf-8",
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [LMEM, "import", str(file), "--store", str(store)],
        stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    ) as child:  # fmt: skip
        os.close(theirs)
        seen = b""
        while b"embedding" not in seen:
            seen += os.read(ours, 4096)
        child.send_signal(signal.SIGINT)
        while child.poll() is None or b"interrupted" not in seen:
            try:
                seen += os.read(ours, 4096)
            except OSError:
                break
        child.wait(timeout=30)
    os.close(ours)
    assert child.returncode == 130, seen.decode()
    assert f"the store is unchanged, at version {before}".encode() in seen
    assert version() == before
    assert MemoryStore.open(store).count(states="any") == 6


def test_streams_that_are_closed_are_no_failure(tmp_path):
    """Each of them ended with an AttributeError, as a cron job or a daemon may start it."""
    store = str(tmp_path / "store")
    MemoryStore.open(store, upkeep=None)
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
        line = f'"{LMEM}" log --graph --upkeep --store "{store}" {closed}'
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), closed
        assert ("1  " in done.stdout) == (">&-" not in closed.replace("2>&-", ""))
