"""The public names: each from its room when it is first used, in whatever thread that is."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lance_memory

AT_ONCE = """
import threading
import lance_memory
names = ["MemoryStore", "IndexReport", "Retain", "Mode", "Agent", "Quotas", "MergePlan", "Provider"]
failed, ready = [], threading.Barrier(len(names))

def take(name):
    ready.wait()
    try:
        getattr(lance_memory, name)
    except Exception as error:
        failed.append(f"{name}: {error!r}")

threads = [threading.Thread(target=take, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(60)
print(failed)
"""


def test_threads_that_take_their_first_names_at_once_get_them():
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False, timeout=90
        )
        assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_name_is_there_and_no_other():
    assert all(getattr(lance_memory, name) is not None for name in lance_memory.__all__)
    assert set(lance_memory.__all__) <= set(dir(lance_memory))
    with pytest.raises(
        AttributeError, match="module 'lance_memory' has no attribute 'MemroyStore'"
    ):
        _ = lance_memory.MemroyStore
    with pytest.raises(ImportError, match="cannot import name 'MemroyStore'"):
        exec("from lance_memory import MemroyStore")


def test_a_room_is_not_imported_before_it_is_needed():
    code = "import lance_memory, sys; print(sum(name.startswith('lance_memory.') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
