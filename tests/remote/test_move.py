"""A store in an object store moves to a disk and back: archives, and backups of it."""

from __future__ import annotations

import pytest

from lance_memory import BackupSet, InvalidInputError

pytestmark = pytest.mark.slow


def rows_of(view):
    return view.to_arrow().combine_chunks().sort_by("id")


def test_a_remote_store_is_archived_backed_up_and_restored(s3, bucket, reopen, tmp_path):
    store = reopen(f"{bucket}/memory", storage_options=s3.options)
    store.add_many(["a b", {"content": "c d", "key": "k"}])
    tag = store.tag("start")
    side = store.branch("side")
    side.add("on it")
    store.export_store(tmp_path / "archive.zip")
    other = reopen(f"{bucket}/other", storage_options=s3.options)
    other.import_store(tmp_path / "archive.zip")
    assert rows_of(other).equals(rows_of(store))

    first = store.backup(tmp_path / "backups")
    store.retire("k")
    assert store.backup(tmp_path / "backups").copied < first.copied
    assert BackupSet(tmp_path / "backups").verify() == []
    BackupSet(tmp_path / "backups").restore(tmp_path / "restored")
    restored = reopen(tmp_path / "restored", create=False)
    assert (rows_of(restored), restored.tags()) == (rows_of(store), {"start": tag})
    assert rows_of(reopen(tmp_path / "restored", branch="side")).equals(rows_of(side))


def test_a_checkout_stays_in_the_same_kind_of_place(s3, bucket, reopen, tmp_path):
    store = reopen(f"{bucket}/memory", storage_options=s3.options)
    store.add("a b")
    with pytest.raises(InvalidInputError, match="another kind of place"):
        store.checkout(store.version, tmp_path / "local")
    assert ([*tmp_path.iterdir()], store.tags()) == ([], {})
