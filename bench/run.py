"""All measurements, one after the other, and the page that shows them.

    .venv/bin/python bench/run.py                     # writes bench/results/*.jsonl and bench/RESULTS.md; some 75 minutes
    .venv/bin/python bench/run.py --quick             # small forms, two at once, into a new directory; below 3 minutes
    .venv/bin/python bench/run.py --only search peers

A script that fails leaves its old lines as they were; the others go on, and the end says so. What
needs something that is not there (LoCoMo's file, other stores, a GPU) is left out, and that is said.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.origin import COMMAND, ROOT

HERE = ROOT / "bench"
OTHERS = Path(sys.prefix) / "peers" / "bin" / "python"
"""The environment of the other stores, which need versions of their own."""

LOCOMO = "LANCE_MEMORY_LOCOMO"
BESIDE = ROOT.parent / "shared" / "data" / "locomo10.json"
PATIENCE = {True: 170.0, False: 3 * 3600.0}
"""Seconds for one script: quick, or whole."""

AT_ONCE = 2
"""Scripts of a quick run, whose figures mean little: it shows that they run, and what they say."""

ONE = ("--conversations", "1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is run: a list of arguments for each run; `needs` is "locomo", "others" or "gpu"."""

    name: str
    quick: tuple[str, ...] = ("--quick",)
    whole: tuple[tuple[str, ...], ...] = ((),)
    needs: str = ""


SCRIPTS = (
    Script(name="overhead"),
    Script(name="search"),
    Script(name="embedders"),
    Script(name="durability"),
    Script(name="working"),
    Script(name="upkeep", quick=("--rows", "150", "--inline")),
    Script(name="forget", quick=("--tenants", "2", "--rows", "100")),
    Script(name="curate", whole=((), ("--million",))),
    Script(name="growth", quick=("--rows", "1000", "2000", "--questions", "5")),
    Script(name="peers", quick=("--rows", "1000", "--questions", "5"), needs="others"),
    Script(name="ingest", quick=(*ONE, "--only", "counts", "queue"), needs="locomo"),
    Script(name="locomo", quick=(*ONE, "--every", "20"), needs="locomo"),
    Script(name="consolidation", quick=(*ONE, "--floors", "0.65", "--every", "20"), needs="locomo"),
    Script(
        name="agent_week",
        quick=(*ONE, "--sessions", "3", "--every", "7", "--by", "session", "--budget", "900"),
        needs="locomo",
    ),
    Script(name="soak", quick=("--seconds", "5")),
    Script(name="gpu", quick=("--rows", "20000", "--join-rows", "5000"), needs="gpu"),
)


def missing(script: Script) -> str:
    """Why it is left out; "" where nothing is missing."""
    if script.needs == "locomo" and not Path(os.environ.get(LOCOMO, BESIDE)).exists():
        return f"LoCoMo is not there: set {LOCOMO} to the path of its locomo10.json"
    if script.needs == "gpu" and shutil.which("nvidia-smi") is None:
        return "no CUDA device is here"
    return ""


def python_of(script: Script) -> str:
    """Other stores are measured from their environment where there is one, and told as missing else."""
    return str(OTHERS if script.needs == "others" and OTHERS.exists() else sys.executable)


def lines_of(script: Script, arguments: Sequence[str], *, limit: float) -> list[str]:
    """The JSON lines of one run.

    Raises:
        subprocess.CalledProcessError: It failed.
        subprocess.TimeoutExpired: It was not done within the limit.
    """
    path = f"bench/{script.name}.py"
    done = subprocess.run(
        [python_of(script), path, *arguments],
        cwd=ROOT,
        env={**os.environ, COMMAND: " ".join(["python", path, *arguments])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=limit,
    )
    return [line for line in done.stdout.splitlines() if line.startswith("{")]


def measure(script: Script, results: Path, *, quick: bool) -> str:
    """Run a script and put its lines in place of the old ones; why that failed, or ""."""
    runs = (script.quick,) if quick else script.whole
    try:
        lines = [line for run in runs for line in lines_of(script, run, limit=PATIENCE[quick])]
    except subprocess.CalledProcessError as error:
        return f"it ended with {error.returncode}"
    except subprocess.TimeoutExpired as error:
        return f"it was not done within {error.timeout:.0f} s"
    if not all("bench" in json.loads(line) for line in lines) or not lines:
        return "it said no measurement, or a line that names none"
    path = results / f"{script.name}.jsonl"
    part = path.with_suffix(".part")
    part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    part.replace(path)
    return ""


def show(folder: Path, *, quick: bool) -> str:
    """Write the page and draw its pictures, from an environment that can; why that failed, or "".

    A quick run goes without pictures where nothing here can draw.
    """
    here = [python for python in (sys.executable, str(OTHERS)) if _draws(python)]
    more = ["--small"] if quick else []
    more += ["--no-pictures"] if quick and not here else []
    python = next(iter(here), sys.executable)
    command = [python, "-m", "bench.report", "--folder", str(folder), *more]
    done = subprocess.run(command, cwd=ROOT, check=False)
    return "" if done.returncode == 0 else "the page was not written whole: see above"


def _draws(python: str) -> bool:
    """Whether an environment is there, and has what pictures need."""
    if not Path(python).exists():
        return False
    test = "import importlib.util as u, sys; sys.exit(u.find_spec('vl_convert') is None)"
    return subprocess.run([python, "-c", test], check=False).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in SCRIPTS], default=[])
    parser.add_argument("--folder", type=Path, help="for results/ and RESULTS.md")
    given = parser.parse_args(arguments)
    folder = given.folder or (
        Path(tempfile.mkdtemp(prefix="lance-memory-bench-")) if given.quick else HERE
    )
    if given.quick and folder.resolve() == HERE:
        parser.error(f"a quick run would write over the recorded lines in {HERE.name}/results")
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in SCRIPTS if not given.only or one.name in given.only]
    left_out = {one.name: why for one in chosen if (why := missing(one))}
    failed: dict[str, str] = {}

    def run(script: Script) -> None:
        begun = time.monotonic()
        if why := measure(script, results, quick=given.quick):
            failed[script.name] = why
        print(f"{script.name}: {why or 'measured'}, {time.monotonic() - begun:.0f} s", flush=True)

    with ThreadPoolExecutor(AT_ONCE if given.quick else 1) as pool:
        list(pool.map(run, (one for one in chosen if one.name not in left_out)))
    if why := show(folder, quick=given.quick):
        failed["RESULTS.md"] = why
    for name, why in left_out.items():
        print(f"left out: {name} ({why})")
    for name, why in failed.items():
        print(f"failed: {name} ({why})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
