"""Threads for calls that may never return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias

__all__ = ["DaemonThreads"]

_Call: TypeAlias = "tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]"


class DaemonThreads:
    """Runs calls on threads that do not keep the interpreter from exiting.

    A `ThreadPoolExecutor` joins its threads at exit, so one call that never returns would hold
    the whole program. A thread is made when none is idle, so a stuck one takes nobody's place;
    how many calls run at a time is the caller's business.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._made = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """The call's future. From one thread only."""
        future: Future[Any] = Future()
        self._calls.put((future, function, arguments))
        if not self._idle.acquire(blocking=False):
            self._made += 1
            name = f"lance-memory-transform-{self._made}"
            arguments = (self._calls, self._idle)
            threading.Thread(target=_serve, args=arguments, name=name, daemon=True).start()
        return future

    def end(self) -> None:
        """Each thread ends after the call that it runs now. Waits for none."""
        for _ in range(self._made):
            self._calls.put(None)


def _serve(calls: SimpleQueue[_Call | None], idle: threading.Semaphore) -> None:
    while (call := calls.get()) is not None:
        _run(*call)
        del call  # or a thread at rest would hold a cluster
        idle.release()


def _run(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function(*arguments)
    except BaseException as error:  # noqa: BLE001 (raised again by whoever reads the future)
        future.set_exception(error)
    else:
        future.set_result(result)
