"""An export at a tag is the same bytes, whatever is written later and wherever it is made."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from lance_memory import ExportFormat, ExportOptions

SESSIONS = 6


def talk(number):
    said = [
        ("user", f"where is item{number} kept", None),
        ("assistant", f"shelf{number} of room 17", 0.1),
        ("assistant", f"shelf{number} of room 34, behind door{number}", 0.9),
        ("user", f"thanks from visitor{number}", None),
    ]
    return [
        {"content": text, "role": role, "quality": rated, "session": f"s{number}", "user": "ann"}
        for role, text, rated in said
    ]


@pytest.fixture
def tagged(store, clock):
    for number in range(SESSIONS):
        store.add_many(talk(number))
    store.upsert("the key is under the mat", key="key", session="s1", user="ann", role="assistant")
    store.upsert("the key hangs on a hook", key="key", session="s1", user="ann", role="assistant")
    store.add("gone tomorrow", session="s9", expires_at=clock.now + timedelta(hours=1))
    store.tag("data-1")
    return store


def written(directory):
    return {path.name: path.read_bytes() for path in sorted(Path(directory).iterdir())}


def changed(store, clock):
    """Later writes of every kind."""
    clock.forward(days=3)
    store.add_many(talk(50))
    store.retire(session="s2", reason="old")
    store.update(store.list(session="s3")[0].id, content="rewritten")
    store.delete(session="s4")
    store.tag("data-2")


@pytest.mark.parametrize("form", list(ExportFormat))
@pytest.mark.parametrize("file_type", ["jsonl", "parquet"])
def test_later_writes_and_upkeep_change_no_byte(tagged, clock, tmp_path, form, file_type):
    options = ExportOptions(format=form, file_type=file_type, validation=0.4)
    first = tagged.at("data-1").export(tmp_path / "first", options)
    changed(tagged, clock)
    again = tagged.at("data-1").export(tmp_path / "again", options)
    tagged.optimize()
    last = tagged.at("data-1").export(tmp_path / "last", options)
    assert first == again == last
    assert written(tmp_path / "first") == written(tmp_path / "again") == written(tmp_path / "last")
    assert tagged.export(tmp_path / "now", options).content_hash != first.content_hash


def test_a_moment_names_what_a_live_export_wrote(tagged, clock, tmp_path):
    live = tagged.export(tmp_path / "live")
    changed(tagged, clock)
    again = tagged.at(live.at).export(tmp_path / "again")
    assert written(tmp_path / "live") == written(tmp_path / "again")
    assert again.version == live.version


def test_expiry_is_decided_at_the_moment_of_the_view(tagged, clock, tmp_path):
    assert "gone tomorrow" in texts(tagged.at("data-1"), tmp_path / "then.jsonl")
    clock.forward(days=2)
    assert "gone tomorrow" in texts(tagged.at("data-1"), tmp_path / "still.jsonl")
    assert "gone tomorrow" not in texts(tagged, tmp_path / "now.jsonl")


def texts(view, path):
    view.export(path)
    return [json.loads(line)["text"] for line in path.read_text().split("\n") if line]


def test_another_process_and_place_write_the_same_bytes(tagged, tmp_path):
    options = ExportOptions(validation=0.3, group_by="session")
    tagged.at("data-1").export(tmp_path / "here", options)
    moved = shutil.copytree(tmp_path / "store", tmp_path / "moved")
    code = f"""
import numpy as np
from lance_memory import ExportOptions, FunctionEmbedder, MemoryStore
embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), 16)), name="words-16", dimension=16)
store = MemoryStore.open({str(moved)!r}, embedder=embedder)
store.at("data-1").export({str(tmp_path / "there")!r}, ExportOptions(validation=0.3))
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONHASHSEED": "7"})
    assert written(tmp_path / "here") == written(tmp_path / "there")


def test_a_rehearsal_gives_the_manifest_of_the_run(tagged, tmp_path):
    view = tagged.at("data-1")
    for name in ("files", "one.jsonl", "one.parquet"):
        rehearsed = view.export(tmp_path / name, dry_run=True)
        assert not (tmp_path / name).exists()
        assert rehearsed == view.export(tmp_path / name)


def test_the_manifest_accounts_for_the_files(tagged, tmp_path):
    options = ExportOptions(validation=0.4, seed=3)
    made = tagged.at("data-1").export(tmp_path / "out", options, user="ann", kinds="episodic")
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    lines = []
    for file in told["files"]:
        data = (tmp_path / "out" / file["name"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
        assert data.count(b"\n") == file["examples"]
        lines += [json.loads(line) for line in data.splitlines()]
    assert told["source_ids"] == sorted(i for line in lines for i in line["metadata"]["sources"])
    assert len(lines) == told["counts"]["examples"] == SESSIONS * 4 + 1
    assert told["version"] == tagged.tags()["data-1"] == made.version
    assert (told["scope"], told["filter"]) == (
        {"user": "ann"},
        {"kinds": ["episodic"], "states": "visible"},
    )
    assert told["parameters"]["seed"] == 3
    assert made.to_json() == (tmp_path / "out" / "manifest.json").read_text()


def test_the_content_hash_is_that_of_the_lines_whatever_the_split_and_the_file(tagged, tmp_path):
    view = tagged.at("data-1")
    whole = view.export(tmp_path / "a.jsonl")
    assert hashlib.sha256((tmp_path / "a.jsonl").read_bytes()).hexdigest() == whole.content_hash
    hashes = {
        view.export(tmp_path / "b.parquet").content_hash,
        view.export(tmp_path / "c", ExportOptions(validation=0.4)).content_hash,
    }
    assert hashes == {whole.content_hash}


def test_examples_stand_in_the_order_of_their_group_then_time(store, tmp_path):
    for session, content in [("b", "first"), ("a", "second"), ("b", "third"), ("", "fourth")]:
        store.add(content, session=session)
    assert texts(store, tmp_path / "x.jsonl") == ["first", "third", "second", "fourth"]
