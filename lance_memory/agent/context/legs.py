"""Asking several sources: each timed, none that fails costs the others anything."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Final, Generic, TypeVar

from lance_memory.errors import LanceMemoryError

__all__ = ["Begun", "LateError", "Legs"]

_T = TypeVar("_T")

_THREADS: Final = 16
"""Questions that wait for an embedder at once; more than that are late at once."""


class LateError(LanceMemoryError, TimeoutError):
    """A leg had not answered when the time was up."""


class Begun(Generic[_T]):
    """A leg that is asked beside others until the moment `end`, if there is one.

    Calling it waits for the answer; raises LateError where there is none when the time is up.
    """

    def __init__(self, ask: Callable[[], _T], *, end: float | None) -> None:
        self._ask = ask
        self._end = end
        self._begun = None if end is None else _pool().submit(ask)

    @property
    def under_way(self) -> bool:
        """Whether it was begun and has not answered yet."""
        return self._begun is not None and not self._begun.done()

    def __call__(self) -> _T:
        if self._begun is None or self._end is None:
            return self._ask()
        wait([self._begun], timeout=max(0.0, self._end - time.monotonic()))
        if not self._begun.done():
            self._begun.cancel()  # what still waits for a thread need not be asked any more
            raise LateError("no answer in time")
        return self._begun.result()


class Legs:
    """The legs of one pack: how long each took, and what failed.

    Args:
        latency: seconds from now on after which what is asked beside the rest is late; None:
            never, and then one leg is asked after the other.
    """

    def __init__(self, latency: float | None) -> None:
        self._end = None if latency is None else time.monotonic() + latency
        self.seconds: dict[str, float] = {}
        self.failures: dict[str, str] = {}

    def asked(self, name: str, ask: Callable[[], _T]) -> _T | None:
        """What the leg gives; None where it fails, which is noted under its name."""
        begun = time.perf_counter()
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - one source never costs an agent its turn
            self.note(name, error)
            return None
        finally:
            self._took(name, time.perf_counter() - begun)

    def beside(self, ask: Callable[[], _T]) -> Begun[_T]:
        """A leg that may take long: begun now where there is a limit, else when it is called."""
        return Begun(ask, end=self._end)

    def note(self, name: str, error: Exception | str) -> None:
        """A leg that could not answer."""
        known = isinstance(error, str | LanceMemoryError)
        self.failures[name] = str(error) if known else f"{type(error).__name__}: {error}"

    def _took(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


@cache
def _pool() -> ThreadPoolExecutor:
    """One for the process: what is late stays on its thread until its embedder answers."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="lance-memory-context")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has the pool, not its threads
