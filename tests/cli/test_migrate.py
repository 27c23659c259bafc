"""An earlier schema, and another embedding model, on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

EARLIER = Path(__file__).parents[1] / "data" / "stores" / "schema-1"
MODELS = """
import zlib
import numpy as np
from lance_memory import FunctionEmbedder

def embed(texts):
    seeds = [[zlib.crc32(word.encode()) for word in text.lower().split()] for text in texts]
    return [sum(np.random.default_rng(s).standard_normal(8) for s in words) for words in seeds]

words_8 = FunctionEmbedder(embed, name="words-8", dimension=8)

class Sixteen:
    name, dimension = "words-16", 16

    def embed(self, texts):
        found = np.asarray(embed(texts), np.float32)
        return np.concatenate([found, found], axis=1)
"""


@pytest.fixture
def earlier(tmp_path):
    """A copy of the store of schema 1 where `lmem` looks, and a module of embedders."""
    (tmp_path / "models_of_a_test.py").write_text(MODELS, encoding="utf-8")
    return shutil.copytree(EARLIER, tmp_path / "memory")


def test_an_earlier_store_is_read_and_refused_until_it_is_migrated(lmem, earlier):
    assert len(lmem("list", "--format", "json").json) == 25
    for words in (["retire", "k5", "--yes"], ["tag", "here"], ["rollback", "start", "--yes"]):
        done = lmem(*words)
        assert (done.code, "until `lmem migrate` has" in done.err) == (1, True)
    plan = lmem("migrate", "--dry-run", "--format", "json")
    assert [s["version"] for s in plan.json["steps"]] == [None]
    assert "dry run: nothing was written" in plan.err
    unconfirmed = lmem("migrate")
    assert (unconfirmed.code, "not confirmed" in unconfirmed.err) == (2, True)
    assert lmem("tag", "here").code == 1
    assert "give the store an id" in lmem("migrate", "--dry-run").out
    done = lmem("migrate", "--yes", "--author", "olga", "--format", "quiet")
    assert (done.code, done.out, done.err) == (0, "21\n", "")
    assert lmem("retire", "k5", "--yes").code == 0
    told = lmem("log", "--format", "json").json[1]
    assert (told["operation"], told["actor"]) == ("migrate", "olga")


def test_a_store_that_is_up_to_date_needs_no_confirmation(lmem, store, version):
    before = version()
    done = lmem("migrate")
    assert (done.code, done.out, "is up to date" in done.err) == (
        0,
        "schema 2: nothing to do\n",
        True,
    )
    assert version() == before


def test_the_model_is_changed_and_then_named_for_commands_that_embed(lmem, earlier):
    lmem("migrate", "--yes")
    model = "models_of_a_test:Sixteen"
    plan = lmem("reembed", "--model", model, "--dry-run", "--format", "json").json
    assert (plan["former_model"], plan["model"], plan["rows"]) == ("words-8", "words-16", 36)
    assert lmem("reembed", "--model", model).code == 2
    done = lmem("reembed", "--model", model, "--yes", "--reason", "finer", "--format", "json")
    answer = json.loads(done.out)
    assert (answer["dimension"], answer["rows"], answer["embedded"]) == (16, 36, 34)
    assert answer["tag"] in lmem("tag", "--format", "json").json
    blind = lmem("search", "red kettle", "--mode", "vector")
    assert (blind.code, "embedder=... of that model" in blind.err) == (1, True)
    found = lmem("search", "red kettle", "--mode", "vector", "--embedder", model)
    assert (found.code, "kettle" in found.out) == (0, True)
    wrong = lmem("list", "--embedder", "models_of_a_test:words_8")
    assert (wrong.code, "lmem reembed --model NAME" in wrong.err) == (1, True)
    entry = lmem("log", "--format", "json").json[0]
    assert (entry["operation"], entry["reason"]) == ("reembed", "finer")
    back = lmem("reembed", "--model", "models_of_a_test:words_8", "--yes", "--format", "json").json
    assert (back["embedded"], back["taken"]) == (0, 34)


@pytest.mark.parametrize("form", ["human", "json", "jsonl", "quiet"])
def test_a_change_of_the_model_is_told_in_every_format(form, lmem, earlier):
    lmem("migrate", "--yes")
    words = ["reembed", "--model", "models_of_a_test:Sixteen", "--yes", "--format", form]
    done = lmem(*words)
    again = lmem(*words)
    assert (done.code, again.code) == (0, 0)
    told = {"human": "tag before-reembed-v21", "quiet": "22\n"}.get(form, "before-reembed-v21")
    assert told in done.out
    if form != "quiet":
        assert "are from the model words-16 already" in again.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no embedder 'nothing'; there are: minilm"),
        ("no_such_module_here:embed", "no module 'no_such_module_here'"),
        ("models_of_a_test:absent", "has no 'absent'"),
        ("models_of_a_test:MODELS", "has no 'MODELS'"),
    ],
)
def test_a_model_that_is_none_is_refused(name, message, lmem, earlier):
    done = lmem("reembed", "--model", name, "--yes")
    assert (done.code, message in done.err) == (2, True), done.err
