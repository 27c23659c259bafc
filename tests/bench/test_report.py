"""bench/RESULTS.md and its pictures say what the recorded lines say, and nothing else."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import bench.origin
from bench.origin import COMMAND, about, command, commit, file_data, for_children, origin
from bench.report import pictures, quality
from bench.report.__main__ import main
from bench.report.lines import Line, Lines, recorded
from bench.report.page import SECTIONS, page
from bench.run import Script, measure, missing
from bench.run import main as run

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def made():
    return page(recorded(BENCH / "results"))


def test_the_page_is_what_the_recorded_lines_say(made):
    """Guards against figures that were typed, and lines that were recorded without `make results`."""
    assert (BENCH / "RESULTS.md").read_text(encoding="utf-8") == made.text


def test_every_picture_is_drawn_of_the_recorded_lines(made):
    stale = [one.name for one in made.pictures if not pictures.is_drawn(one, BENCH / "results")]
    assert stale == []


def test_a_picture_can_be_drawn_and_is_known_again(tmp_path, made):
    pytest.importorskip("vl_convert")
    one = made.pictures[0]
    drawn = pictures.draw(one, tmp_path).read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "lance-memory, measured" in drawn
    assert pictures.is_drawn(one, tmp_path)
    other = replace(one, spec={**one.spec, "width": 1})
    assert not pictures.is_drawn(other, tmp_path)


def test_a_recorded_line_that_no_section_shows_is_refused():
    stray = Line(file="search_new", number=1, values={"bench": "something_new"})
    with pytest.raises(ValueError, match=r"no section shows 1 .*search_new:1 \(something_new\)"):
        page(Lines((*recorded(BENCH / "results").found, stray)))


def test_where_nothing_is_recorded_every_section_says_so():
    told = page(Lines(()))
    assert told.pictures == ()
    assert told.text.count("No line is recorded") >= len(SECTIONS)
    assert "| published |" in told.text


def test_the_summary_fits_on_a_screen_and_leads_to_lines_that_exist(made):
    summary = made.text.split("## ")[0]
    links = re.findall(r"\(results/(\w+)\.jsonl#L(\d+)\)", summary)
    assert 15 <= len([row for row in summary.splitlines() if row.startswith("|")]) <= 40
    for file, number in links:
        lines = (BENCH / "results" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()
        assert "bench" in json.loads(lines[int(number) - 1])


def test_a_missed_bar_stands_beside_the_summary_though_no_claim_names_it():
    values = {"bench": "search_after_a_pass", "ours_ms": 2.0, "raw_ms": 1.0, "ratio": 2.0}
    values |= {"ratio_q1": 1.9, "ratio_q3": 2.1, "bar": 1.1, "met": False}
    told = page(Lines((Line(file="curate", number=7, values=values),))).text.split("## ")[0]
    assert "not met: search after a pass ([curate:7](results/curate.jsonl#L7))." in told


def test_a_commit_has_a_plus_where_more_than_what_is_recorded_was_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(bench.origin, "ROOT", tmp_path)
    assert commit() is None
    code, line = tmp_path / "code.py", tmp_path / "bench" / "results" / "a.jsonl"
    line.parent.mkdir(parents=True)
    for file in (code, line):
        file.write_text("first")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    first = commit()
    assert re.fullmatch(r"[0-9a-f]{10}", first)
    line.write_text("measured again")
    assert commit() == first
    code.write_text("changed")
    assert commit() == f"{first}+"


def test_what_a_line_does_not_say_of_its_origin_is_told_as_not_recorded():
    bare = Line(
        file="growth", number=1, values={"bench": "growth", "rows": 10, "search_p50_ms": 1.0}
    )
    whole = replace(
        bare, values={**bare.values, "recall_at_10": 1.0, "build_s": 1, "build_peak_mb": 2}
    )
    full = {**whole.values, "search_rss_mb": 3, "seed": 7, **origin()}
    poor = {**whole.values, "search_rss_mb": 3}
    told = page(Lines((replace(bare, values=poor), replace(bare, number=2, values=full)))).text
    assert (
        "1 lines: Command: not recorded (`bench/growth.py` writes these lines) · data: not" in told
    )
    assert f"1 lines: Command: `{command()}` · data: made up from the seed · seed: 7 ·" in told


def test_every_published_figure_names_its_source():
    for one in (one for some in quality.published().values() for one in some):
        assert one["system"]
        assert one["source"]
        assert any(key.startswith("recall@") for key in one)


def test_the_page_is_written_beside_any_folder_of_lines(tmp_path, capsys):
    (tmp_path / "results").mkdir()
    line = {"bench": "embedder", "embedder": "MiniLM", "query_p50_ms": 2.5}
    (tmp_path / "results" / "embedders.jsonl").write_text(json.dumps(line) + "\n")
    assert main(["--folder", str(tmp_path)]) == 0
    assert (
        "| a question's embedding on the CPU, p50 ms | 2.5 |"
        in (tmp_path / "RESULTS.md").read_text()
    )
    assert capsys.readouterr().out.endswith("drew 0 pictures\n")


def test_a_script_that_fails_leaves_the_lines_that_are_there(tmp_path):
    there = tmp_path / "forget.jsonl"
    there.write_text('{"bench": "forget_tenant"}\n')
    broken = Script(name="forget", quick=("--rows", "many"))
    assert measure(broken, tmp_path, quick=True) == "it ended with 2"
    assert there.read_text() == '{"bench": "forget_tenant"}\n'
    assert [*tmp_path.iterdir()] == [there]


def test_what_needs_a_data_set_that_is_not_there_is_left_out_and_says_what_to_set(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("LANCE_MEMORY_LOCOMO", str(tmp_path / "nowhere.json"))
    assert missing(Script(name="locomo", needs="locomo")) == (
        "LoCoMo is not there: set LANCE_MEMORY_LOCOMO to the path of its locomo10.json"
    )
    assert missing(Script(name="search")) == ""


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="here it would run")
def test_what_is_left_out_is_said_and_is_no_failure(tmp_path, capfd):
    assert run(["--quick", "--only", "gpu", "--folder", str(tmp_path)]) == 0
    assert capfd.readouterr().out.endswith("left out: gpu (no CUDA device is here)\n")
    told = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "No line is recorded" in told
    assert "Their figures mean little" in told


def test_a_quick_run_never_writes_over_the_recorded_lines(capsys):
    with pytest.raises(SystemExit):
        run(["--quick", "--only", "gpu", "--folder", str(BENCH)])
    assert "would write over the recorded lines" in capsys.readouterr().err


def test_a_line_says_command_data_code_and_machine_without_the_folders_of_this_machine(
    tmp_path, monkeypatch
):
    monkeypatch.delenv(COMMAND, raising=False)
    monkeypatch.setattr("sys.argv", [str(BENCH / "locomo.py"), "--data", str(tmp_path / "a.json")])
    assert command() == "python bench/locomo.py --data a.json"
    assert for_children()[COMMAND] == command()
    (tmp_path / "a.json").write_text("[]")
    named = file_data("LoCoMo", tmp_path / "a.json")
    assert named == "LoCoMo, a.json (sha256 4f53cda18c2b)"
    try:
        about(data=named)
        told = origin()
    finally:
        about(data="made up from the seed")
    assert told["data"] == named
    assert told.keys() >= {
        "at",
        "command",
        "commit",
        "python",
        "system",
        "cpu",
        "cores",
        "memory_gb",
    }
