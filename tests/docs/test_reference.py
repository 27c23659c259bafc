"""The reference covers what there is to refer to: all public names, all commands."""

from __future__ import annotations

import importlib.util
import re
import sys

import pytest
from pages import ROOT

import lance_memory

REFERENCE = ROOT / "docs" / "reference"
TOOL = ROOT / "tools" / "docs_site.py"


@pytest.fixture(scope="module")
def site():
    spec = importlib.util.spec_from_file_location("docs_site", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_stands_in_the_reference_once():
    """Who exports a name says on which page of docs/reference it belongs: `::: lance_memory.Name`."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(REFERENCE.glob("*.md")))
    told = re.findall(r"^::: lance_memory\.(\w+)$", text, re.MULTILINE)
    assert sorted(told) == sorted(lance_memory.__all__)


def test_every_page_of_the_reference_is_in_its_index():
    index = (REFERENCE / "index.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((\w+\.md)\)", index))
    assert linked == {page.name for page in REFERENCE.glob("*.md")} - {"index.md"}


def test_the_page_of_commands_has_the_help_of_every_command_in_order(site):
    sys.path.append(str(ROOT / "tests" / "cli"))
    from command_tree import commands

    page, known = (REFERENCE / "commands.md").read_text(encoding="utf-8"), commands()
    assert page == site.commands_page(), "make it again: python tools/docs_site.py"
    told = re.findall(r"^#+ lmem (.+)$", page, re.MULTILINE)
    leaves = [words for words in told if words in known]
    assert leaves == list(known)
    assert page.count("Usage: lmem ") == len(told) + 1  # and that of lmem itself


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        ("docs/tutorial.md", "how-to/index.md", "how-to/index.md"),
        ("docs/how-to/s3.md", "../../design/019-remote.md", "../design/019-remote.md"),
        ("docs/how-to/s3.md", "../reference/store.md", "../reference/store.md"),
        ("docs/index.md", "../SECURITY.md", "SECURITY.md"),
        ("SECURITY.md", "docs/how-to/s3.md", "how-to/s3.md"),
        ("design/README.md", "glossary.md", "glossary.md"),
        ("design/README.md", "../docs/index.md", "../index.md"),
    ],
)
def test_a_link_leads_to_the_same_page_in_the_repository_and_in_the_site(site, page, link, there):
    assert site.mounted(f"see [it]({link}#part)", page) == f"see [it]({there}#part)"


def test_a_link_to_what_is_no_page_of_the_site_becomes_its_words(site):
    text = "see [the law](../lance_memory/errors.py) and [a typo](../nowhere.md)"
    assert site.mounted(text, "docs/index.md") == "see the law and [a typo](../nowhere.md)"


def test_code_is_no_link(site):
    text = "```python\nmade[0](SECURITY.md)\n```\n"
    assert site.mounted(text, "docs/index.md") == text


def test_a_page_that_would_load_something_from_another_host_is_told(site):
    html = """
    <link rel="stylesheet" href="//fonts.example/css"><link rel="canonical" href="https://a.example">
    <script src="https://cdn.example/x.js"></script><script src="assets/y.js"></script>
    <a href="https://elsewhere.example">read on</a><img src="../picture.svg">
    """
    assert site.foreign(html) == ["//fonts.example/css", "https://cdn.example/x.js"]
