"""Processes that need not import the library anew: they are forked from one that has.

That one has only imported: no engine has run in it, so what is forked from it is as good as a
fresh process, and is there in a few milliseconds in place of a second.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
from multiprocessing import connection, forkserver, reduction
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["lance_memory.agent"])  # which imports nearly all
LOCK = threading.Lock()
"""Who starts a process, or asks whether it has ended, also asks about all others."""


class End:
    """The end of a pipe that a process is given when it starts."""

    def __init__(self, number):
        self.number = number

    def __getstate__(self):
        return reduction.DupFd(self.number)

    def __setstate__(self, given):
        self.number = given.detach()


def run(script, arguments, ends, environment):
    """The script, as `python SCRIPT ARGUMENTS` runs it."""
    for number, end in enumerate(ends):
        os.dup2(end.number, number)
        os.close(end.number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r") for n in range(3))
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:  # as an interpreter ends, and a forked process by itself does not
        threading._shutdown()
        atexit._run_exitfuncs()


class Forked:
    """Like `subprocess.Popen([sys.executable, script, *arguments], text=True)` with three pipes."""

    def __init__(self, script, *arguments, env=None):
        words = [str(word) for word in arguments]
        theirs, ours = _pipes()
        self._process = CONTEXT.Process(
            target=run,
            args=(str(script), words, [End(end) for end in theirs], dict(env or os.environ)),
            daemon=True,
        )
        with LOCK:
            _ensure_one_to_fork()
            self._process.start()
        for end in theirs:
            os.close(end)
        self.pid = self._process.pid
        self.stdin, self.stdout, self.stderr = ours

    @property
    def returncode(self):
        """None while it runs; below zero the signal that ended it."""
        with LOCK:
            return self._process.exitcode

    def poll(self):
        return self.returncode

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=None):
        if not connection.wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired(str(self._process), timeout)
        return self.returncode

    def communicate(self, sent="", timeout=None):
        """What it says until its end, on stdout and on stderr."""
        with self.stdin:
            self.stdin.write(sent)
        said = {}

        def read(stream):
            with stream:
                said[stream] = stream.read()

        readers = [threading.Thread(target=read, args=(s,)) for s in (self.stdout, self.stderr)]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return said[self.stdout], said[self.stderr]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.wait()


def _pipes():
    """The three ends of the process, and those of whoever starts it."""
    (stdin, to_it), (from_it, stdout), (complaints, stderr) = (os.pipe() for _ in range(3))
    ours = os.fdopen(to_it, "w", 1), os.fdopen(from_it), os.fdopen(complaints)
    return (stdin, stdout, stderr), ours


def _ensure_one_to_fork():
    """Without the engine's warning at each fork, which is for where the engine has run."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore:lance is not fork-safe"
    forkserver.ensure_running()
    del os.environ["PYTHONWARNINGS"]
    if before is not None:
        os.environ["PYTHONWARNINGS"] = before
