from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lance_memory.embed import LanceDBEmbedder, OpenAIEmbedder, SentenceTransformerEmbedder
from lance_memory.errors import MissingExtraError
from lance_memory.extras import require


def test_an_installed_module_is_imported() -> None:
    assert require("json") is json


def test_a_missing_module_of_an_extra_names_the_extra() -> None:
    with pytest.raises(
        MissingExtraError,
        match=r"'not_there'.*cannot be imported.*extra 'more': pip install 'lance-memory\[more\]'",
    ):
        require("not_there", "more")


def test_a_missing_dependency_says_to_install_again() -> None:
    with pytest.raises(MissingExtraError, match="install lance-memory again"):
        require("not_there")


def test_any_of_several_extras_will_do() -> None:
    with pytest.raises(MissingExtraError, match=r"extra 'one' or 'two': .*lance-memory\[one\]"):
        require("not_there", "one", "two")


def test_a_module_that_misses_a_library_of_the_system_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch does where a library of CUDA is not there."""
    (tmp_path / "broken_cuda.py").write_text("raise OSError('libcudart.so.12: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"'broken_cuda'.*libcudart.*\[gpu\]"):
        require("broken_cuda", "gpu")


def test_sentence_transformers_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = SentenceTransformerEmbedder("any")
    for call in (lambda: embedder.embed(["a"]), lambda: embedder.dimension):
        with pytest.raises(MissingExtraError, match=r"lance-memory\[sentence-transformers\]"):
            call()


def test_the_http_client_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtraError, match=r"lance-memory\[openai\]"):
        OpenAIEmbedder("any", dimension=3).embed(["a"])


def test_lancedb_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lancedb.embeddings", None)
    with pytest.raises(MissingExtraError, match=r"'lancedb\.embeddings'.*install lance-memory"):
        LanceDBEmbedder.from_registry("openai")
