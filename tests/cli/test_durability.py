"""`--durability`, and a store that a power cut has torn."""

from __future__ import annotations

from lance_memory import MemoryStore


def test_durability_is_an_option_and_a_variable_of_the_environment(lmem, tmp_path, monkeypatch):
    store = str(tmp_path / "store")
    assert lmem("init", "--store", store).code == 0
    assert lmem("add", "one", "--store", store, "--durability", "power").code == 0
    monkeypatch.setenv("LMEM_DURABILITY", "power")
    assert lmem("add", "two", "--store", store).code == 0
    refused = lmem("add", "three", "--store", store, "--durability", "ram")
    assert (refused.code, "--durability 'ram'" in refused.err) == (2, True)


def test_a_torn_store_is_read_with_a_warning_and_refuses_writes(lmem, tmp_path):
    store = str(tmp_path / "store")
    lmem("init", "--store", store)
    lmem("add", "kept", "--store", store)
    last = MemoryStore.open(store).version
    lmem("add", "torn", "--store", store)
    (tmp_path / f"store/memories.lance/_versions/{2**64 - 2 - last}.manifest").write_bytes(b"")
    read = lmem("list", "--store", store, "--format", "json")
    assert [memory["content"] for memory in read.json] == ["kept"]
    assert f"warning: {store}: opened at version {last}, because version {last + 1}" in read.err
    refused = lmem("add", "more", "--store", store)
    assert (refused.code, "lmem doctor --fix" in refused.err) == (1, True)
