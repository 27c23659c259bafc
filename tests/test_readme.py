"""The README runs as printed: its Python. That `lmem` knows its commands is in tests/docs."""

import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
if str(HERE / "docs") not in sys.path:  # for what runs pages
    sys.path.append(str(HERE / "docs"))

from pages import Place, blocks  # noqa: E402

BLOCKS = [block for block in blocks(HERE.parent / "README.md") if block.language == "python"]


def test_every_example_of_the_readme_runs_as_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    s3: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    s3.bucket("my-bucket")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT"):
        monkeypatch.setenv(name, s3.options[name.lower()])
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    place = Place(directory=tmp_path, environment={})
    for block in BLOCKS:
        place.run(block)
    printed = "".join(place.printed)
    assert len(BLOCKS) == 9
    assert """done {'kept': 3} memories: ["I'm Lea and I live in Faro.", 'I """ in printed
    assert "done 4 memories of hers" in printed
    assert "> 1. find\n> 2. offer\n> 3. book" in printed
    assert "user: Please remember that my flight to Oslo leaves on 12 May." in printed
    assert "[('profile', " in printed
    assert "1 in the bucket" in printed
    assert "nothing is wrong" in printed
    assert "1 restored" in printed
    assert "() to migrate" in printed
    assert "neighbours" in printed
    assert "actors: Bo" in printed
    assert "allergic to hazelnuts" in printed
    assert "3 memories before, 2 after" in printed
    assert "memories considered at version" in printed
    assert "planned" in printed
    assert "0 memories have faded" in printed
