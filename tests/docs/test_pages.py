"""Every page of docs/ runs as printed: each block, in order, in a fresh directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import LANGUAGES, ROOT, blocks

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
GUIDES = [page for page in PAGES if page.parent.name == "how-to"]
RUNNING = [page for page in PAGES if blocks(page)]
IN_A_BUCKET = {"s3.md": "my-memories"}  # one that no other test uses
READ_TOO = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_every_block_of_a_page_runs_as_printed(page, place, monkeypatch, request):
    if bucket := IN_A_BUCKET.get(page.name):
        for key, value in s3_environment(request.getfixturevalue("s3"), bucket).items():
            monkeypatch.setenv(key, value)
            place.environment[key] = value
    for block in blocks(page):
        place.run(block)


def s3_environment(s3, bucket: str) -> dict[str, str]:
    """The variables that name the tests' S3 server, as a reader names his own."""
    s3.bucket(bucket)
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_endpoint")
    return {**{n.upper(): s3.options[n] for n in names}, "AWS_ALLOW_HTTP": "true"}


@pytest.mark.parametrize("page", [*PAGES, *READ_TOO], ids=name)
def test_every_block_is_of_a_language_that_is_checked(page):
    """A block of another language, or of none, would be shown and never looked at."""
    assert {block.language for block in blocks(page)} <= set(LANGUAGES)


@pytest.mark.parametrize("page", READ_TOO, ids=name)
def test_every_command_line_that_is_shown_is_one_of_lmem(page):
    for block in blocks(page):
        block.check()


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_a_guide_has_at_most_a_hundred_lines_that_are_not_blank(page):
    told = [line for line in page.read_text(encoding="utf-8").splitlines() if line]
    assert len(told) <= 100


@pytest.mark.parametrize(
    "page",
    [*PAGES, *READ_TOO, ROOT / "CHANGELOG.md", *sorted((ROOT / "design").glob("*.md"))],
    ids=name,
)
def test_every_link_to_a_file_leads_to_one(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target
