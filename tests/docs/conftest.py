"""Places to run the blocks of pages in; `lmem` in them is the real one, forked from a warm process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
if str(HERE) not in sys.path:  # for the plain modules of this folder
    sys.path.append(str(HERE))

import pages  # noqa: E402


@pytest.fixture(scope="session")
def lmem_server(tmp_path_factory):
    """The socket of a process that runs `lmem`; started by the first page that asks."""
    path = str(tmp_path_factory.mktemp("server") / "socket")
    environment = {**os.environ, "PYTHONWARNINGS": "ignore:lance is not fork-safe"}
    command = [sys.executable, str(HERE / "lmem_server.py"), path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield path
        process.kill()


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A directory with `lmem` for the PATH of shells."""
    directory = tmp_path_factory.mktemp("programs")
    program = directory / "lmem"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {HERE / "lmem_client.py"} "$@"\n')
    program.chmod(0o755)
    return directory


@pytest.fixture
def place(tmp_path, monkeypatch, lmem_server, programs):
    """An empty directory where a page runs, and where this process is meanwhile."""
    made = pages.place(tmp_path, server=lmem_server, programs=programs)
    monkeypatch.chdir(made.directory)
    return made
