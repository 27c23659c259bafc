"""A transform that is a program in any language: JSON lines in, JSON lines out."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from lance_memory.curate.transform.program import Program
from lance_memory.curate.transform.protocol import Derived, Transformed
from lance_memory.errors import InvalidInputError, TransformError
from lance_memory.record.arguments import seconds, whole
from lance_memory.record.memory import SCOPE_LEVELS, Memory

__all__ = ["CommandTransform"]

_FAILURES = 5  # failed runs in a row, after which the program is not started again
_SHOWN = 100
_TOLD = (
    *("id", "content", "kind", "actor", "role", "event_at", "created_at", "tags", "metadata"),
    *("importance", "confidence", "quality", "valid_from", "key", *SCOPE_LEVELS),
)
_OPTIONAL = ("kind", "tags", "metadata", "importance", "confidence")


class CommandTransform:
    """Runs a program that reads clusters as JSON lines and answers in JSON lines.

    The program is started without a shell, once, and goes on until its input ends. A cluster is
    one line, its members oldest first; times are ISO 8601, `event_at` is null where none was
    given:

        {"id": 7, "memories": [{"id": "...", "content": "...", "kind": "episodic", "actor": "",
         "role": "", "event_at": null, "created_at": "...", "tags": [], "metadata": {},
         "importance": 0.5, "confidence": 1.0, "quality": null, "valid_from": null, "key": null,
         "tenant": "", "user": "", "agent": "", "session": "", "run": ""}, ...]}

    The answer to it is one line as well, **flushed**, with the same id:

        {"id": 7, "content": "..."}     and, at will, kind, tags, metadata, importance, confidence
        {"id": 7, "content": null}      the cluster is left alone
        {"id": 7, "error": "..."}       that cluster failed

    Other members of an answer are ignored. Up to `batch_size` lines are written before the first
    answer is read; within these the answers may come in any order. A program that ends, prints
    anything else to its stdout, or is silent for longer than `timeout` is killed with all it
    started; what it has not answered fails, and it is started again for the next batch, unless
    it failed five times in a row. Its stderr is read, and its end quoted when the program ends.

    Calls from several threads get a process each. `close`, or leaving a `with` block, ends them
    all; so does the end of the interpreter. Text is UTF-8.

    Args:
        command: program and arguments, as one text (parted as a POSIX shell does) or as a list.
        batch_size: clusters written at a time.
        timeout: seconds to wait for the next answer; None: for ever. Better than the timeout of an
            `Execution`, which abandons the call and leaves the program running until `close`.
        env: variables to set beside those of this process.

    Raises:
        InvalidInputError: no such program, or no command at all.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        batch_size: int = 16,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.batch_size = whole("batch_size", batch_size, least=1)
        self._timeout = None if timeout is None else seconds("timeout", timeout)
        self._env = {**os.environ, **(env or {})}
        self._command = _parted(command, self._env.get("PATH"))
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._idle: list[Program] = []
        self._running: set[Program] = set()
        self._failures = 0
        self._finalizer = weakref.finalize(self, _end, self._running, grace=0.0)

    def __call__(self, cluster: Sequence[Memory], /) -> Transformed:
        """The answer to one cluster.

        Raises:
            TransformError: the program failed on it.
            InvalidInputError: the program keeps failing, or is closed.
        """
        (answer,) = self.many([cluster])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def many(self, clusters: Sequence[Sequence[Memory]], /) -> Sequence[Transformed | Exception]:
        """One answer for each cluster, in order; a TransformError where the program failed."""
        asked = dict(zip(self._numbers, clusters, strict=False))
        lines = b"".join(_request(number, cluster) for number, cluster in asked.items())
        answers: dict[int, Transformed | Exception] = {}
        fault: TransformError | None = None
        program = self._taken()
        try:
            program.send(lines)
            while len(answers) < len(asked):
                line = program.line(self._timeout)
                number, answer = _answer(line, asked.keys() - answers.keys())
                answers[number] = answer
        except TransformError as error:
            fault = error
        finally:
            self._give_back(program, sound=len(answers) == len(asked))
        return [answers.get(number, fault) for number in asked]

    def close(self) -> None:
        """Ends the program: it has two seconds to end by itself, then it is killed."""
        with self._lock:
            self._finalizer.detach()
        _end(self._running)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _taken(self) -> Program:
        """A process that nobody uses; started where there is none."""
        with self._lock:
            if not self._finalizer.alive:
                raise InvalidInputError(f"{self} is closed; make another one")
            if self._idle:
                return self._idle.pop()
            if self._failures >= _FAILURES:
                raise InvalidInputError(
                    f"{self} failed {self._failures} times in a row and is not started again"
                )
            try:
                program = Program(self._command, env=self._env)
            except OSError as error:
                self._failures += 1
                raise TransformError(f"{self} cannot be started: {error}") from error
            self._running.add(program)
            return program

    def _give_back(self, program: Program, *, sound: bool) -> None:
        with self._lock:
            self._failures = 0 if sound else self._failures + 1
            if sound:
                self._idle.append(program)
                return
            self._running.discard(program)
        program.end(grace=0.0)

    def __str__(self) -> str:
        return f"the program `{shlex.join(self._command)}`"


def _end(programs: Iterable[Program], **options: float) -> None:
    for program in list(programs):
        program.end(**options)


def _parted(command: str | Sequence[str], path: str | None) -> list[str]:
    """The command as a list whose first item is a file that can be run."""
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:
        raise InvalidInputError(f"the command {command!r} cannot be parted: {error}") from error
    if not words or not words[0]:
        raise InvalidInputError(f"the command is {command!r}; it takes a program and arguments")
    found = shutil.which(words[0], path=path)
    if found is None:
        raise InvalidInputError(
            f"there is no program {words[0]!r} that can be run; give a path to an executable "
            "file, or a name that is on PATH. No shell is involved"
        )
    return [found, *words[1:]]


def _request(number: int, cluster: Sequence[Memory]) -> bytes:
    memories = [{name: getattr(memory, name) for name in _TOLD} for memory in cluster]
    document = {"id": number, "memories": memories}
    return f"{json.dumps(document, ensure_ascii=False, default=_plain)}\n".encode()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else dict(value)


def _answer(line: bytes, open_ones: Collection[int]) -> tuple[int, Transformed | Exception]:
    """Which cluster a line answers, and how.

    Raises:
        TransformError: none that is open, so nothing that follows can be trusted.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        said = line[:_SHOWN].decode(errors="replace").strip()
        raise TransformError(f"the program printed {said!r}; it answers in lines of JSON objects")
    number = found.get("id")
    if type(number) is not int or number not in open_ones:
        raise TransformError(
            f"the program answered id {number!r}, which it was not asked or has answered before"
        )
    return number, _derived(found)


def _derived(found: Mapping[str, Any]) -> Transformed | Exception:
    if found.get("error") is not None:
        return TransformError(f"the program says: {found['error']}")
    if "content" not in found:
        return InvalidInputError("the program answered without content; null leaves it alone")
    if found["content"] is None:
        return None
    given = {name: found[name] for name in _OPTIONAL if found.get(name) is not None}
    try:
        return Derived(content=found["content"], **given)
    except InvalidInputError as error:
        return error
