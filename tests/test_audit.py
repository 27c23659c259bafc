"""The check of what the project depends on sees what it is there to see."""

from __future__ import annotations

import importlib.util
import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

TOOL = Path(__file__).parents[1] / "tools" / "audit.py"


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def made(tmp_path):
    """A distribution with these lines in its metadata."""

    def make(*lines):
        (tmp_path / "METADATA").write_text("\n".join(["Name: thing", "Version: 1.2+cpu", *lines]))
        return {"thing": Distribution.at(tmp_path)}

    return make


@pytest.mark.parametrize(
    ("line", "objections"),
    [
        ("License-Expression: MIT", 0),
        ("License-Expression: Apache-2.0 OR BSD-3-Clause", 0),
        ("License-Expression: MIT AND GPL-3.0-only", 1),
        ("License-Expression: AGPL-3.0-or-later", 1),
        ("License: Proprietary", 1),
        ("Classifier: License :: OSI Approved :: BSD License", 0),
        ("Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)", 1),
        ("Summary: no licence at all", 1),
    ],
)
def test_a_licence_that_is_not_allowed_is_an_objection(audit, made, line, objections):
    assert len(list(audit.licences(made(line)))) == objections


def test_what_is_not_locked_or_not_explained_is_an_objection(audit, made):
    (told,) = audit.unlocked(made())
    assert told.startswith("thing 1.2 is installed, and nothing is locked")
    assert list(audit.unexplained([Requirement("numpy>=1"), Requirement("left-pad")])) == [
        "left-pad is asked for in pyproject.toml and not explained in 001-dependencies.md"
    ]


def test_what_is_needed_by_what_is_needed_is_looked_at(audit):
    found = audit.closure([Requirement("moto[s3]")])
    assert {"moto", "boto3", "botocore", "py-partiql-parser"} <= set(found)
    assert "torch" not in found


def test_advisories_are_told_one_a_line(audit, tmp_path, capsys):
    flaw = {"id": "CVE-1", "fix_versions": ["2.1"]}
    found = [
        {"name": "a", "version": "2.0", "vulns": [flaw]},
        {"name": "b", "version": "1", "vulns": []},
        {"name": "c", "skip_reason": "not found"},
    ]
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"dependencies": found}))
    assert audit.main(["--advisories", str(path)]) == 1
    assert capsys.readouterr().out == (
        "a 2.0: CVE-1, fixed in 2.1\n"
        "not known to the service, and not audited: c\n"
        "2 audited, 1 known vulnerability\n"
    )
    path.write_text(json.dumps({"dependencies": found[1:]}))
    assert audit.main(["--advisories", str(path)]) == 0


def test_a_service_that_knows_nothing_of_what_is_locked_has_audited_nothing(
    audit, tmp_path, capsys
):
    """A mirror that answers without advisories is not taken for a clean bill."""
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"dependencies": [{"name": "c", "skip_reason": "not found"}]}))
    assert audit.main(["--advisories", str(path)]) == 2
    assert "nothing was audited" in capsys.readouterr().out
