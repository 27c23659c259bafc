from __future__ import annotations

import subprocess
import sys
from urllib.parse import quote

import lance
import numpy as np
import pyarrow as pa
import pytest

from lance_memory import (
    EmbeddingError,
    FunctionEmbedder,
    InvalidInputError,
    MemoryStore,
    NotFoundError,
    StorageError,
    StoreFormatError,
)
from lance_memory.record.schema import SCHEMA_VERSION, StoreFormat, arrow_schema


def test_a_store_that_is_opened_again_has_what_was_written(store, reopen):
    stored = store.add("The kettle is on the second shelf.")
    again = reopen(store.uri)
    assert again.list() == store.list()
    assert again.get(stored.id).content == "The kettle is on the second shelf."
    assert again.version == stored.version


@pytest.mark.disk
def test_a_store_is_made_with_its_parent_directories(tmp_path, reopen):
    store = reopen(tmp_path / "a" / "b" / "store")
    assert store.uri == str(tmp_path / "a" / "b" / "store")
    assert store.list() == []


def test_opening_with_create_off_finds_nothing_and_makes_nothing(tmp_path, reopen):
    with pytest.raises(NotFoundError, match=r"no store at .*absent; make one"):
        reopen(tmp_path / "absent", create=False)
    assert not (tmp_path / "absent").exists()


def test_opening_with_create_off_opens_what_is_there(store, reopen):
    assert reopen(store.uri, create=False).version == store.version


@pytest.mark.disk
def test_a_file_uri_names_the_local_directory(tmp_path, reopen):
    store = reopen(f"file://{quote(str(tmp_path))}/a%20store/")
    store.add("Over a scheme.")
    assert store.uri == str(tmp_path / "a store")
    assert [m.content for m in reopen(tmp_path / "a store").list()] == ["Over a scheme."]
    assert store.stats().bytes > 0
    with pytest.raises(InvalidInputError, match=r"write file:///a/path"):
        reopen("file://relative")


@pytest.mark.disk
def test_the_home_directory_is_expanded(tmp_path, reopen, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert reopen("~/memories").uri == str(tmp_path / "memories")


@pytest.mark.disk
def test_a_file_is_no_store(tmp_path, reopen):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreFormatError, match="is a file; a store is a directory"):
        reopen(tmp_path / "file")


@pytest.mark.disk
def test_a_directory_with_other_things_is_no_store(tmp_path, reopen):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(StoreFormatError, match=r"holds other files and no store; name an empty"):
        reopen(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.disk
def test_a_lance_table_without_our_metadata_is_no_store(tmp_path, reopen):
    lance.write_dataset(pa.table({"id": ["a"]}), tmp_path / "memories.lance")
    with pytest.raises(StoreFormatError, match=r"not one of lance-memory's.*open the directory"):
        reopen(tmp_path)


@pytest.mark.disk
@pytest.mark.parametrize("create", [True, False])
def test_a_store_of_a_later_release_is_refused(tmp_path, reopen, create):
    fmt = StoreFormat(embedding_model="words-16", dimension=16, schema_version=SCHEMA_VERSION + 1)
    lance.write_dataset(arrow_schema(fmt).empty_table(), tmp_path / "memories.lance")
    with pytest.raises(
        StoreFormatError,
        match=rf"schema version {SCHEMA_VERSION + 1}; this release reads up to {SCHEMA_VERSION}",
    ):
        reopen(tmp_path, create=create)


@pytest.mark.parametrize(("name", "dimension"), [("other", 16), ("words-16", 8)])
def test_an_embedder_of_another_model_is_refused(store, reopen, name, dimension):
    other = FunctionEmbedder(
        lambda texts: np.ones((len(texts), dimension)), name=name, dimension=dimension
    )
    with pytest.raises(StoreFormatError, match=rf"model 'words-16' \(16 .*is '{name}'"):
        reopen(store.uri, embedder=other)


def test_a_callable_is_an_embedder(tmp_path):
    def constant(texts):
        return np.ones((len(texts), 4))

    store = MemoryStore.open(tmp_path / "store", embedder=constant)
    store.add("A text.")
    assert (store.stats().embedding_model, store.stats().dimension) == ("constant", 4)


def test_without_the_stores_embedder_words_and_given_vectors_still_work(store, embedder, access):
    store.add("The kettle is on the shelf.")
    bare = MemoryStore.open(store.uri, **access)
    found = bare.search("kettle")
    assert [hit.memory.content for hit in found] == ["The kettle is on the shelf."]
    assert "words-16" in found.degraded["vector"]
    assert len(bare.search(vector=embedder.embed(["kettle"])[0])) == 1
    bare.add("With a vector.", embedding=[1.0] * 16)
    with pytest.raises(EmbeddingError, match="open the store with embedder="):
        bare.add("Without a vector.")
    assert bare.count() == 2


def test_an_unknown_branch_is_not_found(store, reopen):
    with pytest.raises(NotFoundError, match="branch 'nope'"):
        reopen(store.uri, branch="nope")


def test_a_naive_clock_is_refused(tmp_path, reopen, clock):
    store = reopen(tmp_path / "store", clock=lambda: clock().replace(tzinfo=None))
    with pytest.raises(InvalidInputError, match=r"clock\(\)=.* has no time zone"):
        store.add("A text.")


def test_the_author_of_a_handle_is_in_the_log(store, reopen):
    reopen(store.uri, author="ada").add("A text.")
    assert [entry.actor for entry in store.log()] == ["ada"]


@pytest.mark.disk
def test_a_path_under_a_file_cannot_become_a_store(tmp_path, reopen):
    (tmp_path / "file").write_text("x")
    with pytest.raises((StorageError, StoreFormatError), match=r"file/store"):
        reopen(tmp_path / "file" / "store")


@pytest.mark.disk
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_place_that_cannot_be_written_to_is_a_storage_error(reopen):
    with pytest.raises(StorageError, match="/proc/store"):
        reopen("/proc/store")


def test_a_handle_shows_where_it_is(store):
    assert repr(store) == f"<MemoryStore {store.uri} version {store.version} scope (all)>"
    assert store.branch_name == "main"


def test_ordinary_use_emits_no_warning(tmp_path):
    program = """
import sys
import numpy as np
from lance_memory import FunctionEmbedder, MemoryStore
ones = FunctionEmbedder(lambda t: np.ones((len(t), 4)), name="ones", dimension=4)
store = MemoryStore.open(sys.argv[1], embedder=ones)
store.add("one", user="a"); store.upsert("two", key="k"); store.update("k", content="three")
store.search("one")
store.optimize(); store.stats(); store.log(upkeep=True); store.sql("SELECT id FROM memories")
store.rollback(3); store.search("one"); store.add("after")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("upkeep", [True, 5, "x", {}])
def test_what_is_no_upkeep_is_refused_before_anything_is_made(tmp_path, reopen, upkeep):
    with pytest.raises(InvalidInputError, match="upkeep"):
        reopen(tmp_path / "store", upkeep=upkeep)
    assert not (tmp_path / "store").exists()


@pytest.mark.disk
def test_a_store_that_lost_its_versions_is_not_made_anew(tmp_path, reopen):
    store = reopen(tmp_path / "store", upkeep=None)
    store.add("hello")
    versions = tmp_path / "store" / "memories.lance" / "_versions"
    versions.rename(tmp_path / "_versions")
    for create in (True, False):
        with pytest.raises(StoreFormatError, match="no version of them"):
            reopen(tmp_path / "store", create=create)
    (tmp_path / "_versions").rename(versions)
    assert reopen(tmp_path / "store").count() == 1
