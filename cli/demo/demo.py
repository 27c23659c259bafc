"""The product's story, told with real `lmem` commands; exits with 1 if a claim does not hold."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from lance_memory import Memory, MemoryStore
from lmem.main import main as lmem_main

HERE = Path(__file__).resolve().parent
QUESTIONS = (
    ("What is Mara allergic to?", "mara", "hazelnuts"),
    ("When does Tomás fly to Berlin?", "tomas", "14th of June"),
    ("Where does Mara live now?", "mara", "Porto"),
)


class DemoFailedError(Exception):
    """A command failed, or the store is not what the story says."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A store in a temporary directory, and the commands that work on it."""

    place: Path

    @property
    def store(self) -> Path:
        return self.place / "memory"

    def lmem(self, *words: str) -> str:
        """Show a command, run it, show and return its output.

        In this process, which spares the engine's start-up each time.
        """
        print(f"\n$ lmem {' '.join(map(_quoted, words))}", flush=True)
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            code = lmem_main(words)
        print(shown.getvalue(), end="", flush=True)
        if code:
            raise DemoFailedError(f"lmem {words[0]} exited with {code}")
        return shown.getvalue()

    def visible(self) -> set[str]:
        """Ids of what is recalled by default."""
        return {memory.id for memory in MemoryStore.open(self.store, create=False).list()}

    def ask(self, *more: str) -> list[str]:
        """The three questions; what was answered to each."""
        return [
            self.lmem("search", question, "--user", user, "--role", "user", "-k", "3", *more)
            for question, user, _ in QUESTIONS
        ]


def step(number: int, title: str) -> None:
    """A heading."""
    print(f"\n--- {number}. {title} {'-' * max(3, 72 - len(title))}", flush=True)


def check(claim: str, *, holds: bool) -> None:
    """A claim of the story, and whether it is true."""
    if not holds:
        raise DemoFailedError(f"this does not hold: {claim}")
    print(f"  checked: {claim}", flush=True)


def remember(demo: Demo) -> set[str]:
    """Import the sample, name that version, ask."""
    step(1, "remember: a year of two people's talks with their assistant")
    demo.lmem("import", os.path.relpath(HERE / "conversation.jsonl"))
    demo.lmem("tag", "start")
    everything = demo.visible()
    step(2, "recall")
    answers = demo.ask()
    for (question, _, fact), answer in zip(QUESTIONS, answers, strict=True):
        if fact not in answer:
            print(f"\n  note: {question} {fact!r} is missing: repetitions crowd it out")
    return everything


def consolidate(demo: Demo, before: set[str]) -> set[str]:
    """Plan, look, apply; the visible rows fall by what the plan said."""
    step(3, "consolidate: first the plan, which changes nothing")
    plan = str(demo.place / "plan.json")
    shown = demo.lmem("consolidate", "--dry-run", "--show", "6", "--plan", plan)
    promised = int(shown.split(" rows saved")[0].split()[-1])
    check("nothing was written", holds=demo.visible() == before)
    step(4, "apply exactly that plan, as one version")
    demo.lmem("apply", plan, "--yes", "--show", "0", "--reason", "first pass")
    after = demo.visible()
    check(
        f"{len(before)} visible memories became {len(after)}: {promised} fewer, as planned",
        holds=promised > 0 and len(before) - len(after) == promised,
    )
    return after


def recall_again(demo: Demo, before: set[str], after: set[str]) -> None:
    """The summaries are found; their sources are hidden, and reachable."""
    step(5, "recall again: a summary in the place of its repetitions")
    answers = demo.ask()
    for (_, _, fact), answer in zip(QUESTIONS, answers, strict=True):
        check(f"an answer has {fact!r}", holds=fact in answer)
    summary = next(word for word in "".join(answers).split() if _short(word, after - before))
    sources = before - after
    print("\nWhere did that summary come from? Its sources are hidden, not lost:")
    lineage = demo.lmem("lineage", summary)
    check(
        "its sources are superseded",
        holds=any(_names_one(line.split(), sources) for line in lineage.splitlines()),
    )
    demo.lmem("list", "--state", "superseded", "--limit", "4")


def look_back(demo: Demo, hidden: set[str]) -> None:
    """The log, the difference, and a read of the past."""
    step(6, "what happened, and what changed")
    demo.lmem("log")
    demo.lmem("diff", "start", "--show", "3")
    step(7, "read the store as it was before")
    question, user, _ = QUESTIONS[1]
    old = demo.lmem(
        "search", question, "--user", user, "--role", "user", "-k", "3", "--at", "start"
    )
    check(
        "that recall has what the pass has hidden",
        holds=any(_short(word, hidden) for word in old.split()),
    )


def undo(demo: Demo, before: set[str]) -> None:
    """Revert the pass alone; then go back to the start."""
    step(8, "undo the pass, and keep what came after it")
    demo.lmem("add", "I have adopted a second cat, and her name is Chive.", "--user", "mara")
    newest = MemoryStore.open(demo.store, create=False).log()
    consolidated = next(entry.version for entry in newest if entry.operation == "consolidate")
    added = demo.visible() - {memory.id for memory in _at(demo, consolidated)}
    demo.lmem("revert", str(consolidated), "--yes")
    check(
        "the visible memories are those from before the pass, and the cat",
        holds=len(added) == 1 and demo.visible() == before | added,
    )
    step(9, "roll everything back to the start")
    demo.lmem("rollback", "start", "--yes")
    check("the visible memories are those of the import", holds=demo.visible() == before)
    demo.lmem("log")


def main() -> int:
    """Tell the story; 0 if all of it is true."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lmem-demo-") as place:
        demo = Demo(Path(place))
        print(f"$ export LMEM_STORE={demo.store} LMEM_AUTHOR=demo")
        os.environ.update(LMEM_STORE=str(demo.store), LMEM_AUTHOR="demo")
        try:
            before = remember(demo)
            after = consolidate(demo, before)
            recall_again(demo, before, after)
            look_back(demo, before - after)
            undo(demo, before)
        except DemoFailedError as error:
            print(f"\nthe demo failed: {error}", file=sys.stderr)
            return 1
    print(
        f"\nRemembered, recalled, consolidated, looked back, undone: {len(before)} memories, "
        f"nothing lost, {time.monotonic() - began:.0f} s."
    )
    return 0


def _at(demo: Demo, version: int) -> list[Memory]:
    return MemoryStore.open(demo.store, create=False).at(version).list()


def _short(word: str, ids: set[str]) -> bool:
    """Whether `word` is the short form of one of these ids: its beginning, or ".." and its end."""
    end = word.removeprefix("..")
    fits = str.startswith if end == word else str.endswith
    return len(end) >= 7 and any(fits(identifier, end) for identifier in ids)


def _names_one(words: list[str], ids: set[str]) -> bool:
    """Whether these words call one of these ids superseded."""
    return "superseded" in words and any(_short(word, ids) for word in words)


def _quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


if __name__ == "__main__":
    raise SystemExit(main())
