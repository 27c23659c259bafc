"""What the doctor finds, and what was done about it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lance_memory.html import Told
from lance_memory.wording import counted, worded

__all__ = ["Health", "HealthFinding", "Severity", "Treated", "VersionBytes"]


class Severity(StrEnum):
    """How bad it is. Notes are worth knowing, and no trouble."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFinding:
    """One thing that was found.

    Attributes:
        code: names the kind of it for good, as "orphans".
        severity: an error is wrong or lost data, a warning will become trouble.
        message: what was found.
        count: of how many rows, files, versions it is true.
        sample: the first of them.
        fixable: whether `doctor(fix=True)` does something about it.
        advice: what to do otherwise.
    """

    code: str
    severity: Severity
    message: str
    count: int = 1
    sample: tuple[str, ...] = ()
    fixable: bool = False
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionBytes:
    """What one version takes on the disk: in all, and in files that no other version has."""

    branch: str
    version: int
    bytes: int
    own_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Treated:
    """What was done about a finding, and how many rows, files or versions it was about."""

    code: str
    message: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Told):
    """How a store is.

    Attributes:
        uri: the store.
        version: the newest version of the branch that was looked at.
        at: when.
        checked: the names of the checks that were made, in order.
        findings: what they found, worst first; after a fix, what is left.
        fixed: what was done.
        versions: what each version takes, oldest first.
    """

    uri: str
    version: int
    at: datetime
    checked: tuple[str, ...]
    findings: tuple[HealthFinding, ...]
    fixed: tuple[Treated, ...] = ()
    versions: tuple[VersionBytes, ...] = ()

    def __str__(self) -> str:
        """What is wrong and what was done, a line for each."""
        fixed = [f"fixed {one.code}: {one.message}" for one in self.fixed]
        return "\n".join([self.summary, *fixed, *map(str, self.findings)])

    @property
    def summary(self) -> str:
        """How it is, in one line."""
        trouble = sum(one.severity is not Severity.NOTE for one in self.findings)
        told = worded("{n} [thing is|things are] wrong", trouble) if trouble else "nothing is wrong"
        return f"version {self.version}: {told} ({counted(len(self.checked), 'check')})"

    @property
    def sound(self) -> bool:
        """Whether there is nothing worse than a note."""
        return all(one.severity is Severity.NOTE for one in self.findings)

    @property
    def fixable(self) -> tuple[HealthFinding, ...]:
        """The findings that `doctor(fix=True)` does something about."""
        return tuple(one for one in self.findings if one.fixable)
