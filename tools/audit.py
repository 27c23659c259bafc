"""Check what is installed against what was looked at: `python tools/audit.py`.

No network is asked. For everything that the project needs, directly or not, for use, for
development or for its site: its version is the locked one (constraints-dev.txt), its licence is
one of those that are allowed here, and what the project asks for by name is explained in
design/001-dependencies.md. What is not installed is not looked at. `--write` locks the versions
that are installed, so the group `docs` has to be (`make docs`). `--advisories FILE` says instead
what pip-audit has found (`make audit`).
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "constraints-dev.txt"
EXPLAINED = ROOT / "design" / "001-dependencies.md"
HEAD = "# What is developed and tested with; tools/audit.py --write makes it, and checks it.\n"

ALLOWED = (
    r"mit|mit-0|mit-cmu|bsd|0bsd|apache|isc|iscl|psf|zlib|cc0|mpl|mozilla|python|cnri|bsl|unlicense"
)
"""How the names of licences begin that ask for no more than a notice, or (MPL) for changes to
their own files."""

TOOLS = {"codespell": "GPL-2.0-only"}
"""Run in development, not linked with and not shipped."""

READ = {"huey": "MIT"}
"""Whose metadata names no licence, and whose licence file was read."""


def main(words: list[str]) -> int:
    """Check, or lock; 1 where something is wrong."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if words[:1] == ["--advisories"]:
        return told_of(json.loads(Path(words[1]).read_text(encoding="utf-8")))
    installed = closure(asked(project, groups=("dependencies", "dev", "docs")))
    if words == ["--write"]:
        lines = [f"{name}=={version(found)}\n" for name, found in sorted(installed.items())]
        LOCK.write_text(HEAD + "".join(lines), encoding="utf-8")
    wrong = [*unlocked(installed), *licences(installed), *unexplained(asked(project))]
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    sys.stdout.write(f"{len(installed)} distributions looked at, {len(wrong)} objections\n")
    return 1 if wrong else 0


def told_of(found: Any) -> int:
    """Print what pip-audit has found, a line each; 1 where that is anything.

    A service that answers and knows none of them, as a mirror without advisories does, has audited
    nothing: 2.
    """
    audited = [one for one in found["dependencies"] if "skip_reason" not in one]
    skipped = [one["name"] for one in found["dependencies"] if "skip_reason" in one]
    if not audited:
        sys.stdout.write("the service knows nothing of what is locked: nothing was audited\n")
        return 2
    known = [
        f"{one['name']} {one['version']}: {flaw['id']}, "
        f"fixed in {', '.join(flaw['fix_versions']) or 'no version'}"
        for one in audited
        for flaw in one.get("vulns", ())
    ]
    sys.stdout.writelines(f"{line}\n" for line in known)
    if skipped:
        sys.stdout.write(f"not known to the service, and not audited: {', '.join(skipped)}\n")
    what = "vulnerability" if len(known) == 1 else "vulnerabilities"
    sys.stdout.write(f"{len(audited)} audited, {len(known)} known {what}\n")
    return 1 if known else 0


def asked(project: Any, groups: tuple[str, ...] = ()) -> list[Requirement]:
    """What pyproject.toml asks for by name; of some groups, or of all."""
    table = project["project"]
    named = {
        "dependencies": table["dependencies"],
        **table["optional-dependencies"],
        **project["dependency-groups"],
    }
    return [Requirement(text) for group in groups or named for text in named[group]]


def closure(wanted: Iterable[Requirement]) -> dict[str, Distribution]:
    """What is installed of the requirements, and of theirs, by canonical name."""
    found: dict[str, Distribution] = {}
    waiting, seen = list(wanted), set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        try:
            one = distribution(requirement.name)
        except PackageNotFoundError:  # for another system, or an extra nobody asked for
            continue
        found[canonicalize_name(requirement.name)] = one
        extras = ("", *requirement.extras)
        for text in one.requires or ():
            inner = Requirement(text)
            marker = inner.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(inner)
    return found


def version(found: Distribution) -> str:
    """Without the name of a build, such as +cpu."""
    return found.version.partition("+")[0]


def unlocked(installed: dict[str, Distribution]) -> Iterator[str]:
    """What is installed in another version than the locked one."""
    pairs = (line.split("==") for line in LOCK.read_text(encoding="utf-8").split() if "==" in line)
    locked = {canonicalize_name(name): number for name, number in pairs}
    for name, found in sorted(installed.items()):
        if locked.get(name) != version(found):
            yield (
                f"{name} {version(found)} is installed, and {locked.get(name, 'nothing')} is "
                f"locked: look at it, and lock it with tools/audit.py --write"
            )


def licences(installed: dict[str, Distribution]) -> Iterator[str]:
    """What has a licence that is not allowed here, or names none."""
    for name, found in sorted(installed.items()):
        told = licence(found) or READ.get(name, "")
        parts = [part for part in re.split(r"\s+(?:AND|OR|WITH)\s+|;\s*", told.strip("()")) if part]
        bad = [
            part
            for part in parts
            if not re.match(ALLOWED, part.removeprefix("3-Clause "), re.IGNORECASE)
        ]
        exceptions = {"LLVM-exception", TOOLS.get(name)}
        if not parts or set(bad) - exceptions:
            yield f"{name} has the licence {told or '(none named)'!r}, which is not allowed here"


def licence(found: Distribution) -> str:
    """As it is told in the distribution's metadata."""
    told = found.metadata
    classified = [
        name.rpartition(" :: ")[2]
        for name in told.get_all("Classifier", [])
        if name.startswith("License :: ") and not name.endswith("OSI Approved")
    ]
    text = told["License-Expression"] or "; ".join(classified) or told["License"] or ""
    return text.splitlines()[0] if text else ""


def unexplained(direct: Iterable[Requirement]) -> Iterator[str]:
    """What is asked for by name and not explained."""
    words = set(re.findall(r"[a-z0-9][a-z0-9._-]*[a-z0-9]", EXPLAINED.read_text("utf-8").lower()))
    known = {canonicalize_name(word) for word in words}
    for name in sorted({canonicalize_name(one.name) for one in direct}):
        if name not in known:
            yield f"{name} is asked for in pyproject.toml and not explained in {EXPLAINED.name}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
