"""What a person sees: at 80 columns, in colour on a terminal alone, and while it takes its time."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from lance_memory import FunctionEmbedder, MemoryStore
from lmem.drawn import excerpt
from lmem.output import Format, Output

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
FOX = "The quick brown fox jumps over the lazy dog near the river bank. " * 30
CAFE = "第一次见面的时候,我们在上海的一家小咖啡馆里谈了很久很久,直到天黑才回家。" * 20


@contextmanager
def terminal(columns=80):
    """A stream that is a terminal of so many columns; and what was written to it so far."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.set_blocking(ours, False)

    def seen():
        found = b""
        while True:
            try:
                found += os.read(ours, 65_536)
            except OSError:  # nothing more is there, or nobody writes any more
                return found.decode()

    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield stream, seen
    os.close(ours)


# -- progress


@pytest.fixture
def looked_at(monkeypatch):
    """Within it stderr is a terminal; gives what was written to it since one last looked."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("COLUMNS", raising=False)

    @contextmanager
    def begun():
        with terminal() as (stream, seen), monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            yield seen

    return begun


def test_what_takes_its_time_has_a_spinner_that_goes_away(looked_at, capsys):
    with looked_at() as seen:
        with Output(Format.HUMAN).progress("dreaming"):
            time.sleep(0.8)
            print("the answer")  # noqa: T201
            shown = seen()
        ended = seen()
    assert "dreaming" in shown
    assert "\x1b[?25l" in shown  # no cursor meanwhile
    assert "\x1b[?25h" in ended  # and again one
    assert ended.endswith("\x1b[2K")  # on an empty line
    assert capsys.readouterr().out == "the answer\n"


def test_what_is_counted_has_a_bar_once_it_was_told(looked_at):
    with looked_at() as seen, Output(Format.HUMAN).progress("embedding") as told:
        time.sleep(0.7)
        before = CODES.sub("", seen())
        told(3, 12, "embedding texts")
        time.sleep(0.3)
        shown = CODES.sub("", seen())
    assert "embedding" in before
    assert "%" not in before
    assert "embedding texts" in shown
    assert " 3/12" in shown
    assert " 25%" in shown


def test_what_is_quick_and_not_counted_draws_nothing(looked_at):
    with looked_at() as seen:
        with Output(Format.HUMAN).progress("looking"):
            pass
        assert seen() == ""


@pytest.mark.parametrize("format", [Format.JSON, Format.JSONL, Format.QUIET])
def test_other_formats_have_no_progress(format, looked_at):
    with looked_at(), Output(format).progress("looking") as told:
        assert told is None


def interrupted():
    with Output(Format.HUMAN).progress("forgetting"):
        time.sleep(0.7)
        raise KeyboardInterrupt


def test_ctrl_c_leaves_the_terminal_as_it_was(looked_at):
    with looked_at() as seen:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert "\x1b[?25h" in seen()  # there is a cursor again


# -- 80 columns


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Long texts with and without spaces, many tags and branches, an author with a long name."""
    path = tmp_path_factory.mktemp("terminal") / "memory"
    embedder = FunctionEmbedder(
        lambda texts: [[1.0, len(t)] for t in texts], name="two", dimension=2
    )
    author = "an-author-with-a-very-long-name@some-very-long-company.example.org"
    store = MemoryStore.open(path, author=author, embedder=embedder, upkeep=None)
    fox = store.add(f"{FOX}It ends with Porto.", user="u1", tenant="t1")
    cafe = store.add(f"{CAFE}结束", user="用户二", tenant="t2")
    rope = store.add("x" * 900, user="u3")
    for number in range(20):
        store.tag(f"tag-number-{number}")
    for number in range(3):
        store.branch(f"branch-{number}").add(f"on branch {number}")
    store.tag("old", rope.version)
    store.update(fox.id, content=f"{FOX}It ends with Lisbon, quite differently.", reason=FOX)
    store.update(cafe.id, content=f"{CAFE}开始", reason=CAFE)
    store.retire(rope.id, reason="y" * 300)
    return path


SEVERAL = """
import sys
from lmem.main import main
for words in sys.argv[2:]:
    print("== " + words)
    assert main([*words.split(), "--store", sys.argv[1]]) == 0
"""
COMMANDS = ("log", "log --graph", "stats", "diff old", "branches", "tag")


def run(path, **environment):
    """What these commands write to a terminal of 80 columns."""
    clean = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    with terminal() as (stream, seen):
        shown = ""
        with subprocess.Popen(
            [sys.executable, "-c", SEVERAL, str(path), *COMMANDS],
            stdout=stream, stderr=subprocess.PIPE,
            env={**clean, "TERM": "xterm-256color", "PYTHONUTF8": "1", **environment},
        ) as child:  # fmt: skip
            while child.poll() is None:  # a terminal holds few lines that nobody reads
                shown += seen()
                time.sleep(0.02)
            err = child.stderr.read().decode()
        assert (child.returncode, err) == (0, "")
        return (shown + seen()).replace("\r\n", "\n")


def test_on_a_terminal_of_80_columns_nothing_is_wider_and_there_is_colour(crowded):
    shown = run(crowded)
    lines = CODES.sub("", shown).splitlines()
    assert max(map(cell_len, lines)) == 80
    graph = shown.split("== log --graph\n")[1].split("== stats")[0]
    assert "\x1b[32m+1" in graph  # green
    assert "\x1b[33m~1" in graph  # yellow
    assert any(
        line.startswith("| | | * ") or "|/" in line for line in CODES.sub("", graph).splitlines()
    )
    assert "\x1b[" not in run(crowded, NO_COLOR="1", TERM="dumb")


def test_who_and_how_many_stay_where_reasons_are_long(crowded, lmem):
    lines = lmem("log", "--store", crowded).out.splitlines()
    assert lines[0].split() == ["VERSION", "TIME", "(UTC)", "OPERATION", "CHANGES", "BY", "REASON"]
    reasons = [line for line in lines if line[:1].isspace()]
    assert (len(reasons), sum(line.endswith("…") for line in reasons)) == (6, 3)  # three lines each
    assert sum(not line[:1].isspace() for line in lines) == 7


def test_a_diff_of_long_texts_shows_where_they_differ(crowded, lmem):
    lines = lmem("diff", "old", "--store", crowded).out.splitlines()
    assert "    - … bank. It ends with Porto." in lines
    assert "    + … bank. It ends with Lisbon, quite differently." in lines
    assert any(line.startswith("    - … ") and line.endswith("结束") for line in lines)
    whole = lmem("diff", "old", "--whole", "--store", crowded).out
    assert " ".join(whole.split()).count(FOX.strip()) == 2


def test_the_numbers_of_a_store_name_the_first_of_many_tags(crowded, lmem):
    told = " ".join(lmem("stats", "--store", crowded).out.split())
    assert "memories 3, visible 2 by state active 2, retired 1 by kind episodic 3" in told
    assert "embeddings two (2 numbers)" in told
    assert "and 9 more branches branch-0, branch-1, branch-2 size" in told


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab 谈é", max_size=80), st.integers(8, 60), st.integers(0, 80))
def test_an_excerpt_fits_and_says_what_it_leaves_out(text, room, at):
    flat = " ".join(text.split())
    at = min(at, len(flat))
    shown = excerpt(text, room, at=at)
    assert cell_len(shown) <= room
    if cell_len(flat) <= room:
        assert shown == flat
    else:
        assert "…" in shown
        assert shown.removeprefix("… ").removesuffix("…") in flat
