"""What a newcomer runs first: the README's shell block, and the demo."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "cli" / "demo" / "demo.py"
CONVERSATION = [
    {"content": content, "user": "mara", "event_at": f"2025-01-0{day}T12:00:00Z"}
    for day, content in enumerate(
        [
            "My gym locker code is 4471, and I always forget it.",
            "I always forget it, but my gym locker code is 4471.",
            "The train to Porto leaves at nine.",
            "I am allergic to hazelnuts.",
        ],
        start=1,
    )
]


def block(heading: str) -> list[str]:
    """The lines of the first ```sh block below a heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split(heading, 1)[1]
    return text.split("```sh\n", 1)[1].split("```", 1)[0].splitlines()


def test_the_shell_block_of_the_readme_does_what_it_says(lmem, tmp_path, monkeypatch):
    lines = "".join(json.dumps(row) + "\n" for row in CONVERSATION)
    sample = tmp_path / "cli" / "demo" / "conversation.jsonl"  # as the README names it
    sample.parent.mkdir(parents=True)
    sample.write_text(lines, encoding="utf-8")
    (tmp_path / "try").mkdir()
    monkeypatch.chdir(tmp_path / "try")
    monkeypatch.delenv("LMEM_STORE")
    answers = {}
    for line in block("## The same from the shell"):
        for part in line.split("#")[0].split("&&"):
            words = shlex.split(part)
            if words[0] == "export":
                monkeypatch.setenv(*words[1].split("="))
                continue
            assert words[0] == "lmem"
            done = lmem(*words[1:])
            assert done.code == 0, (part, done.err)
            answers[" ".join(words[1:3])] = done.out
    assert "consolidate +1 ~2" in answers["log --graph"]
    assert "hazelnuts" in answers["search what is she allergic to?"]
    assert "hazelnuts" in answers["search hazelnuts"]
    assert "revert, ~2 -1" in answers["revert pass"]
    assert len(lmem("list", "--format", "jsonl").lines) == 4


def test_the_demo_tells_its_whole_story(capsys, monkeypatch):
    for name in ("LMEM_STORE", "LMEM_AUTHOR"):  # the demo sets them; the fixture puts them back
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("COLUMNS", "80")
    spec = importlib.util.spec_from_file_location("lmem_demo", DEMO)
    demo = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lmem_demo", demo)
    spec.loader.exec_module(demo)
    code = demo.main()
    shown = capsys.readouterr()
    assert (code, shown.err) == (0, "")
    assert shown.out.count("checked:") == 9
    assert "nothing lost" in shown.out.splitlines()[-1]


@pytest.mark.parametrize("words", [["init", "here"], ["init", "--store", "here"]])
def test_init_takes_the_path_as_an_argument_or_an_option(words, lmem, tmp_path):
    done = lmem(*words, "--format", "json")
    assert (done.code, done.json["version"]) == (0, 2)
    assert done.json["uri"] == str(tmp_path / "here")
    assert (tmp_path / "here" / "memories.lance").is_dir()
