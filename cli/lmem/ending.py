"""The end of the process: what was answered stands, whatever key is pressed after it."""

from __future__ import annotations

import signal

__all__ = ["answered", "own"]

_own = False


def own() -> None:
    """To be called where the process is the command's alone, and ends with it."""
    global _own  # noqa: PLW0603 (as is the handling of signals, of which it is part)
    _own = True


def answered() -> None:
    """From now on Ctrl-C is too late: it could only spoil the exit code.

    Upkeep that is still at work ends with its step. An interpreter that was interrupted while it
    waits for that would end under the engine's feet, which aborts the process.
    """
    if _own:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
