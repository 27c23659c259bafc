"""The README runs as printed: its Python. That `lmem` knows its commands is in tests/docs."""

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE / "docs") not in sys.path:  # for what runs pages
    sys.path.append(str(HERE / "docs"))

from pages import Place, blocks  # noqa: E402

BLOCKS = [block for block in blocks(HERE.parent / "README.md") if block.language == "python"]


def test_every_example_of_the_readme_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(directory=tmp_path, environment={})
    for block in BLOCKS:
        place.run(block)
    printed = "".join(place.printed)
    assert len(BLOCKS) == 3
    assert "allergic to hazelnuts" in printed
    assert "3 memories before, 2 after" in printed
    assert "user: Please remember that my flight to Oslo leaves on 12 May." in printed
    assert "> 1. find\n> 2. offer\n> 3. book" in printed
    assert "superseded" in printed
    assert "│ added" in printed


def rows(page: str) -> dict[str, list[str]]:
    """The rows of all tables of a page: the first cell, and the others without references."""
    text = (HERE.parent / page).read_text(encoding="utf-8")
    cut = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {first: [re.sub(r" \[\d+\]\(#.*?\)", "", cell) for cell in rest] for first, *rest in cut}


def test_the_tables_of_the_readme_stand_in_the_pages_that_they_are_from() -> None:
    """So no figure in it is older than the recorded runs, and no claim than the comparison."""
    results, comparison = rows("bench/RESULTS.md"), rows("docs/comparison.md")
    found = {"figures": 0, "claims": 0}
    for first, cells in rows("README.md").items():
        if len(cells) == 3 and first != "measured":
            assert results[first][:3] == cells, first
            found["figures"] += 1
        elif len(cells) == 6:
            assert comparison[first] == cells, first
            found["claims"] += 1
    assert found["figures"] > 9
    assert found["claims"] > 9
