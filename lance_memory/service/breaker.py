"""What keeps failing is left alone for a while; the only module that knows pybreaker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from lance_memory.errors import InvalidInputError

if TYPE_CHECKING:
    import pybreaker

__all__ = ["Breaker", "BreakerOpenError"]

_T = TypeVar("_T")

LONGEST_REST: Final = 86_400.0
"""Seconds; a day."""


class BreakerOpenError(Exception):
    """The breaker is open: nothing was called. Callers go on without, or ask somebody else."""


class Breaker:
    """Calls something that may fail, and stops calling it when it failed several times in a row.

    After `rest` seconds one call is let through; it closes the breaker, or opens it for as long
    again. Safe to share between threads, which call at the same time. Each process has its own.
    The time is real time.

    Args:
        name: what is called, for messages.
        counts: the exceptions that are failures of it. Others pass through and say nothing.
        failures: how many in a row open the breaker, at least 1.
        rest: seconds for which it stays open, at most a day.

    Raises:
        InvalidInputError: a number is out of bounds.
    """

    def __init__(
        self,
        name: str,
        *,
        counts: tuple[type[Exception], ...],
        failures: int = 3,
        rest: float = 30.0,
    ) -> None:
        if type(failures) is not int or failures < 1:
            raise InvalidInputError(f"failures={failures!r}; it takes a whole number from 1 on")
        if type(rest) not in (int, float) or not 0 < rest <= LONGEST_REST:
            raise InvalidInputError(f"rest={rest!r}; it takes seconds above 0, at most a day")
        self.name = name
        self._counts = counts
        self._failures = failures
        self._rest = timedelta(seconds=rest)
        self._memory: pybreaker.CircuitMemoryStorage | None = None
        self._circuit: pybreaker.CircuitBreaker | None = None
        self._making = threading.Lock()
        self._trial = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        return self._resting() or self._trial.locked()

    def call(self, work: Callable[[], _T]) -> _T:
        """What `work` gives; what it raises passes through.

        Raises:
            BreakerOpenError: it was not called.
        """
        if self._closed():
            return self._tried(work)
        if self._resting() or not self._trial.acquire(blocking=False):
            raise BreakerOpenError(f"{self.name} kept failing, and is left alone for a while")
        try:
            return self._tried(work)
        finally:
            self._trial.release()

    def _tried(self, work: Callable[[], _T]) -> _T:
        # pybreaker holds a lock while it calls: threads would wait for each other's requests. So
        # the work is done outside of it, and pybreaker is told how it ended.
        try:
            answer = work()
        except self._counts as error:
            self._tell(error)
            raise
        self._tell(None)
        return answer

    def _tell(self, error: Exception | None) -> None:
        if error is None and self._circuit is None:
            return  # nothing has failed yet
        import pybreaker

        def ended() -> None:
            if error is not None:
                raise error

        try:
            self._made().call(ended)
        except self._counts:
            return  # what it was told
        except pybreaker.CircuitBreakerError:
            return  # another thread's failure opened it meanwhile

    def _made(self) -> pybreaker.CircuitBreaker:
        """The circuit, made at the first failure: pybreaker loads the client of Redis, 0.1 s."""
        import pybreaker

        with self._making:
            if self._circuit is None:
                self._memory = pybreaker.CircuitMemoryStorage(pybreaker.STATE_CLOSED)
                self._circuit = pybreaker.CircuitBreaker(
                    fail_max=self._failures,
                    reset_timeout=self._rest.total_seconds(),
                    state_storage=self._memory,
                    name=self.name,
                    throw_new_error_on_trip=False,
                )
            return self._circuit

    def _closed(self) -> bool:
        return self._circuit is None or self._circuit.current_state == "closed"

    def _resting(self) -> bool:
        opened = self._memory.opened_at if self._memory else None
        return not self._closed() and opened is not None and datetime.now(UTC) < opened + self._rest
