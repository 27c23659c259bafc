from __future__ import annotations

import json
import sys

import pytest

from lance_memory.embed import LanceDBEmbedder, OpenAIEmbedder, SentenceTransformerEmbedder
from lance_memory.embed.require import require
from lance_memory.errors import MissingExtraError


def test_an_installed_module_is_imported() -> None:
    assert require("json") is json


def test_a_missing_module_of_an_extra_names_the_extra() -> None:
    with pytest.raises(
        MissingExtraError,
        match=r"'not_there'.*cannot be imported.*extra 'more': pip install 'lance-memory\[more\]'",
    ):
        require("not_there", extra="more")


def test_a_missing_dependency_says_to_install_again() -> None:
    with pytest.raises(MissingExtraError, match="Install lance-memory again"):
        require("not_there")


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
    with pytest.raises(MissingExtraError, match=r"'lancedb\.embeddings'.*Install lance-memory"):
        LanceDBEmbedder.from_registry("openai")
