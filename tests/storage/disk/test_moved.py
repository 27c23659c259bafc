"""A store that is moved by hand keeps its branches."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest

from lance_memory import StorageError


@pytest.fixture
def branched(tmp_path, reopen):
    store = reopen(tmp_path / "old" / "store", upkeep=None)
    store.add_many([f"memory {number}" for number in range(5)])
    side = store.branch("side")
    side.add("on the side")
    side.tag("on-side")
    side.branch("deeper").add("on a branch of the branch")
    return store


def trouble(health):
    """Code -> count, of what is worse than a note; the clock of these stores is behind."""
    found = [one for one in health.findings if one.code != "clock_skew"]
    return {one.code: one.count for one in found if one.severity != "note"}


def test_the_branches_of_a_moved_store_are_found_named_and_brought_home(branched, tmp_path, reopen):
    (tmp_path / "old").rename(tmp_path / "new")
    store = reopen(tmp_path / "new" / "store", upkeep=None)
    with pytest.raises(StorageError, match=r"was moved or copied, .* `lmem doctor --fix` makes it"):
        reopen(store.uri, branch="side")
    found = store.doctor()
    assert trouble(found)["moved"] == 2
    assert "damaged_manifest" not in trouble(found)
    fixed = store.doctor(fix=True)
    assert ([one.code for one in fixed.fixed], trouble(fixed)) == (["moved"], {})
    side, deeper = (reopen(store.uri, branch=name, upkeep=None) for name in ("side", "deeper"))
    assert (side.count(), deeper.count(), side.at("on-side").count()) == (6, 7, 6)
    side.add("goes on")
    side.optimize(clean_older_than=timedelta(0))
    assert side.count() == 7


def test_a_copy_reads_its_own_files_once_it_is_brought_home(branched, tmp_path, reopen):
    shutil.copytree(branched.uri, tmp_path / "copy")
    copy = reopen(tmp_path / "copy", upkeep=None)
    assert trouble(copy.doctor())["moved"] == 2
    copy.doctor(fix=True)
    shutil.rmtree(branched.uri)
    assert reopen(copy.uri, branch="deeper").count() == 7


def test_a_checkout_that_shares_the_files_of_another_store_is_left_as_it_is(
    branched, tmp_path, reopen
):
    branched.checkout(branched.version, tmp_path / "out")
    out = reopen(tmp_path / "out", upkeep=None)
    out.branch("side").add("on the side")
    (tmp_path / "out").rename(tmp_path / "moved")
    again = reopen(tmp_path / "moved", upkeep=None)
    again.doctor(fix=True)
    assert (again.count(), reopen(again.uri, branch="side").count()) == (5, 6)
