"""export-store and import-store: what goes out comes back, whole, once, or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from move_kit import flip, forge, memories, modes, rows_of, sound

from lance_memory import (
    ConflictError,
    FunctionEmbedder,
    InvalidInputError,
    LanceMemoryError,
    MemoryStore,
    NotFoundError,
    RejectedError,
    StorageError,
    StoreFormatError,
)
from lance_memory.move.archive import export as archive


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(memories, min_size=1, max_size=6), st.sampled_from(("archive", "archive.zip")))
def test_export_then_import_is_the_same_store(embedder, ticking, items, name):
    with tempfile.TemporaryDirectory() as folder:
        options = {"embedder": embedder, "clock": ticking()}
        store = MemoryStore.open(Path(folder, "one"), **options)
        store.add_many([sound(item) for item in items])
        active = [m.id for m in store.list()]
        if len(active) > 1:
            store.supersede(active[:1], "what took its place")
            store.retire(active[1:], reason="no reason")
        store.export_store(Path(folder, name))
        copy = MemoryStore.open(Path(folder, "two"), **options)
        result = copy.import_store(Path(folder, name))
        assert rows_of(copy).equals(rows_of(store))
        assert (result.stored, result.conflicts) == (store.count(states="any"), ())
        assert copy.import_store(Path(folder, name)).version == result.version


def test_null_columns_stay_null(store, other, tmp_path):
    rows = {"content": ["a", "b"], "tags": pa.array([None, []], pa.list_(pa.string()))}
    store.add_many(pa.table(rows))
    store.export_store(tmp_path / "archive")
    other.import_store(tmp_path / "archive")
    assert rows_of(other).equals(rows_of(store))
    assert rows_of(other)["tags"].null_count == 1


def test_a_memory_without_a_vector_stays_without_one(store, other, tmp_path):
    store.add_many(["a b", "c d"])
    store.export_store(tmp_path / "archive")

    def without_second(table):
        column = pa.array(
            [table["embedding"][0].as_py(), None], table.schema.field("embedding").type
        )
        return table.set_column(
            table.column_names.index("embedding"), table.schema.field("embedding"), column
        )

    forge(tmp_path / "archive", table=without_second)
    other.import_store(tmp_path / "archive")
    assert other.stats().without_embedding == 1


def test_several_files_make_one_version(full, other, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_FILE_ROWS", 2)
    monkeypatch.setattr(archive, "BATCH_ROWS", 1)
    made = full.export_store(tmp_path / "archive")
    assert [file.memories for file in made.files] == [2, 2, 1]
    before = other.version
    result = other.import_store(tmp_path / "archive")
    assert (result.version, rows_of(other)) == (before + 1, rows_of(full))


def test_the_manifest_says_what_is_in_it(full, tmp_path):
    made = full.export_store(tmp_path / "archive.zip", user="ann")
    assert (made.memories, made.states) == (4, {"active": 2, "superseded": 2})
    assert (made.scope["user"], made.filtered) == ("ann", False)
    assert (made.embedding_model, made.dimension) == ("words-16", 16)
    assert made.version == full.version
    assert full.export_store(tmp_path / "x", states="active", dry_run=True).filtered
    assert not (tmp_path / "x").exists()


def test_a_version_is_the_same_bytes_again(full, tmp_path):
    full.tag("then")
    for name in ("one.zip", "two.zip"):
        full.at("then").export_store(tmp_path / name)
        full.add(f"written after {name}")
    one, two = ((tmp_path / name).read_bytes() for name in ("one.zip", "two.zip"))
    assert one == two


def test_an_earlier_version_can_be_exported(full, other, tmp_path):
    full.at(3).export_store(tmp_path / "archive")
    other.import_store(tmp_path / "archive")
    assert rows_of(other).equals(rows_of(full.at(3)))


def test_an_import_is_one_version_that_can_be_reverted(full, other, tmp_path):
    other.add("was here")
    full.export_store(tmp_path / "archive")
    made = other.import_store(tmp_path / "archive")
    assert [(e.operation, e.inserted) for e in other.log(limit=1)] == [("import", 5)]
    other.revert(made.version)
    assert [m.content for m in other.list(states="any")] == ["was here"]


def test_a_dry_run_writes_nothing_and_says_the_same(full, other, tmp_path):
    full.export_store(tmp_path / "archive")
    before = other.version
    planned = other.import_store(tmp_path / "archive", dry_run=True)
    assert (planned.stored, other.version, planned.dry_run) == (5, before, True)
    assert other.import_store(tmp_path / "archive").stored == 5


def test_archives_are_for_their_owner_alone(full, tmp_path):
    full.export_store(tmp_path / "deep" / "archive")
    full.export_store(tmp_path / "archive.zip")
    assert modes(tmp_path / "deep" / "archive") == ({"0o600"}, {"0o700"})
    assert oct((tmp_path / "archive.zip").stat().st_mode & 0o777) == "0o600"


def test_nothing_is_overwritten(full, tmp_path):
    (tmp_path / "file.zip").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    for name in ("file.zip", "folder"):
        with pytest.raises(InvalidInputError, match="something is at"):
            full.export_store(tmp_path / name)
    assert (tmp_path / "file.zip").read_text() == "mine"
    assert not [p for p in tmp_path.iterdir() if p.name.endswith(".new")]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-7])


def redirect(path):
    inside = path.with_name("elsewhere")
    path.rename(inside)
    path.symlink_to(inside)


@pytest.mark.parametrize("damage", [truncate, flip, os.unlink, redirect])
@pytest.mark.parametrize("name", ["memories-00000.parquet", "manifest.json"])
def test_a_damaged_archive_is_refused_with_its_file_named(damage, name, archived, other):
    damage(archived / name)
    before = other.version
    with pytest.raises((StorageError, StoreFormatError), match=name.replace(".", r"\.")):
        other.import_store(archived)
    assert (other.version, other.count(states="any")) == (before, 0)


@pytest.mark.parametrize("damage", [truncate, lambda path: flip(path, 300)])
def test_a_damaged_zip_is_refused(damage, full, other, tmp_path):
    full.export_store(tmp_path / "archive.zip")
    damage(tmp_path / "archive.zip")
    with pytest.raises((StorageError, StoreFormatError), match=r"archive\.zip"):
        other.import_store(tmp_path / "archive.zip")
    assert other.count(states="any") == 0


@pytest.mark.parametrize(
    "name", ["../out", "/etc/passwd", "a/../b", "a\\b", "C:x", "", "a\n", None]
)
def test_a_manifest_cannot_name_what_is_outside(name, archived, other):
    (file,) = json.loads((archived / "manifest.json").read_text())["files"]
    forge(archived, files=[{**file, "name": name}])
    with pytest.raises(StoreFormatError, match="a name or number in it is wrong"):
        other.import_store(archived)


def column(name, values):
    def changed(table):
        field = table.schema.field(name)
        made = pa.array([values] * len(table), field.type)
        return table.set_column(table.column_names.index(name), field, made)

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (column("embedding", [np.nan] * 16), "NaN"),
        (column("embedding", [0.0] * 16), "all zero"),
        (column("state", "lost"), "state='lost' is not known"),
        (column("content_hash", "0" * 32), "content_hash is not that of the content"),
        (column("metadata", "[1]"), "takes a mapping"),
        (column("metadata", "{"), "not JSON"),
        (
            column("relationships", [{"relation": "", "target": "x", "note": ""}]),
            "without a relation",
        ),
        (column("importance", 2.0), "not within 0..1"),
        (column("id", "one"), "twice"),
        (lambda table: pa.concat_tables([table, table]), "twice"),
    ],
)
def test_what_no_store_could_hold_is_refused(change, message, archived, other):
    forge(archived, table=change)
    with pytest.raises(RejectedError, match=message):
        other.import_store(archived)
    assert other.count(states="any") == 0


def test_other_columns_are_refused(archived, other):
    forge(archived, table=lambda table: table.drop_columns(["tags"]))
    with pytest.raises(StorageError, match="others: tags is missing, not list<item: string>;"):
        other.import_store(archived)


def test_a_later_release_and_other_files_are_told_apart(full, other, tmp_path):
    full.export_store(tmp_path / "archive")
    forge(tmp_path / "archive", schema_version=99)
    (tmp_path / "text").write_text("hello")
    for name, kind, message in (
        ("archive", StoreFormatError, "upgrade"),
        ("text", StoreFormatError, "no archive"),
        ("store", StoreFormatError, "no archive"),
        ("nothing", NotFoundError, "no archive at"),
    ):
        with pytest.raises(kind, match=message):
            other.import_store(tmp_path / name)


def test_a_changed_memory_is_a_conflict_that_is_listed(full, tmp_path):
    full.export_store(tmp_path / "archive")
    full.update("c", content="train at ten")
    before = full.version
    with pytest.raises(ConflictError, match="later revision") as refused:
        full.import_store(tmp_path / "archive")
    assert (refused.value.ids, full.version) == (("c",), before)
    listed = full.import_store(tmp_path / "archive", dry_run=True)
    assert [(c.id, c.stored) for c in listed.conflicts] == [("c", False)]
    kept = full.import_store(tmp_path / "archive", on_conflict="skip")
    assert (kept.stored, kept.already_there, kept.version) == (0, 4, before)
    with pytest.raises(InvalidInputError, match="refuse, skip, fresh"):
        full.import_store(tmp_path / "archive", on_conflict="overwrite")


def test_two_stores_merge_under_fresh_ids(full, other, tmp_path):
    """Ids that callers gave clash; what points to them follows."""
    other.add("another a", user="eve", id="a")
    other.add("another c", user="eve", id="c")
    full.add("see the train", id="e", relationships=[{"relation": "about", "target": "c"}])
    full.export_store(tmp_path / "archive")
    before = {m.id: m for m in full.list(states="any")}
    result = other.import_store(tmp_path / "archive", on_conflict="fresh")
    here = {c.id: c.here for c in result.conflicts}
    assert (result.stored, sorted(here)) == (6, ["a", "c"])
    successor = before["a"].superseded_by
    moved = other.get(here["a"])
    assert (moved.content, moved.superseded_by) == ("red kettle", successor)
    assert {r.target for r in other.get(successor).relationships} == {here["a"], "b"}
    assert [r.target for r in other.get("e").relationships] == [here["c"]]
    assert (other.get("a").content, other.get("c").content) == ("another a", "another c")
    again = other.import_store(tmp_path / "archive", on_conflict="fresh")
    assert (again.stored, again.version) == (0, result.version)


def test_a_live_key_stays_with_who_has_it(full, other, tmp_path):
    other.add("the train is at ten", user="ann", key="train", id="mine")
    full.export_store(tmp_path / "archive")
    with pytest.raises(ConflictError, match="key 'train' is held by mine"):
        other.import_store(tmp_path / "archive")
    skipped = other.import_store(tmp_path / "archive", on_conflict="skip")
    assert [(c.id, c.here, c.stored) for c in skipped.conflicts] == [("c", "mine", False)]
    assert other.find("c") is None
    fresh = other.import_store(tmp_path / "archive", on_conflict="fresh")
    assert (fresh.stored, other.get("c").key, other.scoped(user="ann").get("train").id) == (
        1,
        None,
        "mine",
    )


def test_the_same_content_is_one_memory(full, other, tmp_path):
    """Also under another id; what points to it follows."""
    other.add("train at nine", user="ann", key="train", id="mine")
    full.add("see the train", id="e", relationships=[{"relation": "about", "target": "c"}])
    full.export_store(tmp_path / "archive")
    result = other.import_store(tmp_path / "archive")
    assert (result.stored, result.already_there) == (5, 1)
    assert [r.target for r in other.get("e").relationships] == ["mine"]


def test_a_scope_is_a_boundary_both_ways(full, other, tmp_path):
    full.scoped(user="ann").export_store(tmp_path / "ann")
    full.export_store(tmp_path / "all")
    other.import_store(tmp_path / "ann")
    assert {m.user for m in other.list(states="any")} == {"ann"}
    result = other.scoped(user="bob").import_store(tmp_path / "all")
    assert (result.stored, result.outside) == (1, 4)
    assert [m.id for m in other.list(states="any", user="bob")] == ["d"]


@pytest.fixture
def of_another_model(tmp_path, clock):
    embedder = FunctionEmbedder(lambda texts: np.ones((len(texts), 4)), name="ones", dimension=4)
    return MemoryStore.open(tmp_path / "ones", embedder=embedder, clock=clock)


def test_vectors_of_another_model_are_refused_or_made_anew(full, of_another_model, tmp_path):
    full.export_store(tmp_path / "archive")
    with pytest.raises(StoreFormatError, match=r"'words-16'.*'ones'.*lmem reembed"):
        of_another_model.import_store(tmp_path / "archive")
    steps = []
    done = of_another_model.import_store(
        tmp_path / "archive", embed=True, progress=lambda *step: steps.append(step)
    )
    assert (done.stored, done.embedded, steps) == (5, 5, [(5, 5)])
    mine, theirs = rows_of(of_another_model), rows_of(full)
    assert mine.drop_columns(["embedding"]).equals(theirs.drop_columns(["embedding"]))
    assert mine["embedding"].to_pylist() == [[1.0] * 4] * 5
    assert of_another_model.import_store(tmp_path / "archive", embed=True).stored == 0


def test_a_new_store_takes_the_archives_model(full, tmp_path, clock):
    full.export_store(tmp_path / "archive.zip")
    made = MemoryStore.open(tmp_path / "new", like=tmp_path / "archive.zip", clock=clock)
    assert made.import_store(tmp_path / "archive.zip").stored == 5
    assert made.stats().embedding_model == "words-16"
    with pytest.raises(LanceMemoryError):
        MemoryStore.open(tmp_path / "newer", like=tmp_path / "nothing")
    assert not (tmp_path / "newer").exists()


def test_an_export_leaves_no_hold_behind(full, tmp_path):
    full.export_store(tmp_path / "archive")
    assert list(Path(full.uri).rglob("lmem-hold-*")) == []


def edge(relation, target):
    return [{"relation": relation, "target": target, "note": ""}]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"key": ["k", "k", "k", None]}, "3 memories share their key .*: a, b, c"),
        ({"state": ["superseded"] * 4}, "4 memories are superseded and without successor"),
        ({"superseded_by": [None, "a", None, None]}, "1 memory is superseded .*: b"),
        (
            {
                "state": ["superseded", "superseded", "active", "active"],
                "superseded_by": ["b", "a", None, None],
            },
            "2 memories lead back to themselves .*: a, b",
        ),
        (
            {"state": ["superseded", *["active"] * 3], "superseded_by": ["a", *[None] * 3]},
            "1 memory leads back to itself .*: a",
        ),
        (
            {"relationships": [edge("updates", "b"), edge("consolidates", "a"), [], []]},
            "2 memories lead back to themselves .*: a, b",
        ),
    ],
)
def test_rows_that_break_the_rules_of_a_store_are_refused_by_name(
    values, message, other, reopen, tmp_path
):
    store = reopen(tmp_path / "plain")
    store.add_many([{"content": f"number {i}", "id": i} for i in "abcd"])
    store.export_store(tmp_path / "archive")

    def broken(table):
        table = table.sort_by("id")
        for name, column in values.items():
            field = table.schema.field(name)
            made = pa.array(column, field.type)
            table = table.set_column(table.column_names.index(name), field, made)
        return table

    forge(tmp_path / "archive", table=broken)
    for dry_run in (True, False):
        with pytest.raises(RejectedError, match=message):
            other.import_store(tmp_path / "archive", dry_run=dry_run)
    assert other.count(states="any") == 0


def test_a_circle_by_way_of_the_stores_own_rows_is_refused(other, reopen, tmp_path):
    store = reopen(tmp_path / "plain")
    store.add("one", id="a", state="superseded", superseded_by="b")
    store.export_store(tmp_path / "archive")
    other.add("two", id="b", state="superseded", superseded_by="a")
    with pytest.raises(RejectedError, match=r"1 memory leads back to itself .*: a;"):
        other.import_store(tmp_path / "archive")


def test_what_deletion_left_dangling_is_moved_as_it_is(full, other, tmp_path):
    """A successor that is gone is the only trace that something took a memory's place."""
    full.delete(full.get("a").superseded_by)
    full.export_store(tmp_path / "archive")
    other.import_store(tmp_path / "archive")
    assert rows_of(other).equals(rows_of(full))


def test_endings_say_what_an_archive_is(full, other, tmp_path):
    full.export_store(tmp_path / "x.ZIP")
    assert ((tmp_path / "x.ZIP").is_file(), other.import_store(tmp_path / "x.ZIP").stored) == (
        True,
        5,
    )
    for name in ("a.csv", "a.tar.gz", "a.parquet"):
        for dry_run in (True, False):
            with pytest.raises(InvalidInputError, match="ends like a file of another kind"):
                full.export_store(tmp_path / name, dry_run=dry_run)
    full.export_store(tmp_path / "of 2025.12")
    assert (tmp_path / "of 2025.12" / "manifest.json").is_file()
