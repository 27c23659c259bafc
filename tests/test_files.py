"""Files that are whole, or as they were."""

from __future__ import annotations

import os
import subprocess

import pytest
from forked import Forked

from lance_memory.files import make_private, write_whole

OLD, NEW = "old\n", "new: \u00e9\u2028\n" * 3


def names(path):
    return sorted(p.name for p in path.iterdir())


def test_a_file_is_made_and_replaced(tmp_path):
    path = tmp_path / "plan.json"
    for text in (OLD, NEW):
        write_whole(path, text)
        assert path.read_bytes() == text.encode()
    assert names(tmp_path) == ["plan.json"]


def test_what_is_new_is_for_its_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        write_whole(tmp_path / "file", NEW)
        make_private(tmp_path / "a" / "b")
        make_private(tmp_path / "a")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"file": 0o600, "a": 0o777, "b": 0o700}


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    path, link = tmp_path / "plan.json", tmp_path / "link"
    path.write_text(OLD)
    path.chmod(0o640)
    link.symlink_to("plan.json")
    write_whole(link, NEW)
    assert link.is_symlink()
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == (NEW, 0o640)


def test_what_is_no_file_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write_whole(pipe, NEW)
        assert reader.communicate(timeout=60)[0] == NEW.encode()
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("text", ["lone \ud800", NEW])
def test_a_failure_leaves_the_file_as_it_was_and_names_it(tmp_path, text):
    path = tmp_path / "plan.json"
    write_whole(path, OLD)
    if text == NEW:
        missing = tmp_path / "missing" / "plan.json"
        with pytest.raises(FileNotFoundError, match=r"'[^']*missing/plan\.json'"):
            write_whole(missing, text)
    else:
        with pytest.raises(UnicodeEncodeError):
            write_whole(path, text)
    assert (names(tmp_path), path.read_text()) == (["plan.json"], OLD)


KILLED = """
import pathlib, sys
from lance_memory.files import make_private, write_whole
path, number = pathlib.Path(sys.argv[1]), 0
print("ready", flush=True)
while True:
    number = (number + 1) % 10
    write_whole(path, str(number) * 500_000)
"""


def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "plan.json"
    write_whole(path, "0" * 500_000)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    for number in range(4):
        with Forked(script, path) as child:
            assert child.stdout.readline() == "ready\n"
            for _ in range(20 * number):
                text = path.read_text()
                assert len(text) == 500_000
                assert len(set(text)) == 1
            child.kill()
        text = path.read_text()
        assert (len(text), len(set(text))) == (500_000, 1)
