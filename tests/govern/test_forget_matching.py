"""Forget: what is matched and what is not, what the proof says, and what comes after a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lance_memory import (
    ConsolidateOptions,
    ExportOptions,
    InvalidInputError,
    MemoryStore,
    NotFoundError,
    StorageError,
)
from lance_memory.storage.erase.needles import Needles, told_in

SECRET = "the zanzibarine recipe of quxomatic personage"


def texts(store):
    return sorted(m.content for m in store.list(states="any"))


def last_reason(store):
    return next(e.reason for e in store.log() if e.operation == "update")


@pytest.mark.parametrize(
    ("identifier", "prose", "named"),
    [
        ("msg-1", "about msg-1.", True),
        ("msg-1", "about msg-10", False),
        ("msg-1", "about old-msg-1", False),
        ("tea", "bob prefers tea cakes", False),
        ("42", "bob is 42", False),
        ("a", "a day", False),
        ("note-of-the-first-meeting", "see note-of-the-first-meeting", True),
    ],
)
def test_an_id_is_named_in_prose_by_a_word_that_nobody_writes_by_chance(identifier, prose, named):
    assert Needles([identifier]).quoted(prose) is named


def test_as_a_value_any_id_is_named_and_as_a_key_only_one_that_tells():
    data = Needles(["data"])
    assert data.named({"ids": ["data"]})
    assert not data.named({"data": ["all the data"]})
    assert Needles(["msg-1"]).named({"msg-1": 0})


def test_an_id_that_may_be_in_any_file_by_chance_is_not_searched_in_bytes():
    assert Needles(["a", "index", "aaaaaaaaaaaaaaaaaaaa"]).within(b"a index " + b"a" * 40) is None
    long = "note-of-the-first-meeting"
    assert Needles([long]).within(b"\x00" + long.encode() + b"\x01") == long


def test_the_beginning_of_a_text_is_looked_for_and_a_longer_word_is_another():
    assert Needles([], [SECRET]).quoted(f"it was: {SECRET[:40]}...")
    numbered = Needles([], ["numeric content 1"])
    assert numbered.quoted("is numeric content 1 right?")
    assert not numbered.quoted("is numeric content 10 right?")


def test_the_audit_is_read_from_the_bytes_of_a_record(store):
    one = store.add("a note", user="ann")
    store.update(one.id, importance=0.3, reason="it matters: äöü")
    records = Path(store.uri, "memories.lance", "_transactions").iterdir()
    assert ("reason", "it matters: äöü") in [t for r in records for t in told_in(r.read_bytes())]


@pytest.mark.parametrize("identifier", ["1", "data", "a"])
def test_a_memory_with_a_short_id_is_forgotten_and_the_proof_says_what_it_did_not_scan(
    store, identifier
):
    store.add_many([{"id": identifier, "content": SECRET, "user": "ann"}])
    store.add("bob has data and an index", user="bob")
    done = store.forget(identifier)
    assert (done.proof.unscanned, done.proof.unscanned_texts) == ((identifier,), 0)
    assert store.unfinished_forgetting() is None
    assert texts(store) == ["bob has data and an index"]


def test_c12_words_and_ids_of_others_stay_where_a_short_id_is_forgotten(reopen, tmp_path):
    store = reopen(tmp_path / "asked", record_queries=True)
    store.add_many(
        [
            {"id": "tea", "content": "what ann drinks on a sunday", "user": "ann"},
            {"id": "msg-1", "content": "the first message of ann", "user": "ann"},
            {"id": "msg-10", "content": "the tenth message of bob", "user": "bob"},
        ]
    )
    store.update("msg-10", importance=0.2, reason="bob prefers tea cakes to msg-10")
    store.search("when does bob drink tea", user="bob")
    store.forget(["tea", "msg-1"])
    assert [q.query for q in store.queries()] == ["when does bob drink tea"]
    assert last_reason(store) == "bob prefers tea cakes to msg-10"
    assert texts(store) == ["the tenth message of bob"]


def test_an_id_as_a_word_of_a_reason_goes(store):
    store.add_many([{"id": "msg-1", "content": "the first message", "user": "ann"}])
    other = store.add("another", user="bob")
    store.update(other.id, importance=0.2, reason="as msg-1 says")
    store.forget("msg-1")
    assert last_reason(store) == "(forgotten)"


def test_a_reason_that_quotes_what_is_forgotten_is_refused_and_nothing_is_done(store):
    one = store.add(SECRET, user="ann")
    version = store.version
    for reason in (f"text was: {SECRET}", f"about {one.id}"):
        with pytest.raises(InvalidInputError, match="quotes"):
            store.forget(one.id, reason=reason)
    assert (store.version, store.unfinished_forgetting()) == (version, None)


def test_a_file_that_is_not_the_stores_is_named_until_it_is_removed_and_blocks_no_other(store):
    one = store.add(SECRET, user="ann")
    other = store.add("something of bob that he wants gone", user="bob")
    notes = Path(store.uri) / "notes.txt"
    notes.write_text(f"she said: {SECRET}")
    for again in (
        lambda: store.forget(one.id),
        store.finish_forgetting,
        lambda: store.forget(one.id),
    ):
        with pytest.raises(StorageError, match=r"remove .*notes\.txt"):
            again()
    assert store.forget(other.id).plan.ids == (other.id,)
    assert store.unfinished_forgetting().ids == (one.id,)
    told = store.doctor().findings[0]
    assert (told.code, told.fixable, str(notes) in told.advice) == (
        "unfinished_forget",
        False,
        True,
    )
    notes.unlink()
    assert store.finish_forgetting().proof.found == ()
    assert store.unfinished_forgetting() is None
    assert list(Path(store.uri).glob("forget*.json")) == []


def test_a_second_run_proves_as_much_as_the_first_would_have(store, monkeypatch):
    one = store.add(SECRET, user="ann")
    with monkeypatch.context() as patch:
        patch.setattr("lance_memory.govern.forget.run.prove", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.forget(one.id)
    mark = Path(store.uri) / "forget.json"
    assert (mark.stat().st_mode & 0o777, SECRET[:40] in mark.read_text()) == (0o600, True)
    (Path(store.uri) / "notes.txt").write_text(SECRET)
    with pytest.raises(StorageError, match=r"notes\.txt"):
        store.finish_forgetting()


def _interrupted(*_):
    raise KeyboardInterrupt


def test_the_same_again_after_an_interruption_gives_the_result(store, monkeypatch):
    one = store.add(SECRET, user="ann")
    with monkeypatch.context() as patch:
        patch.setattr("lance_memory.govern.forget.run.prove", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.forget(user="ann")
    assert store.forget(user="ann", dry_run=True).ids == (one.id,)
    with pytest.raises(NotFoundError):
        store.forget(user="nobody", dry_run=True)
    assert store.forget(user="ann").plan.ids == (one.id,)
    with pytest.raises(NotFoundError):
        store.forget(user="ann")


def test_an_archive_an_export_and_a_plan_are_not_put_inside_the_store(store, tmp_path):
    one = store.add(SECRET, user="ann")
    inside = Path(store.uri) / "mine.zip"
    link = tmp_path / "link"
    link.symlink_to(store.uri)
    for write in (
        lambda: store.export_store(inside),
        lambda: store.export_store(link / "mine"),
        lambda: store.export(Path(store.uri) / "mine.jsonl", ExportOptions()),
        lambda: store.archive(inside, user="ann"),
    ):
        with pytest.raises(InvalidInputError, match="inside the store"):
            write()
    assert store.get(one.id).content == SECRET


def test_a_saved_plan_goes_under_any_name(store):
    for i, more in enumerate(("now", "here")):
        store.add(f"the kettle is broken again {more}", user="ann", id=f"memory-{i}")
    plan = store.consolidate(
        ConsolidateOptions(min_similarity=0.5), user="ann", dry_run=True, guard=None
    )
    (Path(store.uri) / "pass.plan").write_text(plan.to_json())
    assert store.forget("memory-0").plans == ("pass.plan",)
    assert not (Path(store.uri) / "pass.plan").exists()


def test_a_damaged_file_of_an_earlier_version_goes_with_the_version(store):
    for i in range(3):
        store.add(f"note number {i} of ann and her friends", user="ann")
    data = Path(store.uri, "memories.lance", "data")
    torn = min(data.iterdir(), key=lambda p: p.stat().st_mtime_ns)
    store.optimize()
    torn.write_bytes(torn.read_bytes()[:100])
    again = MemoryStore.open(store.uri, embedder=store.embedder, create=False)
    gone = again.list(user="ann")[0]
    done = again.forget(gone.id)
    assert done.proof.unreadable == (str(torn),)
    assert (torn.exists(), len(texts(again))) == (False, 2)


def test_a_damaged_manifest_of_an_earlier_version_is_removed(store):
    for i in range(3):
        store.add(f"note number {i} of ann and her friends", user="ann")
    torn = sorted(Path(store.uri, "memories.lance", "_versions").glob("*.manifest"))[-2]
    torn.write_bytes(b"junk")
    again = MemoryStore.open(store.uri, embedder=store.embedder, create=False)
    gone = again.list(user="ann")[0]
    assert again.forget(gone.id, dry_run=True).ids == (gone.id,)
    assert again.forget(gone.id).proof.unreadable == (str(torn),)
    assert (torn.exists(), len(texts(again))) == (False, 2)


@pytest.mark.parametrize(
    "junk",
    [
        "[]",
        "{}",
        "null",
        "no json",
        '{"op_id": "a", "at": "x", "ids": ["a"], "rebuilt": {}, "versions": {}}',
        '{"op_id": "a", "at": "2025-01-01T00:00:00+00:00", "ids": "abc", "rebuilt": {}}',
    ],
)
def test_a_damaged_mark_is_told_by_name_with_what_to_do(store, junk):
    one = store.add("a note of ann", user="ann")
    (Path(store.uri) / "forget.json").write_text(junk)
    for ask in (store.unfinished_forgetting, store.finish_forgetting, lambda: store.forget(one.id)):
        with pytest.raises(StorageError, match=r"forget\.json .*remove it"):
            ask()
    assert store.get(one.id).content == "a note of ann"
    found = {f.code: f for f in store.doctor().findings}
    assert "remove it" in found["damaged_mark"].message


def test_the_state_of_upkeep_keeps_its_words(store):
    store.add_many([{"id": "clean", "content": SECRET, "user": "ann"}])
    state = Path(store.uri) / "upkeep.json"
    words = {"main": {"failures": [{"step": "clean"}]}}
    state.write_text(json.dumps(words))
    other = Path(store.uri) / "state.json"
    other.write_text(json.dumps({"newest": "clean"}))
    store.forget("clean")
    assert "clean" in state.read_text()
    assert json.loads(other.read_text()) == {"newest": "(forgotten)"}
