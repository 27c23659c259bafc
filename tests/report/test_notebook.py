"""The notebook runs from its first cell to its last, and shows something in every section."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "memory_analysis.ipynb"
CHILD = Path(__file__).with_name("notebook_child.py")
FRAME, PICTURE = "text/html", "image/svg+xml"
SECTIONS = {
    "1. Growth and churn": {FRAME, PICTURE},
    "2. Lifecycle": {FRAME, PICTURE},
    "3. Duplicates and staleness": {PICTURE},
    "4. Scope sizes": {FRAME, PICTURE},
    "5. Consolidation passes": {FRAME, PICTURE},
    "6. What is recalled, and what never is": {PICTURE},
    "7. A map of the embeddings": {PICTURE},
    "8. The lineage of one memory": {FRAME, PICTURE},
    "9. Two versions compared": {FRAME, PICTURE},
    "10. One question over time": {FRAME, PICTURE},
    "SQL, and other tools": {FRAME},
}


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def heading(cell):
    lines = "".join(cell["source"]).splitlines()
    return next((line.removeprefix("## ") for line in lines if line.startswith("## ")), None)


def test_it_is_kept_without_what_came_out():
    code = [cell for cell in cells(NOTEBOOK) if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert {cell["execution_count"] for cell in code} == {None}


def test_each_section_says_what_to_see():
    found = {heading(cell): cell for cell in cells(NOTEBOOK) if cell["cell_type"] == "markdown"}
    assert list(filter(None, found))[:-1] == list(SECTIONS)
    assert all(len("".join(found[name]["source"]).split("\n\n", 1)[1]) > 40 for name in SECTIONS)


@pytest.mark.parametrize("place", [NOTEBOOK.parent, NOTEBOOK.parents[1]])
def test_it_finds_its_sample_from_its_directory_and_from_the_root(place, monkeypatch):
    """Guards: it was found from one of them alone."""
    monkeypatch.chdir(place)
    code = next("".join(cell["source"]) for cell in cells(NOTEBOOK) if cell["cell_type"] == "code")
    told = [one for one in ast.parse(code).body if isinstance(one, ast.Assign)]
    names = {"Path": Path}
    exec(compile(ast.Module(told, []), "cell", "exec"), names)  # a cell of ours
    assert names["SAMPLE"].is_file()


def test_it_runs_and_every_section_has_its_pictures_and_tables(tmp_path):
    out = tmp_path / "out.ipynb"
    homes = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "TMPDIR")
    places = {name: str(tmp_path) for name in homes}
    done = subprocess.run(
        [sys.executable, str(CHILD), str(NOTEBOOK), str(out)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, **places},
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    shown, name = {}, None
    for cell in cells(out):
        name = heading(cell) if cell["cell_type"] == "markdown" else name
        kinds = {kind for one in cell.get("outputs", ()) for kind in one.get("data", {})}
        shown[name] = shown.get(name, set()) | kinds
        assert not [one for one in cell.get("outputs", ()) if one["output_type"] == "error"]
    missing = {name: wanted - shown[name] for name, wanted in SECTIONS.items()}
    assert missing == {name: set() for name in SECTIONS}
