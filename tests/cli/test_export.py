"""`lmem export`: training data from the command line."""

from __future__ import annotations

import json
import sys

import pytest

JOINER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = " + ".join(memory["content"] for memory in asked["memories"])
    print(json.dumps({"id": asked["id"], "content": text}), flush=True)
"""


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_tag_is_exported_the_same_again(lmem, store, tmp_path):
    words = ["--at", "start", "--validation", "0.3", "--seed", "4", "--group-by", "user"]
    first = lmem("export", "one", *words, "--format", "json")
    assert first.code == 0
    assert lmem("delete", "k0", "--yes").code == 0
    assert lmem("export", "two", *words).code == 0
    for name in ("train.jsonl", "validation.jsonl", "manifest.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert first.json["version"] == 3
    assert (
        first.json["content_hash"]
        == json.loads((tmp_path / "one" / "manifest.json").read_text())["content_hash"]
    )


def test_scope_and_filters_choose(lmem, store, tmp_path):
    assert lmem("export", "x.jsonl", "--user", "ann", "--tag", "odd").code == 0
    assert [row["text"] for row in lines(tmp_path / "x.jsonl")] == [
        "the red kettle is really broken",
        "the train to Porto leaves at nine",
    ]


def test_every_option_reaches_the_manifest(lmem, store, tmp_path):
    (tmp_path / "eval.txt").write_text("the train leaves at nine\n")
    done = lmem(
        "export", "out", "--as", "chat", "--file-type", "parquet", "--group-by", "user",
        "--min-similarity", "0.8", "--across", "session", "--across", "run", "--max-turns", "4",
        "--margin", "0.2", "--validation", "0.25", "--seed", "9", "--evaluation", "eval.txt",
        "--ngram", "8", "--similarity", "0.9", "--min-quality", "0.1", "--format", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())["parameters"]
    sha256 = told["evaluation"].pop("sha256")
    assert told == {
        "format": "chat", "group_by": "user", "min_similarity": 0.8,
        "across": ["session", "run"], "max_turns": 4, "margin": 0.2,
        "validation": 0.25, "seed": 9,
        "evaluation": {"texts": 1, "ngram": 8, "similarity": 0.9},
    }  # fmt: skip
    assert len(sha256) == 64
    assert [file["name"] for file in done.json["files"]] == ["train.parquet", "validation.parquet"]


def test_duplicates_are_kept_or_merged_when_asked(lmem, store, tmp_path):
    assert lmem("add", "bob likes pears", "--user", "bob", "--session", "x").code == 0
    assert lmem("export", "all.jsonl", "--keep-duplicates", "--user", "bob").code == 0
    assert len(lines(tmp_path / "all.jsonl")) == 2
    words = ["--user", "bob", "--transform", "extractive", "--format", "json"]
    done = lmem("export", "one.jsonl", *words)
    assert (done.json["counts"]["merged"], len(lines(tmp_path / "one.jsonl"))) == (1, 1)


def test_near_duplicates_of_two_scopes_stay_apart_where_none_is_crossed(lmem, store, tmp_path):
    words = ["--role", "guest", "--format", "json"]
    for user in ("cid", "dan"):
        lmem("add", "the gate is shut", "--user", user, "--role", "guest")
    assert lmem("export", "a.jsonl", *words).json["counts"]["examples"] == 1
    apart = lmem("export", "b.jsonl", "--across", "none", *words)
    assert apart.json["counts"]["examples"] == 2
    assert lmem("export", "c.jsonl", "--across", "user", *words).json["counts"]["examples"] == 1


def test_near_duplicates_are_merged_by_a_program(lmem, store, tmp_path):
    program = tmp_path / "joiner.py"
    program.write_text(JOINER)
    command = f"{sys.executable} {program}"
    done = lmem(
        "export", "x.jsonl", "--min-similarity", "0.5", "--transform-cmd", command, "--workers", "2",
        "--user", "ann", "--format", "json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.json["counts"]["merged"] == 2
    texts = [row["text"] for row in lines(tmp_path / "x.jsonl")]
    assert "the red kettle is broken + the red kettle is really broken" in texts


def test_an_evaluation_text_is_kept_out(lmem, store, tmp_path):
    (tmp_path / "eval.jsonl").write_text('{"question": "Bob likes pears!"}\n')
    done = lmem("export", "x.jsonl", "--evaluation", "eval.jsonl", "--format", "json")
    assert [c["by"] for c in done.json["contaminations"]] == ["ngram"]
    assert "bob likes pears" not in [row["text"] for row in lines(tmp_path / "x.jsonl")]
    done = lmem("export", "y.jsonl", "--evaluation", "eval.jsonl", "--ngram", "0")
    assert (done.code, "ngram, similarity or both" in done.err) == (2, True)


def test_a_dry_run_writes_nothing(lmem, store, tmp_path):
    before = sorted(tmp_path.iterdir())
    done = lmem("export", "out", "--dry-run")
    assert (done.code, done.err) == (0, "dry run: nothing was written\n")
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_there_is_replaced_only_with_overwrite(lmem, store, tmp_path):
    assert lmem("export", "out").code == 0
    again = lmem("export", "out")
    assert (again.code, "has an export already" in again.err) == (2, True)
    assert lmem("export", "out", "--overwrite").code == 0


def test_the_files_are_named(lmem, store, tmp_path):
    for words, names in (
        (["a/b"], ["a/b/train.jsonl"]),
        (["x.parquet"], ["x.parquet"]),
        (["s", "--validation", "0.5"], ["s/train.jsonl", "s/validation.jsonl"]),
    ):
        done = lmem("export", *words, "--format", "quiet")
        assert done.out.splitlines() == names
        assert all((tmp_path / name).is_file() for name in names)


def test_a_human_sees_what_went_and_what_stayed(lmem, store):
    out = " ".join(lmem("export", "out", "--min-similarity", "-1", "--dry-run").out.split())
    assert "out/train.jsonl" in out
    assert "considered 5 memories, 5 groups" in out
    assert "found 5 examples" in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["x.jsonl", "--validation", "0.1"], 2, "a split makes two"),
        (["x", "--as", "sft"], 2, "--as 'sft'; there are: plain, chat, preference"),
        (["x", "--file-type", "csv"], 2, "--file-type 'csv'; there are: jsonl, parquet"),
        (["x", "--group-by", "team"], 2, "--group-by 'team'; there are: tenant, user"),
        (["x", "--across", "team"], 2, "--across 'team'; there are: tenant, user"),
        (["x", "--across", "none", "--across", "user"], 2, "--across 'none'; there are"),
        (["x", "--min-similarity", "2"], 2, "--min-similarity 2.0"),
        (["x", "--max-turns", "1"], 2, "--max-turns 1"),
        (["x", "--transform", "latest", "--transform-cmd", "cat"], 2, "give one of --transform"),
        (["x", "--transform", "nothing"], 2, "no transform 'nothing'"),
        (["x", "--as", "chat", "--transform", "latest"], 2, "makes one text of near-duplicates"),
        (["x", "--evaluation", "missing.txt"], 3, "missing.txt"),
        (["x", "--similarity", "0.9"], 2, "--similarity needs --evaluation FILE"),
        (["x", "--validation", "1"], 2, "--validation 1.0; it takes a number within 0..1, not 1"),
        (["x", "--at", "nowhere"], 3, "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(lmem, store, tmp_path, words, code, message):
    done = lmem("export", *words)
    assert (done.code, message in " ".join(done.err.split())) == (code, True), done.err
    assert not (tmp_path / "x").exists()


def test_what_comes_out_empty_is_told(lmem, store):
    words = ["export", "a", "--validation", "0.001", "--group-by", "tenant"]
    assert "note: no group fell on the validation side; of " in lmem(*words).err
    assert "validation side" not in lmem("export", "b").err
    assert "note: no pair was found; a pair is " in lmem("export", "c", "--as", "preference").err
    again = lmem("export", "c", "--as", "preference")
    assert (again.code, "or overwrite it with --overwrite" in again.err) == (2, True)
