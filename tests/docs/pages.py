"""The blocks of a page, and a place where they run as a reader would run them.

A page is Markdown. Its blocks of `python` and `sh` run in order; a `text` block right after one is
what it prints, where `...` stands for anything. `<!-- no-run: why -->` before a block says that it
cannot run here: then it is only compiled, or its `lmem` lines are parsed.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LANGUAGES = ("python", "sh", "text")
SEPARATORS = {"&&", "||", ";", "|", "&", "(", ")"}
REDIRECTIONS = {">", ">>", "<", "2>"}

_FENCE = re.compile(r"^( *)```([a-z]*)(.*)$")
_NO_RUN = re.compile(r"^<!-- no-run: (.+) -->$")
_SAME = doctest.ELLIPSIS | doctest.REPORT_NDIFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    language: str
    text: str
    no_run: str = ""
    shown: str | None = None

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def check(self) -> None:
        """Look at it without running it."""
        if self.language == "python":
            compile(self.text, self.where, "exec")
        elif self.language == "sh":
            for words in command_lines(self.text):
                parse(words, self.where)


def blocks(page: Path) -> list[Block]:
    """All blocks of a page; what a block prints belongs to it."""
    found: list[Block] = []
    for block, follows in _fenced(page):
        if block.language == "text" and follows and found[-1].language != "text":
            found[-1] = replace(found[-1], shown=block.text)
        else:
            found.append(block)
    return found


def _fenced(page: Path) -> Iterator[tuple[Block, bool]]:
    """Each block, and whether nothing stands between it and the one before."""
    lines = page.read_text(encoding="utf-8").splitlines()
    opened: tuple[int, str, str] | None = None
    inside: list[str] = []
    before, follows = "", False
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, inside = (number, fence[1], fence[2]), []
        elif opened is not None and fence:
            start, indent, language = opened
            text = "".join(f"{one.removeprefix(indent)}\n" for one in inside)
            told = _NO_RUN.match(before.strip())
            reason = told[1] if told else ""
            yield Block(page=page, line=start, language=language, text=text, no_run=reason), follows
            opened, before, follows = None, "", True
        elif opened is not None:
            inside.append(line)
        elif line.strip():
            before, follows = line, False
    assert opened is None, f"{page}: a block is not closed"


# -- a place to run them ------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Place:
    """An empty directory, the names of Python and the variables of the shell, for one page."""

    directory: Path
    environment: dict[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)

    def run(self, block: Block) -> None:
        """Run it, or look at it, and compare what it prints with what the page says."""
        block.check()
        if block.no_run or block.language == "text":
            return
        said = self._python(block) if block.language == "python" else self._shell(block)
        self.printed.append(said)
        if block.shown is not None:
            compare(block.shown, said, block.where)

    def _python(self, block: Block) -> str:
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        said = io.StringIO()
        with redirect_stdout(said):
            exec(code, self.names)
        return said.getvalue()

    def _shell(self, block: Block) -> str:
        state = self.environment["STATE"]
        script = (
            f'set -euo pipefail\nif [ -e "{state}" ]; then . "{state}"; fi\n'
            f'{block.text}\nexport -p | grep -v " STATE=" > "{state}"\n'
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"{block.where}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout


def place(directory: Path, *, server: str, programs: Path) -> Place:
    """A place where `lmem` is run by the server at that socket."""
    plain = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    inner = directory / "page"
    inner.mkdir()
    return Place(
        directory=inner,
        environment={
            **plain,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(directory),
            "COLUMNS": "100",
            "LMEM_SERVER": server,
            "OMP_NUM_THREADS": "1",
            "STATE": str(directory / "state.sh"),
        },
    )


def compare(shown: str, said: str, where: str) -> None:
    """Fails where the page shows anything else than was printed."""
    wanted, got = (
        "".join(f"{line.rstrip()}\n" for line in text.rstrip().splitlines())
        for text in (shown, said)
    )
    checker = doctest.OutputChecker()
    example = doctest.Example("", wanted)
    assert checker.check_output(wanted, got, doctest.ELLIPSIS), (
        f"{where} prints something else\n{checker.output_difference(example, got, _SAME)}"
    )


# -- command lines ------------------------------------------------------------------------


def command_lines(script: str) -> list[list[str]]:
    """The words of each `lmem` in a shell script, without variables and redirections."""
    found: list[list[str]] = []
    text = re.sub(r"<<'?EOF'?\n.*?\nEOF\n", "\n", script.replace("\\\n", " "), flags=re.DOTALL)
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        command: list[str] = []
        for word in [*lexer, ";"]:
            if word in SEPARATORS:
                found += [_plain(command)]
                command = []
            else:
                command.append(word)
    return [words[1:] for words in found if words[:1] == ["lmem"]]


def _plain(command: list[str]) -> list[str]:
    words = list(command)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    for number, word in enumerate(words):
        if word in REDIRECTIONS:
            return words[:number]
    return words


@cache
def _lmem() -> Any:
    from lmem.main import tree

    return tree


def parse(words: list[str], where: str) -> None:
    """Fails where `lmem` does not know the command, or an option of it."""
    from typer import Exit

    command, name, rest, context = _lmem(), "lmem", words, None
    try:
        while True:
            context = command.make_context(name, list(rest), parent=context)
            if not hasattr(command, "commands"):
                return
            name, command, rest = command.resolve_command(
                context, [*context._protected_args, *context.args]
            )
    except Exit:  # --help, --version
        return
    except Exception as error:
        raise AssertionError(f"{where}: lmem {shlex.join(words)}: {error}") from error
