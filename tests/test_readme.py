"""The README runs as printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_of_the_readme_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), names)
    printed = capsys.readouterr().out
    assert len(BLOCKS) == 5
    assert "neighbours" in printed
    assert "actors: Bo" in printed
    assert "allergic to hazelnuts" in printed
    assert "3 memories before, 2 after" in printed
    assert "memories considered at version" in printed
    assert "planned" in printed
    assert "0 memories have faded" in printed
