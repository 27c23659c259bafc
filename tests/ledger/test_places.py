"""Where a ledger is, and what is said when it cannot be reached."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest

from lance_memory.errors import InvalidInputError, StorageError
from lance_memory.ledger import RedisLedger, RedisPlace, SqliteLedger, is_redis, open_ledger


@pytest.mark.parametrize(
    ("url", "prefix", "shown"),
    [
        ("redis://localhost", "lance-memory", "redis://localhost:6379"),
        ("redis://u:secret@host:7000/3", "lance-memory", "redis://host:7000/3"),
        ("rediss://:secret@host/3/mine", "mine", "rediss://host:6379/3"),
        ("redis://host/mine", "mine", "redis://host:6379"),
        ("redis://host/3/a?prefix=b&socket_timeout=2", "b", "redis://host:6379/3"),
        ("unix:///run/redis.sock?prefix=a%2Fb", "a/b", "unix:///run/redis.sock"),
    ],
)
def test_a_url_names_a_server_and_a_prefix_and_is_shown_without_password(url, prefix, shown):
    place = RedisPlace.of(url)
    assert (place.prefix, place.shown) == (prefix, shown)
    assert "prefix" not in place.url
    assert "secret" not in place.shown


@pytest.mark.parametrize(
    ("url", "socket"),
    [
        ("unix:///run/redis.sock?prefix=mine&db=2", "/run/redis.sock"),
        ("unix://u:secret@/run/redis.sock", "/run/redis.sock"),
    ],
)
def test_the_client_finds_the_socket_that_a_url_names(url, socket):
    redis = pytest.importorskip("redis")
    pool = redis.Redis.from_url(RedisPlace.of(url).url).connection_pool
    assert pool.connection_kwargs["path"] == socket
    with pytest.raises(StorageError, match="could not be read"):
        RedisLedger(url.replace("/run", "/nowhere")).get("s", "k")


@pytest.mark.parametrize("url", ["redis://host:port", "redis://[::1", "http://host"])
def test_another_url_is_refused_without_its_password(url):
    with pytest.raises(InvalidInputError, match="redis://localhost:6379/0"):
        RedisPlace.of(url)


def test_an_option_that_the_client_does_not_know_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="an option that the Redis client does not take"):
        RedisLedger("redis://u:secret@localhost/0?socket_timeout=soon")


def test_a_path_is_no_url(tmp_path):
    assert not is_redis(tmp_path)
    assert not is_redis("redis/here")
    assert not is_redis(":memory:")
    assert isinstance(open_ledger(tmp_path / "redis:"), SqliteLedger)


def test_one_in_memory_is_its_own():
    one, other = SqliteLedger(":memory:"), SqliteLedger(":memory:")
    one.put("s", "k", b"v")
    assert (one.get("s", "k"), other.get("s", "k")) == (b"v", None)
    one.close()
    other.close()


def test_prefixes_keep_ledgers_apart(redis_url):
    one, other = (RedisLedger(f"{redis_url}?prefix={name}") for name in ("apart-a", "apart-b"))
    one.put("s", "k", b"v")
    one.add("s", "k", 1)
    assert (other.get("s", "k"), other.counted("s", "k")) == (None, 0)
    one.close()
    other.close()


def test_the_files_are_for_their_owner_alone(tmp_path):
    ledger = SqliteLedger(tmp_path / "ingest" / "ledger.sqlite")
    ledger.put("s", "k", b"v")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "ingest").iterdir()}
    assert modes == dict.fromkeys(
        ("ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal"), 0o600
    )
    assert stat.S_IMODE((tmp_path / "ingest").stat().st_mode) == 0o700
    ledger.close()
    assert [p.name for p in (tmp_path / "ingest").iterdir()] == ["ledger.sqlite"]


def test_what_was_removed_is_in_no_file_once_it_is_scrubbed(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger, reader = SqliteLedger(path), SqliteLedger(path)
    for number in range(200):
        ledger.put("s", f"{number}", b"the secret of Zanzibar" * 40)
    assert sum(1 for _ in reader.items("s")) == 200
    for number in range(200):
        ledger.remove("s", f"{number}")
    ledger.scrub()
    assert [p.name for p in tmp_path.iterdir() if b"Zanzibar" in p.read_bytes()] == []
    ledger.close()
    reader.close()


def test_a_scrub_that_others_are_in_the_way_of_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("lance_memory.ledger.file.PATIENCE", 0.05)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.put("s", "k", b"v")
    with sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM entries").fetchall()
        ledger.remove("s", "k")
        with pytest.raises(StorageError, match="still in the log beside it"):
            ledger.scrub()
    reader.close()
    ledger.scrub()
    ledger.close()


def test_a_file_that_is_no_ledger_is_named(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 30)
    with pytest.raises(StorageError, match=r"ledger\.sqlite could not be read .*not a database"):
        SqliteLedger(path).get("s", "k")


def test_a_place_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"could not make the ledger .*file/ledger\.sqlite"):
        SqliteLedger(tmp_path / "file" / "ledger.sqlite").get("s", "k")


def test_another_that_holds_it_for_long_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("lance_memory.ledger.file.PATIENCE", 0.05)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    ledger.put("s", "k", b"v")
    with sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="database is locked"):
            ledger.put("s", "k", b"w")
        assert ledger.get("s", "k") == b"v"
    other.close()
    ledger.close()


def test_a_server_that_is_not_there_is_named_without_password():
    ledger = RedisLedger("redis://u:secret@127.0.0.1:1/0")
    with pytest.raises(StorageError, match=r"redis://127\.0\.0\.1:1/0 could not be read") as caught:
        ledger.get("s", "k")
    assert "secret" not in str(caught.value)


def test_without_the_library_the_extra_is_named():
    code = (
        "import sys; sys.modules['redis'] = None\n"
        "from lance_memory.ledger import open_ledger\n"
        "open_ledger('redis://localhost')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "MissingExtraError" in told
    assert "pip install 'lance-memory[redis]'" in told


@pytest.mark.parametrize("gone", ["files", "folder"])
def test_a_file_that_was_removed_under_an_open_ledger_is_written_to_no_more(tmp_path, gone):
    """What was acknowledged went to a file that nobody saw again."""
    where = tmp_path / "ingest" / "ledger.sqlite"
    ledger = open_ledger(where)
    ledger.put("s", "old", b"1")
    if gone == "folder":
        shutil.rmtree(where.parent)
    else:
        for file in where.parent.iterdir():
            file.unlink()
    assert ledger.swap("s", "k", old=None, new=b"2")
    assert ledger.add("s", "n", 3) == 3
    other = open_ledger(where)
    found = [
        (one.get("s", "old"), one.get("s", "k"), one.counted("s", "n")) for one in (ledger, other)
    ]
    assert found == [(None, b"2", 3)] * 2
    other.close()
    ledger.close()


def test_a_file_that_another_has_put_there_is_the_ledger_from_then_on(tmp_path):
    where = tmp_path / "ingest" / "ledger.sqlite"
    ledger = open_ledger(where)
    ledger.put("s", "k", b"old")
    for file in where.parent.iterdir():
        file.unlink()
    other = open_ledger(where)
    other.put("s", "k", b"new")
    assert ledger.get("s", "k") == b"new"
    assert [*ledger.items("s")] == [("k", b"new")]
    ledger.put("s", "more", b"x")
    ledger.close()
    assert [*other.items("s")] == [("k", b"new"), ("more", b"x")]
    other.close()
    assert [*open_ledger(where).items("s")] == [("k", b"new"), ("more", b"x")]


def test_a_ledger_whose_place_is_gone_for_good_is_not_made_again(tmp_path):
    where = tmp_path / "store" / "ingest" / "ledger.sqlite"
    ledger = open_ledger(where)
    ledger.put("s", "k", b"1")
    shutil.rmtree(tmp_path / "store")
    with pytest.raises(StorageError, match="was removed while it was open"):
        ledger.put("s", "k", b"2")
    assert not (tmp_path / "store").exists()
    ledger.close()


def test_an_append_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("lance_memory.ledger.file.PATIENCE", 0.05)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite")
    assert ledger.append("s", b"1") == 1
    with sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
        )
        with pytest.raises(StorageError, match="full"):
            ledger.append("s", b"2")
        other.execute("DROP TRIGGER full")
        other.execute("BEGIN IMMEDIATE")
        for change in (
            lambda: ledger.append("s", b"2"),
            lambda: ledger.remove_all("s", ["x"]),
            lambda: ledger.drop("s"),
        ):
            with pytest.raises(StorageError, match="database is locked"):
                change()
        other.execute("ROLLBACK")
    other.close()
    assert ledger.append("s", b"2") == 2
    assert [value for _, value in ledger.items("s")] == [b"1", b"2"]
    ledger.close()
