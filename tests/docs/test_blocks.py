"""What runs the pages fails where a page is wrong."""

from __future__ import annotations

import pytest
from pages import Block, blocks, command_lines, compare, parse


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The blocks of a page with this text."""
    import pages

    monkeypatch.setattr(pages, "ROOT", tmp_path)

    def read(text: str) -> list[Block]:
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        return blocks(page)

    return read


def test_what_a_block_prints_belongs_to_it(written):
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\nwords\n\n```text\nnothing's\n```\n"
    assert [(b.language, b.text, b.shown) for b in written(page)] == [
        ("python", "print(1)\n", "1\n"),
        ("text", "nothing's\n", None),
    ]


def test_a_block_that_cannot_run_says_why(written):
    (block,) = written("<!-- no-run: no GPU -->\n```sh\nlmem log\n```\n")
    assert block.no_run == "no GPU"


def test_a_page_that_shows_something_else_than_is_printed_fails(written, place):
    (block,) = written("```python\nprint(2)\n```\n```text\n1\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:1 prints something else"):
        place.run(block)


def test_a_shell_block_that_fails_fails(written, place):
    (block,) = written("```sh\nfalse\ntrue\n```\n")
    with pytest.raises(AssertionError, match="exit code 1"):
        place.run(block)


def test_blocks_of_a_page_share_variables_names_and_the_directory(written, place):
    for block in written(
        "```sh\nexport WHO=mara\necho hello > file\n```\n```sh\necho $WHO\n```\n```text\nmara\n```\n"
        "```python\nfrom pathlib import Path; said = Path('file').read_text()\n```\n```python\nprint(said)\n```\n"
    ):
        place.run(block)
    assert place.printed[-1] == "hello\n\n"


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        ('lmem add "a b" --user ann  # why', [["add", "a b", "--user", "ann"]]),
        ("A=1 lmem log | grep x && lmem tag t; ls", [["log"], ["tag", "t"]]),
        ("lmem list > file.txt", [["list"]]),
        ("lmem add \\\n  x", [["add", "x"]]),
        ("cat > f <<'EOF'\nlmem nonsense\nEOF\nlmem log", [["log"]]),
    ],
)
def test_command_lines_are_found_in_scripts(script, lines):
    assert command_lines(script) == lines


@pytest.mark.parametrize("line", ["nonsense", "add", "add x --nonsense", "index nonsense"])
def test_a_command_line_that_lmem_does_not_know_fails(line):
    with pytest.raises(AssertionError, match="here: lmem "):
        parse(line.split(), "here")


def test_dots_stand_for_anything_and_nothing_else_does():
    compare("version ...: done\n", "version 17: done\n", "here")
    with pytest.raises(AssertionError):
        compare("version ...: done\n", "version 17: undone\n", "here")
