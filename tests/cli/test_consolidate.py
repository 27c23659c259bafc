"""`lmem consolidate`: every way to give a transform, every bound, and what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

SERVICE = str(Path(__file__).parents[1] / "service")
if SERVICE not in sys.path:
    sys.path.append(SERVICE)

from service_kit import answering, running, says  # noqa: E402

SIMILAR = ["consolidate", "--min-similarity", "0.5", "--no-distinct"]

PROGRAM = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = " / ".join(memory["content"] for memory in asked["memories"])
    print(json.dumps({"id": asked["id"], "content": text}), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """A transform in another process."""
    file = tmp_path / "joiner.py"
    file.write_text(PROGRAM)
    return f"{sys.executable} {file}"


def derived(done):
    return [c["derived"]["content"] for c in done.json["clusters"] if c["derived"]]


def test_a_transform_is_named(lmem, store):
    for name, content in (
        ("latest", "the red kettle is really broken"),
        ("merge-lines", "the red kettle is broken\nthe red kettle is really broken"),
        ("extractive", "the red kettle is really broken"),
    ):
        done = lmem(*SIMILAR, "--transform", name, "--dry-run", "--format", "json")
        assert content in derived(done), done.err


def test_a_transform_is_a_function_of_a_module_beside(lmem, store, tmp_path):
    (tmp_path / "my_transform_of_a_test.py").write_text(
        "def joined(cluster):\n    return ' + '.join(m.content for m in cluster)\n"
    )
    name = "my_transform_of_a_test:joined"
    done = lmem(*SIMILAR, "--transform", name, "--dry-run", "--format", "json")
    assert "the red kettle is broken + the red kettle is really broken" in derived(done)


def test_a_transform_is_a_program(lmem, store, program):
    done = lmem(*SIMILAR, "--transform-cmd", program, "--yes", "--format", "json")
    assert done.code == 0, done.err
    found = lmem("list", "--source", "consolidated", "--format", "jsonl").lines
    assert "the red kettle is broken / the red kettle is really broken" in [
        memory["content"] for memory in found
    ]


@pytest.mark.parametrize("format", ["human", "json"])
def test_a_program_that_answers_for_no_cluster_fails_the_command(lmem, store, version, format):
    before = version()
    dead = f"{sys.executable} -c 1/0"
    done = lmem(*SIMILAR, "--transform-cmd", dead, "--yes", "--format", format)
    assert (done.code, done.out, version()) == (1, "", before)
    assert "left alone: the program ended with status 1" in done.err
    assert "error: all 2 clusters failed; nothing was written; the first: the pro" in done.err
    assert "ZeroDivisionError" in done.err


@pytest.mark.parametrize(
    ("otherwise", "head"),
    [("cluster[0].content", "version 5: consolidate, +1 ~2\n1 of 2"), ("None", "1 of 2")],
)
def test_what_failed_beside_others_is_told_once(lmem, store, tmp_path, otherwise, head):
    name = f"failing_once_for_a_test_{otherwise[0]}"
    (tmp_path / f"{name}.py").write_text(
        "def it(cluster):\n    if 'train' in cluster[0].content:\n        raise ValueError('no')\n"
        f"    return {otherwise}\n"
    )
    done = lmem(*SIMILAR, "--transform", f"{name}:it", "--yes", "--probes", "0")
    assert done.code == 0, done.err
    told = f"{head} clusters failed: it raised ValueError: no"
    assert done.out == (told if otherwise != "None" else f"{told}; version 4 stays") + "\n"


@pytest.mark.parametrize("retries", [0, 1])
def test_an_endpoint_is_tried_again_as_often_as_was_asked(lmem, store, retries):
    """By one policy: not so many times by the endpoint's own, for each try of the pass."""
    written = {"choices": [{"message": {"content": "the red kettle is broken"}}]}
    with running(answering(lambda body: written), path="/v1/chat/completions") as server:
        server.plan = [says(503)] * 9
        asked = ["--llm-url", server.url, "--llm-model", "m", "--retries", retries]
        done = lmem(*SIMILAR, *asked, "--dry-run", "--format", "json")
        assert done.code == 0, done.err
        assert len(server.requests) == 2 * (1 + retries)
    assert [f"at try {1 + retries} of" in c["reason"] for c in done.json["clusters"]] == [True] * 2


def test_all_or_nothing_fails_the_command(lmem, store, version):
    before = version()
    bad = ["--transform-cmd", f"{sys.executable} -c 1/0", "--on-failure", "all_or_nothing"]
    done = lmem(*SIMILAR, *bad, "--yes")
    assert (done.code, version()) == (1, before)
    assert "all or nothing was asked for; nothing was written" in done.err


def test_what_a_transform_drops_is_shown(lmem, store, tmp_path):
    (tmp_path / "dropping_for_a_test.py").write_text(
        "def it(cluster):\n    return 'the train leaves at nine' if 'train' in cluster[0].content "
        "else None\n"
    )
    done = lmem(*SIMILAR, "--transform", "dropping_for_a_test:it", "--dry-run")
    assert "dropped: Porto" in done.out
    assert "left alone: the transform left it alone" in done.out
    strict = ["--max-dropped", "0", "--transform", "dropping_for_a_test:it"]
    done = lmem(*SIMILAR, *strict, "--dry-run")
    assert "left alone: the transform dropped" in done.out


def test_recall_is_measured_unless_it_is_switched_off(lmem, store):
    done = lmem(*SIMILAR, "--dry-run", "--format", "json")
    assert done.json["recalled"]["probes"] > 0
    assert "recall: of" in lmem(*SIMILAR, "--dry-run").out
    done = lmem(*SIMILAR, "--probes", "0", "--dry-run", "--format", "json")
    assert done.json["recalled"] is None


def test_a_pass_ends_at_its_bounds(lmem, store):
    done = lmem(*SIMILAR, "--max-clusters", "1", "--dry-run", "--format", "json")
    assert (len(done.json["clusters"]), done.json["cut"]) == (
        1,
        "1 cluster was asked for, and 2 are there",
    )
    done = lmem(*SIMILAR, "--max-rows", "2", "--dry-run", "--format", "json")
    assert done.json["selected"] == 2


def test_a_saved_plan_of_a_program_is_applied_without_it(lmem, store, program, tmp_path):
    file = tmp_path / "plan.json"
    done = lmem(*SIMILAR, "--transform-cmd", program, "--dry-run", "--plan", file)
    assert done.code == 0, done.err
    plan = json.loads(file.read_text())
    assert lmem("apply", file, "--yes").code == 0
    for cluster in plan["clusters"]:
        assert lmem("get", cluster["derived"]["id"]).code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--transform", "nothing"], "there are: extractive, latest, merge-lines"),
        (["--transform", "no_such_module_here:x"], "no_such_module_here"),
        (["--transform-cmd", "no-such-program-here"], "no-such-program-here"),
        (["--transform", "latest", "--transform-cmd", "cat"], "give one of"),
        (["--llm-url", "http://localhost:1/v1"], "--llm-url needs --llm-model"),
        (["--llm-model", "m"], "need --llm-url"),
        (
            [
                "--llm-url",
                "http://localhost:1/v1",
                "--llm-model",
                "m",
                "--llm-key-env",
                "NOT_SET_1",
            ],
            "NOT_SET_1 is not set",
        ),
        (["--workers", "0"], "--workers 0"),
        (["--timeout", "0"], "--timeout 0"),
        (["--on-failure", "maybe"], "best_effort, all_or_nothing"),
        (["--method", "dbscan"], "greedy, components, average"),
        (["--max-loss", "2"], "--max-loss 2.0; it takes a number within 0..1"),
        (["--max-dropped", "-1"], "--max-dropped -1.0; it takes a number within 0..1"),
        (["--probes", "-1"], "--probes -1"),
        (["--max-seconds", "-1"], "--max-seconds -1.0; it takes seconds above 0"),
        (["--k", "0"], "--k 0"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_what_makes_no_sense_is_a_usage_error(lmem, store, version, words, message):
    before = version()
    done = lmem(*SIMILAR, *words, "--yes")
    assert (done.code, version()) == (2, before), done.err
    assert message in done.err
