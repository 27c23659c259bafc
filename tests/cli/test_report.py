"""`lmem report`: the page of the library's verb, from the command line."""

import re

import pytest

pytestmark = pytest.mark.disk


def test_a_report_is_written_and_named(lmem, store, tmp_path):
    """As of a tag and within a scope; then again, where a file is there."""
    asked = ("report", "--out", tmp_path / "page.html", "--user", "ann", "--at", "start")
    done = lmem(*asked, "--question", "kettle", "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["path"], done.json["version"]) == (str(tmp_path / "page.html"), 3)
    assert "One question over time" in done.json["sections"]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the red kettle is broken" in text
    assert "pears" not in text
    again = lmem(*asked)
    assert again.code == 2
    assert "is there already" in " ".join(again.err.split())
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    shown = lmem("report", "--user", "nobody", "--overwrite", "--out", tmp_path / "page.html")
    assert shown.code == 0
    assert re.search(r"empty +Growth and churn, Lifecycle", shown.out)
    assert re.search(r"^sections +0$", shown.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--at", "99"], 3),
        (["--memory", "nobody"], 3),
        (["--sample", "1"], 2),
        (["--before", "x"], 3),
    ],
)
def test_a_report_of_what_is_not_there_is_refused(lmem, store, options, code, tmp_path):
    done = lmem("report", "--user", "bob", *options)
    assert done.code == code, done.err
    assert not (tmp_path / "report.html").exists()
