"""Where a measurement comes from: command, data, code, versions, machine and moment.

It needs the standard library alone, so that every script can say it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "LANCE_MEMORY_BENCH_COMMAND"
"""A process that a script starts says the script's own command: it stands in this variable."""

MADE_UP = "made up from the seed"
PACKAGES = {"lance_memory": "lance-memory", "numpy": "numpy", "torch": "torch"}

_STARTED = datetime.now(UTC).replace(microsecond=0).isoformat()
_about = {"data": MADE_UP}


def about(*, data: str) -> None:
    """Say what all lines of this process are measured on from now on."""
    _about["data"] = data


def file_data(name: str, path: Path) -> str:
    """A data set as lines name it: its name, its file, and the start of the file's SHA-256."""
    return f"{name}, {path.name} (sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]})"


def for_children() -> dict[str, str]:
    """The environment for a process that measures for this one."""
    return {**os.environ, COMMAND: command()}


def command() -> str:
    """What was typed, without the folders of this machine."""
    given = os.environ.get(COMMAND)
    return given or " ".join(["python", *(_shown(word) for word in sys.argv)])


def _shown(word: str) -> str:
    path = Path(word)
    if not path.is_absolute():
        return word
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


@cache
def fixed() -> dict[str, Any]:
    """What does not change while a process runs."""
    return {
        "at": _STARTED,
        "commit": commit(),
        **{name: found for name in PACKAGES if (found := _version(name))},
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "load": round(os.getloadavg()[0], 2),
    }


def origin() -> dict[str, Any]:
    """All of it; `load` is the mean of the minute before the first line. Stands in every line."""
    return {**_about, "command": command(), **fixed()}


def _version(name: str) -> str | None:
    """Of what is imported, or is the package itself: what only lies there took no part."""
    if name not in sys.modules:
        return None
    try:
        return importlib.metadata.version(PACKAGES[name])
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit, with a plus where files that it holds were changed; None outside of git.

    What is recorded here does not count: a run of all scripts writes it as it goes.
    """
    recorded = (":(exclude)bench/results", ":(exclude)bench/RESULTS.md")
    try:
        head = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *recorded)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}+" if changed else head


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _cpu() -> str | None:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or None
    named = [line for line in info.read_text().splitlines() if line.startswith("model name")]
    return named[0].split(":", 1)[1].strip() if named else None


def _memory_gb() -> float | None:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return None
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
