"""A way to run `lmem` in this process, and a small store to run it on."""

from __future__ import annotations

import io
import json
import random
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:  # for the plain modules of this folder
    sys.path.append(HERE)

from lmem.main import main  # noqa: E402


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


class Stream(io.TextIOWrapper):
    def __init__(self, data: bytes = b"", *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        return self.buffer.getvalue().decode()


Lmem = Callable[..., Done]


@pytest.fixture
def lmem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lmem:
    """Runs a command line; the store is tmp_path / "memory" unless one is named."""
    monkeypatch.setenv("LMEM_STORE", str(tmp_path / "memory"))
    monkeypatch.delenv("LMEM_AUTHOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)  # a path taken from a hostile word lands here

    def run(*words: object, stdin: str | bytes = b"", terminal: bool = False) -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = Stream(), Stream()
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", Stream(data, terminal=terminal))
            code = main([str(word) for word in words])
        return Done(code, out.text(), err.text())

    return run


def vector(seed: int, near: float = 0.0) -> list[float]:
    """A unit vector of its own for each seed; `near` shifts it a little."""
    numbers = random.Random(seed)
    values = [numbers.gauss(0, 1) for _ in range(384)]
    length = sum(v * v for v in values) ** 0.5
    return [v / length + near / 384 for v in values]


MEMORIES = [
    {
        "id": f"{i:08d}-0000-7000-8000-000000000000",
        "key": f"k{i}",
        "user": "ann" if i < 4 else "bob",
        "content": content,
        "event_at": f"2025-01-0{i + 1}T12:00:00+00:00",
        "tags": ["odd"] if i % 2 else ["even", "two words"],
        "metadata": {"n": i, "place": "Lisbon"},
        "actor": "Ann",
        "embedding": vector(i // 2, near=i % 2),
    }
    for i, content in enumerate(
        [
            "the red kettle is broken",
            "the red kettle is really broken",
            "the train leaves at nine",
            "the train to Porto leaves at nine",
            "bob likes pears",
            "bob likes green pears",
        ]
    )
]
IDS = [str(m["id"]) for m in MEMORIES]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store: version 3 has all memories and the tag "start", version 4 retired the last.

    The branch "side" left at version 3 and changed the tags of the first.
    """
    from lance_memory import MemoryStore

    path = tmp_path_factory.mktemp("template") / "memory"
    store = MemoryStore.open(path, author="maker")
    store.add_many(MEMORIES)
    store.tag("start")
    store.branch("side").update("k0", tags=["on the side"])
    store.retire("k5", reason="wrong")
    return path


@pytest.fixture
def store(template: Path, tmp_path: Path, lmem: Lmem) -> Path:
    """A copy of it where `lmem` looks, whose branch reads the files of the copy."""
    from lance_memory.storage import Table
    from lance_memory.storage.disk.moved import brought_home

    path = Path(shutil.copytree(template, tmp_path / "memory"))
    brought_home(Table.open(str(path)))
    return path


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Where no store is yet."""
    return tmp_path / "fresh"


@pytest.fixture
def ids() -> list[str]:
    return IDS


@pytest.fixture
def items() -> list[dict[str, Any]]:
    return MEMORIES


@pytest.fixture
def version(store: Path) -> Callable[[], int]:
    """The newest version of the store, read without lmem."""
    from lance_memory import MemoryStore

    return lambda: MemoryStore.open(store, create=False).version


@pytest.fixture(scope="session")
def moved(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An archive of the small store, and a directory with a backup of it."""
    from lance_memory import MemoryStore

    folder = tmp_path_factory.mktemp("moved")
    store = MemoryStore.open(template)
    store.export_store(folder / "archive.zip")
    store.backup(folder / "backups")
    return {"ARCHIVE": str(folder / "archive.zip"), "BACKUPS": str(folder / "backups")}


@pytest.fixture(scope="session")
def plan_file(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved plan for the small store."""
    from lance_memory import ConsolidateOptions, MemoryStore

    file = tmp_path_factory.mktemp("plan") / "plan.json"
    plan = MemoryStore.open(template).consolidate(ConsolidateOptions(by="window"), dry_run=True)
    if not plan.accepted:
        plan = MemoryStore.open(template).consolidate(
            ConsolidateOptions(min_similarity=0.5), dry_run=True
        )
    assert plan.accepted
    file.write_text(plan.to_json(), encoding="utf-8")
    return file
