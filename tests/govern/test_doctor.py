"""The doctor finds each kind of trouble, fixes what is safe, and changes no memory."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_memory import HealthFinding, NotFoundError, ScopeError, Severity, StorageError
from lance_memory.govern.doctor import CHECKS
from lance_memory.govern.doctor.of_files import NOBODYS
from lance_memory.record.rows import patched, repeated
from lance_memory.storage import Audit, ChangeSet
from lance_memory.storage.described import described
from lance_memory.storage.engine import lance


def now():
    return datetime.now(UTC)


@pytest.fixture
def store(tmp_path, reopen):
    """Ten memories, two of them superseded, under the machine's clock, private."""
    store = reopen(tmp_path / "store", clock=now, upkeep=None)
    (tmp_path / "store").chmod(0o700)
    store.add_many([{"id": f"m{n}", "content": f"memory {n}", "key": f"k{n}"} for n in range(10)])
    store.supersede(["m0", "m1"], "one and two")
    return store


def trouble(health):
    """Code -> count, of what is worse than a note."""
    return {f.code: f.count for f in health.findings if f.severity is not Severity.NOTE}


def written(store, ids, **values):
    """What no verb would do: these columns of these rows, as another program writes them."""
    table = store._table
    rows = table.latest().by_ids(ids, columns=table.schema.names)
    updates = patched(rows, values)
    audit = Audit(operation="tampered", at=now())
    table.commit(lambda _: ChangeSet(audit=audit, updates=updates))


def test_a_sound_store_has_nothing_but_notes(store):
    health = store.doctor(deep=True)
    assert (trouble(health), health.sound, health.fixed) == ({}, True, ())
    assert health.version == store.version
    assert health.checked == tuple(check.__name__ for check in CHECKS)
    codes = [one.code for one in health.findings]
    assert codes == ["versions", "unindexed", "fragments", "vector_length"]
    assert sum(one.own_bytes for one in health.versions) <= health.versions[-1].bytes * 3
    assert [one.version for one in health.versions] == [e.version for e in store.log(upkeep=True)][
        ::-1
    ]


def test_looking_writes_nothing(store):
    before = store.version, sorted(p.name for p in store_files(store))
    store.doctor(deep=True)
    assert (store.version, sorted(p.name for p in store_files(store))) == before


def store_files(store):
    from pathlib import Path

    return [p for p in Path(store.uri).rglob("*") if p.is_file()]


def test_a_scoped_handle_is_refused(store):
    with pytest.raises(ScopeError, match="whole store"):
        store.scoped(user="ann").doctor()


@pytest.mark.parametrize(
    ("ids", "values", "expected"),
    [
        (["m2"], {"superseded_by": "gone", "state": "superseded"}, {"dangling_successor": 1}),
        (["m2"], {"superseded_by": "m3"}, {"state": 1, "unnamed_sources": 1}),
        (["m0"], {"superseded_by": None}, {"state": 1}),
        (["m2"], {"superseded_by": "m2", "state": "superseded"}, {"circle": 1}),
        (["m2", "m3"], {"key": "k4"}, {"duplicate_keys": 3}),
        (["m2"], {"id": "m3"}, {"duplicate_ids": 1, "duplicate_keys": 2}),
        (["m2"], {"created_at": now() + timedelta(hours=2)}, {"future_rows": 1}),
    ],
)
def test_rows_that_break_a_rule_are_found(store, ids, values, expected):
    if values.get("superseded_by") == "m2":
        values = {**values, "relationships": edges("consolidates", "m2")}
    if "id" in values:
        duplicated(store, *ids, **values)
    else:
        written(store, ids, **{n: typed(store, n, v, len(ids)) for n, v in values.items()})
    found = store.doctor()
    if "circle" in expected:
        expected = {"circle": 1}
    assert trouble(found) == expected
    assert not found.sound


def typed(store, name, value, size):
    return repeated(value, store._table.schema.field(name).type, size) if value is None else value


def edges(relation, target):
    kind = pa.list_(pa.struct([(n, pa.string()) for n in ("relation", "target", "note")]))
    return pa.array([[{"relation": relation, "target": target, "note": ""}]], kind)


def duplicated(store, identifier, **values):
    """A second row with an id that is taken, as an append of another program makes it."""
    table = store._table
    rows = patched(table.latest().by_ids([identifier], columns=table.schema.names), values)
    lance.write_dataset(rows, table.root, mode="append")


def test_relationships_to_nowhere_and_contents_that_are_there_twice_are_notes(store):
    written(store, ["m4"], relationships=edges("about", "gone"), content_hash="0" * 32)
    written(store, ["m5"], content_hash="0" * 32)
    health = store.doctor()
    counts = {one.code: one.count for one in health.findings}
    assert (counts["dangling_relationship"], counts["duplicate_contents"]) == (1, 2)
    assert health.sound


def test_the_deep_look_compares_contents_with_their_hashes(store):
    written(store, ["m4"], content_hash="0" * 32)
    assert trouble(store.doctor()) == {}
    deep = store.doctor(deep=True)
    assert trouble(deep) == {"content_hash": 1, "damaged_file": 1}
    (found,) = [one for one in deep.findings if one.code == "content_hash"]
    assert found.sample == ("m4",)


def test_vectors_that_nothing_finds_are_told_apart(store):
    dimension = store._table.format.dimension
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(dimension, np.float32)), dimension)
    nans = pa.FixedSizeListArray.from_arrays(
        pa.array(np.full(dimension, np.nan, np.float32)), dimension
    )
    written(store, ["m4"], embedding=zeros)
    written(store, ["m5"], embedding=nans)
    written(store, ["m6"], embedding=pa.nulls(1, zeros.type))
    counts = {one.code: one.count for one in store.doctor().findings}
    assert (counts["bad_vector"], counts["no_vector"]) == (2, 1)


def test_clocks_that_disagree_are_found(tmp_path, reopen):
    moment = now() - timedelta(days=2)
    store = reopen(tmp_path / "store", clock=lambda: moment, upkeep=None)
    store.add("two days ago, as its writer said")
    moment -= timedelta(days=1)
    store.add("three days ago, and later")
    moment = now()
    assert {"clock_skew": 2, "clock_backwards": 1}.items() <= trouble(store.doctor()).items()


def test_orphans_are_removed_when_they_are_old_and_left_when_they_may_be_a_writers(store, tmp_path):
    data = tmp_path / "store" / "memories.lance" / "data"
    old, young = data / "old.lance", data / "young.lance"
    for file in (old, young):
        file.write_bytes(b"of a killed writer")
    long_ago = (now() - NOBODYS - timedelta(hours=1)).timestamp()
    os.utime(old, (long_ago, long_ago))
    found = store.doctor()
    assert trouble(found) == {"orphans": 1}
    assert found.fixable[0].sample == ("memories.lance/data/old.lance",)
    fixed = store.doctor(fix=True)
    assert ([one.code for one in fixed.fixed], trouble(fixed)) == (["orphans"], {})
    assert (old.exists(), young.exists()) == (False, True)


def test_the_manifest_of_a_trial_that_was_killed_is_an_orphan(store, tmp_path):
    trial = tmp_path / "store" / "memories.lance" / "_versions" / "d123.manifest"
    trial.write_bytes(b"detached")
    os.utime(trial, (1, 1))
    assert trouble(store.doctor()) == {"orphans": 1}
    store.doctor(fix=True)
    assert not trial.exists()


def test_a_version_with_a_damaged_manifest_is_named_and_no_file_is_called_an_orphan(store):
    version = store.version - 1
    file = next(p for p in store_files(store) if p.name == f"{2**64 - 1 - version}.manifest")
    content = file.read_bytes()
    file.write_bytes(content[:40] + bytes(len(content) - 60) + content[-20:])
    health = store.doctor()
    assert trouble(health) == {"damaged_manifest": 1}
    assert health.findings[0].sample == (f"memories.lance/_versions/{file.name}",)
    assert [(e.version, e.operation) for e in store.log() if e.operation == "damaged"] == [
        (version, "damaged")
    ]
    (told,) = [one for one in health.findings if one.code == "versions"]
    assert (told.count, [one.version for one in health.versions]) == (
        version,  # all but the damaged one
        [n for n in range(1, version + 2) if n != version],
    )
    assert told.message.startswith(f"{version} versions can be read; ")


def test_a_rewritten_version_is_told_of_by_its_own_number(store):
    tagged = store.version
    store.tag("kept")
    store.add("a late one")
    store.forget("m5")
    health = store.doctor()
    assert ("main", tagged) in [(one.branch, one.version) for one in health.versions]
    assert "lmem-" not in str(health) + "".join(s for f in health.findings for s in f.sample)


def test_a_damaged_index_is_built_anew(store, reopen):
    store.optimize(vector_index_from=5)
    file = next(p for p in store_files(store) if p.name == "part_0_invert.lance")
    content = file.read_bytes()
    file.write_bytes(content[:20] + bytes(len(content) - 40) + content[-20:])
    again = reopen(store.uri, clock=now, upkeep=None)
    found = again.doctor(deep=True)
    assert "damaged_index" in trouble(found)
    before = again.to_arrow().sort_by("id")
    fixed = again.doctor(fix=True, deep=True)
    assert "damaged_index" in [one.code for one in fixed.fixed]
    assert trouble(fixed) == {"damaged_old_index": 1}
    assert again.to_arrow().sort_by("id") == before
    assert len(again.search("memory", mode="text")) == 8


def test_rows_that_may_end_the_process_are_named_and_not_read(store, reopen):
    """A wild length in a deletion file makes the engine abort: no exception tells of it."""
    (file,) = {p for p in store_files(store) if "_deletions" in str(p)}
    content = bytearray(file.read_bytes())
    content[-20] ^= 0x10
    file.write_bytes(content)
    found = reopen(store.uri, clock=now, upkeep=None).doctor(deep=True)
    assert found.findings[0].code == "damaged_file"
    assert found.findings[0].sample[0].startswith(f"memories.lance/_deletions/{file.name} (of ")
    assert {"damaged_file", "unchecked_lifecycle", "unchecked_clocks"} <= trouble(found).keys()


def test_a_hold_is_stale_after_a_day_and_let_go_of(store, tmp_path):
    name = "lmem-hold-0123"
    store._table.own().dataset.tags.create(name, store.version)
    assert {one.code for one in store.doctor().findings} >= {"holds"}
    file = tmp_path / "store" / "memories.lance" / "_refs" / "tags" / f"{name}.json"
    told = json.loads(file.read_text())
    text = json.dumps(told)
    yesterday = (now() - timedelta(days=2)).isoformat().replace("+00:00", "Z")
    for key in [key for key in told if key.lower().startswith("creat")]:
        told[key] = yesterday
    assert json.dumps(told) != text
    file.write_text(json.dumps(told))
    assert trouble(store.doctor()) == {"stale_holds": 1}
    fixed = store.doctor(fix=True)
    assert (trouble(fixed), [one.code for one in fixed.fixed]) == ({}, ["stale_holds"])


def test_a_torn_newest_version_is_set_aside(store, reopen):
    last = store.version
    store.add("never acknowledged")
    file = next(p for p in store_files(store) if p.name == f"{2**64 - 2 - last}.manifest")
    file.write_bytes(b"")
    with pytest.warns(UserWarning, match="torn"):
        again = reopen(store.uri, clock=now, upkeep=None)
    assert "torn" in trouble(again.doctor())
    fixed = again.doctor(fix=True)
    assert ([one.code for one in fixed.fixed], trouble(fixed)) == (["torn"], {})
    again.add("goes on")
    assert again.version == last + 1


@pytest.mark.parametrize("what", ["id_idx", "content_idx", "embedding_idx"])
def test_a_torn_index_costs_no_row_and_is_built_anew(what, store, reopen):
    store.add_many([f"pear {number}" for number in range(300)])
    store.optimize(index="ivf_flat", vector_index_from=100)
    last = store.add("acknowledged after the index was built").version
    rows = store.to_arrow()
    named = described(store._table.latest().dataset)
    folder = Path(store._table.home, "_indices", named[what].segments[0].uuid)
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:20])
    with pytest.warns(UserWarning, match=f"rows of version {last} are whole, but indices"):
        again = reopen(store.uri, clock=now, upkeep=None)
    assert again.to_arrow() == rows
    assert again.version == last
    with pytest.raises(StorageError, match="lmem doctor --fix"):
        again.add("not yet")
    assert "torn" in trouble(again.doctor())
    fixed = again.doctor(fix=True)
    assert ("torn" in [one.code for one in fixed.fixed], trouble(fixed)) == (True, {})
    again.add("goes on")
    assert again.search("acknowledged", mode="text").hits[0].memory.content.startswith("ack")
    assert again.search("pear 7", mode="vector", k=1).hits


def test_a_forgetting_that_was_interrupted_is_found(store, tmp_path):
    from lance_memory.govern.forget.marker import Marker, place_of_store

    mark = Marker(
        op_id="0",
        at=now(),
        actor="",
        reason="",
        ids=("m3",),
        scopes=(),
        rebuilt={},
        versions={},
    )
    mark.write(place_of_store(store._table))
    assert trouble(store.doctor()) == {"unfinished_forget": 1}
    fixed = store.doctor(fix=True)
    assert "unfinished_forget" in [one.code for one in fixed.fixed]
    assert trouble(fixed) == {}
    with pytest.raises(NotFoundError):
        store.get("m3")


def test_others_who_can_look_into_the_store_are_found(store, tmp_path):
    (tmp_path / "store").chmod(0o755)
    assert trouble(store.doctor()) == {"readable_by_others": 1}


def test_a_journal_that_cannot_be_read_is_found(store, tmp_path):
    (tmp_path / "store" / "queries.lance").mkdir()
    (tmp_path / "store" / "queries.lance" / "_versions").mkdir()
    (tmp_path / "store" / "queries.lance" / "_versions" / f"{2**64 - 2}.manifest").write_bytes(b"x")
    assert trouble(store.doctor()) == {"broken_journal": 1}


def test_a_finding_says_what_and_what_to_do(store):
    written(store, ["m2"], superseded_by="gone", state="superseded")
    assert store.doctor().findings[0] == HealthFinding(
        code="dangling_successor",
        severity=Severity.WARNING,
        message="1 memory is hidden behind a successor that is not there: it was deleted",
        count=1,
        sample=("m2",),
        fixable=False,
        advice="delete them too, or undo the deletion: `lmem delete ID`, `lmem revert VERSION`",
    )
