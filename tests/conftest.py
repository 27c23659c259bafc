"""What the tests share: a small embedder, a clock that ticks, and a real store in tmp_path.

With `--store-on s3` the shared stores are in the bucket of an S3 server on this machine, and the
tests that are about a local directory (mark `disk`) are left out.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

# A worker for each core: threads of their own would only stand in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from lance_memory import FunctionEmbedder, MemoryStore

# How long an example takes says how busy the machine is.
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")

DIMENSION = 16
START = datetime(2025, 1, 1, tzinfo=UTC)

SOAKS = "SOAK_SECONDS" in os.environ
"""Whether `make soak` runs this: then tests that take minutes have their turn too."""

S3_SERVER = Path(__file__).parent / "remote" / "s3_server.py"
CHILDREN = str(Path(__file__).parent / "children")
if CHILDREN not in sys.path:  # for `from forked import Forked`
    sys.path.append(CHILDREN)


def pytest_addoption(parser):
    parser.addoption("--store-on", choices=("disk", "s3"), default="disk")


def pytest_collection_modifyitems(config, items):
    if not SOAKS:
        long = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in set(long)]
    if config.getoption("--store-on") != "disk":
        elsewhere = pytest.mark.skip(reason="about a local directory")
        for item in items:
            if item.get_closest_marker("disk"):
                item.add_marker(elsewhere)


class S3:
    """An S3 server process of its own, which ends with this one. Its objects are in its memory."""

    def __init__(self):
        pipe = subprocess.PIPE
        command = [sys.executable, str(S3_SERVER)]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.options = {
            "aws_access_key_id": "key-of-the-tests",
            "aws_secret_access_key": "secret-of-the-tests",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
        }

    def bucket(self, name):
        """The URI of the bucket of that name, which is made where there is none."""
        made = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(made, timeout=60).close()
        return f"s3://{name}"

    def stop(self):
        with self.process as process:
            process.kill()


@pytest.fixture(scope="session")
def s3():
    """An S3 server on this machine; started by the first test that asks."""
    server = S3()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """A Redis server process on this machine, started by the first test that asks; keeps nothing.

    Tests add `?prefix=` and a name of their own, and so do not meet.
    """
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server; Debian has it in the package redis-server")
    directory = tmp_path_factory.mktemp("redis")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"port": port, "bind": "127.0.0.1", "dir": directory, "save": "", "appendonly": "no"}
    command = [program]
    for name, value in settings.items():
        command += [f"--{name}", str(value)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


def _wait_for(port, process):
    for _ in range(600):
        assert process.poll() is None, "redis-server ended at once"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("redis-server did not listen within 30 s")


class TickingClock:
    """One second later at each look, from 2025-01-01 UTC on."""

    def __init__(self, start=START):
        self.now = start

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now

    def forward(self, **delta):
        """Let time pass, and return the new moment."""
        self.now += timedelta(**delta)
        return self.now


@cache
def _direction(word):
    return np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION)


def embed_words(texts):
    """Float64 [n, 16]: the sum of a fixed direction for each word, so shared words mean near."""
    return np.stack([sum(map(_direction, text.casefold().split())) for text in texts])


@pytest.fixture(scope="session")
def embedder():
    """Deterministic; texts of the same words have cosine 1, texts that share words are near."""
    return FunctionEmbedder(embed_words, name="words-16", dimension=DIMENSION)


@pytest.fixture(scope="session")
def ticking():
    """The clock's class, for stores that outlive one test."""
    return TickingClock


@pytest.fixture
def clock():
    return TickingClock()


@pytest.fixture(scope="session")
def place(request):
    """Where a store of that local path is: there, or in a bucket for its directory."""
    if request.config.getoption("--store-on") == "disk":
        return lambda path: path
    s3 = request.getfixturevalue("s3")

    def in_s3(path):
        if not isinstance(path, Path):
            return path
        return f"{s3.bucket(f'b{zlib.crc32(str(path.parent).encode()):08x}')}/{path.name}"

    return in_s3


@pytest.fixture(scope="session")
def access(request):
    """The options that open a store at a `place`."""
    if request.config.getoption("--store-on") == "disk":
        return {}
    return {"storage_options": request.getfixturevalue("s3").options}


@pytest.fixture
def reopen(embedder, clock, place, access):
    """Opens a store, or makes one, with the shared embedder and clock.

    Nobody tends it unless a test asks for that: versions are what the test's own writes make.
    """

    def open_store(path, **options):
        defaults = {"embedder": embedder, "clock": clock, "upkeep": None, **access}
        return MemoryStore.open(place(path), **{**defaults, **options})

    return open_store


@pytest.fixture
def store(tmp_path, reopen):
    return reopen(tmp_path / "store")
