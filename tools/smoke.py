"""Does an installed lance-memory work? `python tools/smoke.py [VERSION]`, with the package alone.

Nothing of this repository is read: the package is the one that is installed beside the interpreter,
the store lies in a new directory, and `lmem` is the console script. Warnings that our own modules
give rise to are errors. Exits with 1 at the first thing that is not as it should be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

OURS = r"(lance_memory|lmem)\b"
warnings.filterwarnings("error", module=OURS)

from lance_memory import (  # noqa: E402 (the filter stands before everything that it is for)
    Agent,
    LogEntry,
    MemoryStore,
    __file__,
    __version__,
)

SAID = (
    "I am allergic to hazelnuts.",
    "Please remember: I'm allergic to hazelnuts!",
    "The train to Porto leaves at nine.",
)


class NotSoError(Exception):
    """What is installed does not do what it should."""


def main(words: list[str]) -> int:
    """Look at what is installed, the library and the command; the exit code."""
    expect("the version", __version__, words[0] if words else installed("lance-memory"))
    home = Path(__file__).resolve()
    expect("the package is an installed one", Path(sys.prefix).resolve() in home.parents, True)
    expect("it has its types", (home.parent / "py.typed").is_file(), True)
    with tempfile.TemporaryDirectory(prefix="lance-memory-") as place:
        os.chdir(place)
        for part in PARTS:
            part(Path(place))
            say(f"{part.__name__}: as it should be")
    return 0


def library(place: Path) -> None:
    """Open, add, upsert, search, ingest."""
    with MemoryStore.open(place / "library", author="smoke") as store:
        mara = store.scoped(user="mara")
        for text in SAID:
            mara.add(text)
        mara.upsert("Mara lives in Lisbon.", key="home")
        mara.upsert("Mara lives in Porto.", key="home")
        expect("the newest home", mara.get("home").content, "Mara lives in Porto.")
        hits = mara.search("what is she allergic to?", k=2)
        expect("by meaning", all("hazelnuts" in hit.memory.content for hit in hits), True)
        expect("by words", mara.search("train", mode="text")[0].memory.content, SAID[2])
        expect("another scope", store.scoped(user="bo").search("hazelnuts").hits, ())
        said = store.scoped(user="lea").ingest("I live in Faro, and my e-mail is lea@example.org.")
        expect("what was ingested", said.counts["keep"], {"kept": 1})
        expect("rows in every state", mara.to_polars().collect().height, 5)
        expect("doctor", [str(f) for f in store.doctor().findings if f.severity != "note"], [])


def versions(place: Path) -> None:
    """Consolidate, read as of before, undo, and what the log says."""
    with MemoryStore.open(place / "library", create=False) as store:
        mara = store.scoped(user="mara")
        before = contents(mara)
        plan = mara.consolidate(dry_run=True)
        expect("a dry run writes nothing", contents(mara), before)
        done = mara.apply(plan)
        expect("one cluster", (len(plan.accepted), len(contents(mara))), (1, len(before) - 1))
        expect("as of before", contents(mara.at(done.version - 1)), before)
        mara.revert(done.version)
        expect("the pass is undone", contents(mara), before)
        entries: list[LogEntry] = mara.log(limit=2)
        expect("the log", [entry.operation for entry in entries], ["revert", "consolidate"])


def agent(place: Path) -> None:
    """A turn, the end of its session, and the context of the next."""
    with MemoryStore.open(place / "agent") as store:
        noa = Agent(store.scoped(tenant="acme", user="noa"))
        noa.observe("monday", "I'm Noa, I live in Faro and I am allergic to peanuts.", "Noted!")
        noa.flush("monday")
        pack = noa.context("tuesday", "What can she not eat?", budget_tokens=200)
        expect("what is recalled", "peanuts" in pack.text, True)
        expect("within the budget", pack.tokens <= 200, True)


def command(place: Path) -> None:
    """The console script, from a directory of its own."""
    expect("init", lmem("init", "shell")["uri"].endswith("shell"), True)
    there = ("--store", str(place / "shell"))
    expect("add", lmem("add", SAID[0], "--user", "mara", *there)["version"] > 0, True)
    found = lmem("search", "allergies", "--user", "mara", *there)
    expect("search", [hit["memory"]["content"] for hit in found["hits"]], [SAID[0]])
    expect("log", [entry["operation"] for entry in lmem("log", *there)], ["add"])
    seen = {finding["severity"] for finding in lmem("doctor", *there)["findings"]}
    expect("doctor", seen <= {"note"}, True)
    expect("the log for people", "add" in run("log", "--graph", *there), True)
    options = {word for word in run("dream", "--help").split() if word.startswith("--")}
    expect("options in capitals", {word for word in options if word != word.lower()}, set())
    expect("an option named as its value is", "--cron" in options, True)


def lmem(*words: str) -> Any:
    """What a command answers."""
    return json.loads(run(*words, "--format", "json"))


def run(*words: str) -> str:
    """What a command prints; it is one that succeeds, and warns of nothing."""
    script = Path(sys.executable).with_name("lmem")
    done = subprocess.run(  # noqa: S603 (what is installed here)
        [script, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    expect(f"lmem {words[0]} ends well ({done.stderr.strip()})", done.returncode, 0)
    expect(f"lmem {words[0]} warns of nothing", "Warning" in done.stderr, False)
    return done.stdout


def contents(view: Any) -> list[str]:
    """What is recalled by default."""
    return sorted(memory.content for memory in view.list())


def expect(what: str, found: object, wanted: object) -> None:
    """Raises NotSoError unless what was found is what was wanted."""
    if found != wanted:
        raise NotSoError(f"{what}: {found!r}, and not {wanted!r}")


def say(text: str) -> None:
    """A line of the report."""
    sys.stdout.write(f"  {text}\n")


PARTS: tuple[Callable[[Path], None], ...] = (library, versions, agent, command)

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
