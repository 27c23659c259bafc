"""What a failure means on the command line: one line, and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback

import typer

from lmem.output import complain

__all__ = ["INTERRUPTED", "Unconfirmed", "no_branch", "report"]

FAILED, USAGE, NOT_FOUND, CONFLICT, REJECTED, INTERRUPTED = 1, 2, 3, 4, 5, 130


class Unconfirmed(typer.TyperException):
    """A destructive verb was not confirmed; nothing was written."""

    exit_code = USAGE


_OPTION = re.compile(r"^(?:row 0: )?([a-z][a-z_]*)=")
_WORDS = (
    (r"or use list\(\)", "or use `lmem list`"),
    (r" or MemoryStore\.open\(path\)", ""),
    (r"or ask to overwrite it$", "or overwrite it with --overwrite"),
    (
        r"; give one, for example datetime\(\.\.\., tzinfo=UTC\) or (\S+?)(?=;|$)",
        r"; write one like \1, or take such times as UTC with --assume-utc",
    ),
    (r"(times without a zone; [^;]*)", r"\1, or take them as UTC with --assume-utc"),
    (
        r"no column ('.*?'); a memory has: (.*?) \(.*?\)",
        r"no column \1; put it under metadata (`lmem import --help` names the columns)",
    ),
    (r"import with on_conflict=\"skip\"", "import with --on-conflict skip"),
    (r"import with embed=True", "import with --embed"),
    (
        r'look at them with dry_run=True, and say who is right with prefer="ours" or "theirs"',
        "look at them with --dry-run, and say who is right with --prefer ours or theirs",
    ),
    (r"with export_store\b", "with `lmem export-store`"),
    (r"^row 0: ", ""),
    (r"^--format (.*; there are: plain, )", r"--as \1"),
    (r"(?s)^(the query failed: [^\n]*)\n.*", r"\1"),
    (r"^(the query failed: unsupported function 'user')$", r'\1; the column is "user", in quotes'),
    (r", offset=(-?\d+);", r", --offset \1;"),
    (
        r"^Invalid value for '([^']*)'[^:]*: (?:Value error, )?('.*?') is not one of (.*)$",
        r"\1 takes no \2; it takes: \3",
    ),
)
"""Words of the library, and of the parser, in those of the command line."""


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
    complain(_said(error))
    return code


def no_branch(name: str) -> Exception:
    """The failure to name a branch that is there."""
    from lance_memory import NotFoundError

    return NotFoundError(f"there is no branch {name!r}; `lmem branches` lists them")


def _said(error: Exception) -> str:
    own = "lance_memory" in type(error).__module__
    if isinstance(error, OSError) and error.strerror and not own:
        absent = error.errno == errno.ENOENT
        reason = "there is no such file or directory" if absent else error.strerror.lower()
        return f"{error.filename!r}: {reason}" if error.filename else reason
    return _worded(_OPTION.sub(_as_option, str(error)))


def _worded(text: str) -> str:
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def _as_option(found: re.Match[str]) -> str:
    """A keyword argument as its option."""
    return f"--{found[1].replace('_', '-')} "


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    message = _worded(error.format_message().rstrip("."))
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
        (lm.QuotaExceededError, REJECTED),
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
