"""Build what is released, look into it, install it alone: `python tools/package.py DIRECTORY`.

Made with uv, which `make package` puts beside this interpreter: an sdist, the wheel of that sdist,
and the wheel of the tree, which has to be the same to the byte. Then the wheel is installed into
new environments outside of the tree, once with the lowest versions of what it asks for and once
with the newest, and `tools/smoke.py` is run in each. `--python 3.13` does that with another one.
Exits with 1 at the first thing that is not as it should be.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

PACKAGES = ("lance_memory", "lmem")
"""The top of what a wheel installs, beside its own *.dist-info."""

IN_WHEEL = (
    "lance_memory/py.typed",
    "lance_memory/embed/data/NOTICE",
    "lance_memory/embed/data/minilm-tokenizer.json",
    "lance_memory/ingest/extract/patterns/en.toml",
    "lmem/main.py",
    "licenses/LICENSE",
    "licenses/lance_memory/embed/data/NOTICE",
    "entry_points.txt",
)
"""How the names of files end without which what is installed is no lance-memory."""

IN_SDIST = ("README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "pyproject.toml")

SOURCE = ("lance_memory/", "cli/lmem/")

LARGEST = 3 * 1024 * 1024
"""Bytes of either file. They have 1.3 and 1.2 million; what is larger has taken something along."""

RESOLUTIONS = ("lowest-direct", "highest")


class NotSoError(Exception):
    """What was built is not what should be released."""


def main(words: Sequence[str]) -> int:
    """Build, look, install, try; the exit code."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("directory", type=Path, help="where the two files go")
    asked.add_argument("--python", default="3.11", help="to install for (default: the oldest)")
    given = asked.parse_args(words)
    out = given.directory.resolve()
    try:
        wheel, sdist = built(out)
        for file, wrong in ((wheel, of_wheel(wheel)), (sdist, of_sdist(sdist))):
            say(f"{file.name}: {file.stat().st_size / 1e6:.2f} MB, {len(names(file))} files")
            refuse(wrong)
        refuse(differing(wheel, sdist))
        for resolution in RESOLUTIONS:
            tried(wheel, resolution, given.python)
    except NotSoError as error:
        say(f"not to be released: {error}")
        return 1
    return 0


def built(out: Path) -> tuple[Path, Path]:
    """The wheel of the tree, and the sdist, new in `out`."""
    for old in (*out.glob("*.whl"), *out.glob("*.tar.gz")):
        old.unlink()
    uv("build", "--quiet", "--wheel", "--out-dir", out, ROOT)
    uv("build", "--quiet", "--sdist", "--out-dir", out, ROOT)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def of_wheel(wheel: Path) -> list[str]:
    """What is wrong with the contents of a wheel."""
    there = names(wheel)
    strange = [
        name for name in there if name.split("/")[0] not in PACKAGES and ".dist-info/" not in name
    ]
    return [
        *(f"{wheel.name} has {name}" for name in strange),
        *(f"{wheel.name} has no {end}" for end in IN_WHEEL if not ending(there, end)),
        *never(wheel),
    ]


def of_sdist(sdist: Path) -> list[str]:
    """What is wrong with the contents of an sdist."""
    there = [name.split("/", 1)[1] for name in names(sdist)]
    strange = [
        name
        for name in there
        if not name.startswith(SOURCE) and name not in (*IN_SDIST, ".gitignore")
    ]
    return [
        *(f"{sdist.name} has {name}" for name in strange),
        *(f"{sdist.name} has no {name}" for name in IN_SDIST if name not in there),
        *never(sdist),
    ]


def never(file: Path) -> list[str]:
    """What neither may have."""
    parts = {"__pycache__", "tests", "bench", "notebooks", "design", ".venv"}
    return [
        *(f"{file.name} has {name}" for name in names(file) if parts & set(name.split("/"))),
        *(f"{file.name} has {name}" for name in names(file) if name.endswith((".pyc", ".lance"))),
        *([f"{file.name} is too large"] if file.stat().st_size > LARGEST else ()),
    ]


def names(file: Path) -> list[str]:
    """The files in a wheel or an sdist."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return sorted(name for name in wheel.namelist() if not name.endswith("/"))
    with tarfile.open(file) as sdist:
        return sorted(member.name for member in sdist if member.isfile())


def ending(there: Iterable[str], end: str) -> bool:
    """Whether a name is, or ends in, this path."""
    return any(f"/{name}".endswith(f"/{end}") for name in there)


def differing(wheel: Path, sdist: Path) -> list[str]:
    """Whether the sdist makes another wheel."""
    with tempfile.TemporaryDirectory(prefix="lance-memory-") as place:
        uv("build", "--quiet", "--wheel", "--out-dir", place, sdist)
        again = Path(place) / wheel.name
        if again.is_file() and digest(again) == digest(wheel):
            say(f"the sdist makes the same wheel, sha256 {digest(wheel)}")
            return []
    return [f"{sdist.name} does not make {wheel.name}"]


def tried(wheel: Path, resolution: str, python: str) -> None:
    """Install the wheel alone, outside of the tree, and see whether it works."""
    with tempfile.TemporaryDirectory(prefix="lance-memory-") as place:
        begun = time.monotonic()
        environment = Path(place) / "venv"
        interpreter = environment / "bin" / "python"
        uv("venv", "--quiet", "--no-python-downloads", "--python", python, environment)
        target = ("--quiet", "--python", interpreter, "--resolution", resolution)
        uv("pip", "install", *target, wheel)
        installed = time.monotonic()
        say(f"{resolution}: {wheel.name} installed in {installed - begun:.0f} s")
        smoke = (interpreter, "-I", ROOT / "tools" / "smoke.py", wheel.name.split("-")[1])
        if subprocess.run(smoke, cwd=place, check=False).returncode:  # noqa: S603 (made here)
            raise NotSoError(f"with {resolution}, it does not work")
        say(f"{resolution}: it works, looked at in {time.monotonic() - installed:.0f} s")


def uv(*words: str | Path) -> None:
    """Run uv, in no environment of its own choice."""
    command = Path(sys.executable).with_name("uv")
    clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run([command, *words], env=clean, check=False)  # noqa: S603 (words of ours)
    if done.returncode:
        raise NotSoError(f"uv {words[0]} ended with {done.returncode}")


def digest(file: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def refuse(wrong: Sequence[str]) -> None:
    """Raises NotSoError if anything is wrong."""
    if wrong:
        raise NotSoError("; ".join(wrong))


def say(text: str) -> None:
    """A line of the report."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
