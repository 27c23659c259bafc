"""A backup that is there has its files, also after a power cut."""

from __future__ import annotations

from lance_memory.files import to_disk
from lance_memory.move.backup import target as backups


def test_the_names_of_a_backups_files_are_on_the_disk_before_its_manifest(
    tmp_path, reopen, monkeypatch
):
    store, place, before = reopen(tmp_path / "store", upkeep=None), tmp_path / "backups", set()
    store.add_many(["one", "two"])

    def noted(path):
        to_disk(path)
        if not list((place / "backups").glob("*.json")):
            before.add(path)

    monkeypatch.setattr(backups, "to_disk", noted)
    store.backup(place)
    folders = {path.parent for path in (place / "files").rglob("*") if path.is_file()}
    assert {*folders, place / "files", place} <= before
