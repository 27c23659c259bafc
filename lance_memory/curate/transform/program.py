"""A program that runs beside us: lines in, lines out, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import IO, Any, cast

from lance_memory.errors import TransformError

__all__ = ["Program"]

_GRACE = 2.0  # seconds for a program to end by itself once its input is closed
_MOMENT = 0.5  # seconds for what follows at once: a status behind a closed output, a last line
_LONGEST_LINE = 1 << 24  # bytes
_LAST_LINES = 5
_LAST_WIDTH = 300


class Program:
    """One process and its group, with a thread for each of its three pipes.

    So neither long lines nor a talkative stderr can block it or us. One caller at a time writes
    and reads; `end` may be called from any thread, and more than once.
    """

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(  # noqa: S603 (no shell; it is the caller's own command)
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True
        )
        self._input: SimpleQueue[bytes | None] = SimpleQueue()
        self._output: SimpleQueue[bytes] = SimpleQueue()
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._ending = threading.Lock()
        self._ended = False
        try:
            self._writer = _started(_write, self._process.stdin, self._input)
            self._reader = _started(_read, self._process.stdout, self._output)
            self._listener = _started(_listen, self._process.stderr, self._last)
        except BaseException:  # Ctrl-C, or no more threads: nobody would know of the process
            _kill(self._process.pid)
            raise

    def send(self, lines: bytes) -> None:
        """Hands the lines to the program. Does not wait until it reads them."""
        self._input.put(lines)

    def line(self, timeout: float | None) -> bytes:
        """The next line of its output.

        Raises:
            TransformError: no line within `timeout` seconds, or none to come.
        """
        try:
            line = self._output.get(timeout=timeout)
        except Empty:
            raise TransformError(
                f"the program gave no answer within {timeout:g} s; it has to flush each line"
            ) from None
        if line.endswith(b"\n"):
            return line
        if len(line) >= _LONGEST_LINE:
            raise TransformError(f"the program printed a line longer than {_LONGEST_LINE:,} bytes")
        raise TransformError(self._end_of(line))

    def end(self, *, grace: float = _GRACE) -> None:
        """Closes its input, waits up to `grace` seconds for it, and kills what is left of it."""
        with self._ending:
            if self._ended:
                return
            self._ended = True
            self._input.put(None)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
            _kill(self._process.pid)
            self._process.wait()
            self._output.put(b"")  # for one who waits, should a stray child hold the pipe open
            for thread in (self._writer, self._reader, self._listener):
                thread.join(_MOMENT)

    def _end_of(self, line: bytes) -> str:
        """How the program ended, behind an output that ends in `line`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT)
        self._listener.join(_MOMENT)
        status = self._process.poll()
        how = "closed its output" if status is None else f"ended with status {status}"
        where = " in the middle of a line" if line else ""
        said = b"".join(self._last).decode(errors="replace").strip()
        return f"the program {how}{where}{said and ': '}{said}"


def _started(serve: Callable[[IO[bytes], Any], None], pipe: object, lines: Any) -> threading.Thread:
    arguments = (cast("IO[bytes]", pipe), lines)
    thread = threading.Thread(target=serve, args=arguments, name="lance-memory-pipe", daemon=True)
    thread.start()
    return thread


def _write(pipe: IO[bytes], lines: SimpleQueue[bytes | None]) -> None:
    with contextlib.suppress(OSError), pipe:  # it may end before it has read all
        while (text := lines.get()) is not None:
            pipe.write(text)
            pipe.flush()


def _read(pipe: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    with pipe:
        while line := pipe.readline(_LONGEST_LINE):
            lines.put(line)
    lines.put(b"")


def _listen(pipe: IO[bytes], last: deque[bytes]) -> None:
    with pipe:
        while piece := pipe.readline(_LAST_WIDTH):
            last.append(piece)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in it
        os.killpg(group, signal.SIGKILL)
