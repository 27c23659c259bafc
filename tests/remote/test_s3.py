"""Stores in S3: every verb, several processes, kills, and what may go wrong."""

from __future__ import annotations

import json
import random
import signal
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from forked import Forked
from proof_kit import contents, keys_held_twice, open_store

from lance_memory import (
    ConflictError,
    ConsolidateOptions,
    Dreamer,
    InvalidInputError,
    LanceMemoryError,
    MemoryStore,
    NotFoundError,
    StorageError,
)
from lance_memory.storage import Place

CHILD = Path(__file__).with_name("remote_child.py")
EVERYTHING = ConsolidateOptions(min_similarity=-1.0, max_dropped=1.0, distinct=False)
AT_ONCE = {"client_max_retries": "0", "retry_timeout": "1s", "connect_timeout": "1s"}


@pytest.fixture
def opened(s3):
    """Opens a store in S3."""

    def at(uri, **options):
        return open_store(uri, **{"storage_options": s3.options, **options})

    return at


@pytest.fixture
def child(s3):
    """Starts a process that does a verb on a URI; none outlives the test."""
    started = []

    def start(verb, uri, *arguments):
        started.append(Forked(CHILD, verb, uri, json.dumps(s3.options), *arguments))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def begin_together(folder, names):
    while not all((folder / f"ready-{name}").exists() for name in names):
        time.sleep(0.01)
    (folder / "go").touch()


def said(process):
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return [json.loads(line) for line in out.splitlines()]


def objects(s3, uri):
    """Every object below the URI, by key."""
    place = Place(uri, storage_options=s3.options)
    return {name: place.read(name) for name in place.names()}


def test_every_kind_of_verb_works_in_s3(s3, bucket, opened):
    store = opened(f"{bucket}/a store", author="ada", record_queries=True)
    store.add("the kettle is red", user="ann", key="kettle")
    store.add_many([{"content": f"note {n}", "user": "ann"} for n in range(20)])
    store.tag("start")
    start = store.version
    store.upsert("the kettle is blue", user="ann", key="kettle")
    store.update("kettle", importance=0.5)
    store.retire([store.list(limit=1, offset=3)[0].id], reason="wrong")
    before = contents(store)
    store.consolidate(EVERYTHING)
    assert contents(store) != before
    store.rollback(store.version - 1)
    assert contents(store) == before
    assert store.optimize(clean_older_than=timedelta(0)).fragments_after == 1
    assert store.build_index(kind="ivf_flat").kind == "IVF_FLAT"
    assert contents(store) == before
    assert store.at("start").version == start
    assert store.search("kettle", mode="text").hits[0].memory.content == "the kettle is blue"
    assert store.search("blue kettle", k=3).degraded == {}
    assert store.sql("SELECT count(*) AS n FROM memories")["n"].to_list() == [22]
    side = store.branch("side")
    side.add("on the side")
    assert (side.count(), opened(store.uri, branch="side").count()) == (21, 21)
    copy = store.checkout("start", f"{bucket}/copy")
    copy.add("in the copy")
    assert (copy.count(), store.count()) == (22, 20)
    assert len(store.queries()) == 2
    assert b"blue kettle" in b"".join(objects(s3, f"{store.uri}/queries.lance").values())
    assert store.forget_queries() == 2
    assert b"blue kettle" not in b"".join(objects(s3, f"{store.uri}/queries.lance").values())
    assert store.stats().bytes > 10_000
    assert store.index().kind == "IVF_FLAT"
    assert [e.actor for e in store.log(limit=1)] == ["ada"]
    assert contents(opened(f"{bucket}/a%20store/")) == before


def test_the_small_files_of_a_store_are_kept_in_s3(s3, bucket):
    place = Place(f"{bucket}/store", storage_options=s3.options)
    assert place.names() == []
    place.write("a/b.json", b"one")
    place.write("a/b.json", b"two")
    assert (place.names(), place.read("a/b.json")) == (["a/b.json"], b"two")
    place.remove("a/b.json")
    place.remove("a/b.json")
    with pytest.raises(NotFoundError):
        place.read("a/b.json")


@pytest.mark.slow
def test_what_two_writers_were_told_is_written_is_there(bucket, opened, child, tmp_path):
    store = opened(f"{bucket}/store")
    names = ("one", "two")
    writers = [child("write", store.uri, tmp_path, name, 6) for name in names]
    begin_together(tmp_path, names)
    for _ in range(2):  # a third at the same time, which may be too slow for them
        with suppress(ConflictError):
            store.optimize()
        with suppress(ConflictError):
            store.consolidate(EVERYTHING, user="one")
    ids = [one for writer in writers for one in said(writer)[0]["ids"]]
    rows = contents(store)
    assert len(set(ids)) == 12
    assert set(ids) <= set(rows)
    assert keys_held_twice(rows, store.log(limit=1)[0].at) == []
    assert sum(row["key"] is not None and "once" in row["key"] for row in rows.values()) == 6
    assert len({e.op_id for e in store.log()}) == len(store.log())


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_every_batch_whole(bucket, opened, child):
    store = opened(f"{bucket}/store")
    chance = random.Random(5)
    acknowledged = set()
    for _ in range(3):
        writer = child("add_until_killed", store.uri)
        assert json.loads(writer.stdout.readline()) == {"ready": True}
        first = json.loads(writer.stdout.readline())
        time.sleep(chance.uniform(0, 0.3))
        writer.send_signal(signal.SIGKILL)
        lines = writer.stdout.read().splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.endswith("\n")]
        acknowledged |= {one["batch"] for one in [first, *told]}
    batches = [m.run for m in store.iter()]
    assert {int(run) for run in batches} >= acknowledged
    assert all(batches.count(run) == 3 for run in batches)
    store.optimize()
    assert sorted(m.run for m in store.iter()) == sorted(batches)


@pytest.mark.slow
def test_two_that_make_a_store_at_once_make_one(bucket, opened, child, tmp_path):
    makers = [child("make", f"{bucket}/store", tmp_path, name) for name in ("one", "two")]
    for number in range(6):
        time.sleep(0.1)
        (tmp_path / f"go-{number}").touch()
    ids = [[line["id"] for line in said(maker)] for maker in makers]
    for number, pair in enumerate(zip(*ids, strict=True)):
        store = opened(f"{bucket}/store-{number}")
        assert sorted(m.id for m in store.list()) == sorted(pair)
        assert len(store.search("one two", mode="text")) == 2


@pytest.mark.slow
def test_what_is_recorded_and_forgotten_at_once_is_right_without_a_lock(
    bucket, opened, child, tmp_path
):
    store = opened(f"{bucket}/store", record_queries=True)
    store.add("a kettle")
    names = ("one", "two")
    asking = [child("record", store.uri, tmp_path, name, 10) for name in names]
    begin_together(tmp_path, names)
    for process in asking:
        assert said(process) == [{"asked": 10}]
    found = store.queries()
    assert sorted(q.query for q in found) == sorted(
        f"kept question {n} of {name}" for name in names for n in range(10)
    )


def test_lmem_takes_storage_options_and_never_shows_a_secret(s3, bucket, monkeypatch, capfd):
    from lmem.main import main

    def run(*words):
        code = main(list(words))
        return code, capfd.readouterr()

    uri = f"{bucket}/store"
    pairs = [word for pair in s3.options.items() for word in ("--storage-option", "=".join(pair))]
    wrong = "no-such-secret"
    assert run("--store", uri, *pairs, "init")[0] == 0
    assert run("stats", "--store", uri, *pairs, "--format", "json")[0] == 0
    monkeypatch.setenv("LMEM_STORAGE_OPTIONS", json.dumps(s3.options))
    code, said_so = run("--store", uri, "stats", "--format", "json")
    assert (code, json.loads(said_so.out)["rows"]) == (0, 0)
    for text in (f'{{"a": "{wrong}"', f'["{wrong}"]', f'{{"{wrong}": 1}}'):
        monkeypatch.setenv("LMEM_STORAGE_OPTIONS", text)
        code, said_so = run("--store", uri, "list")
        assert (code, wrong in said_so.err, said_so.out) == (2, False, "")
    monkeypatch.delenv("LMEM_STORAGE_OPTIONS")
    code, said_so = run("--store", uri, "--storage-option", wrong, "list")
    assert (code, wrong in said_so.err) == (2, False)


@pytest.mark.slow
def test_what_goes_wrong_in_s3_is_told_in_our_words_without_secrets(s3, bucket, opened):
    away = {**s3.options, **AT_ONCE, "aws_endpoint": "http://127.0.0.1:9"}
    tries = [
        ("no bucket", {}, f"{bucket}-absent/store"),
        ("no server", {"storage_options": away}, f"{bucket}/store"),
        ("no such scheme", {}, "nowhere://bucket/store"),
        ("no bucket name", {}, "s3:///store"),
        ("fragment", {}, f"{bucket}/a#b"),
        ("query", {}, f"{bucket}/a?b"),
    ]
    for what, options, uri in tries:
        with pytest.raises((StorageError, NotFoundError, InvalidInputError)) as caught:
            opened(uri, **options)
        assert uri in str(caught.value), what
        assert "secret-of-the-tests" not in str(caught.value), what
    with pytest.raises(NotFoundError, match="there is no store at s3://"):
        opened(f"{bucket}/absent", create=False)
    assert objects(s3, bucket) == {}


def test_a_dreamer_says_that_it_needs_a_local_directory(bucket, opened):
    store = opened(f"{bucket}/store")
    with pytest.raises(InvalidInputError, match="no local directory"):
        Dreamer(store)


def test_without_options_the_variables_of_the_environment_open_a_store(s3, bucket, monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": s3.options["aws_access_key_id"],
        "AWS_SECRET_ACCESS_KEY": s3.options["aws_secret_access_key"],
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": s3.endpoint,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    store = open_store(f"{bucket}/store")
    stored = store.add("by the environment")
    assert open_store(store.uri).get(stored.id).content == "by the environment"
    assert issubclass(NotFoundError, LanceMemoryError)
    assert isinstance(store, MemoryStore)
