"""What a failure means on the command line: one line, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from lmem.output import complain

__all__ = ["INTERRUPTED", "Unconfirmed", "report"]

FAILED, USAGE, NOT_FOUND, CONFLICT, REJECTED, INTERRUPTED = 1, 2, 3, 4, 5, 130


class Unconfirmed(typer.TyperException):
    """A destructive verb was not confirmed; nothing was written."""

    exit_code = USAGE


def report(error: Exception) -> int:
    """Say in one line what went wrong, and give the exit code that stands for it."""
    if isinstance(error, typer.Abort):
        complain("interrupted: nothing was written", label="")
        return INTERRUPTED
    if isinstance(error, typer.TyperException):
        complain(_usage(error))
        return error.exit_code
    code = _known(error)
    if code is None:
        _unexpected(error)
        return FAILED
    complain(str(error))
    return code


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = error.format_message().rstrip(".")
    where = f"; `{context.command_path} --help` says what it takes" if context else ""
    return message + where


def _known(error: Exception) -> int | None:
    if isinstance(error, OSError) and "lance_memory" not in sys.modules:
        return _of_file(error)
    import lance_memory as lm

    codes: tuple[tuple[type[Exception], int], ...] = (
        (lm.NotFoundError, NOT_FOUND),
        (lm.ConflictError, CONFLICT),
        (lm.RejectedError, REJECTED),
        (lm.InvalidInputError, USAGE),
        (lm.AmbiguousError, USAGE),
        (lm.ScopeError, USAGE),
        (lm.LanceMemoryError, FAILED),
    )
    for kind, code in codes:
        if isinstance(error, kind):
            return code
    return _of_file(error) if isinstance(error, OSError) else None


def _of_file(error: OSError) -> int:
    return NOT_FOUND if isinstance(error, FileNotFoundError) else FAILED


def _unexpected(error: Exception) -> None:
    if os.environ.get("LMEM_DEBUG"):
        traceback.print_exception(error)
    complain(
        f"unexpected {type(error).__name__}: {error}; this is a bug, please report it "
        "(with LMEM_DEBUG=1 set, the same command shows where it happened)"
    )
