"""Numbers are said as people say them, and what is printed of a result fits a screen."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from lance_memory import BackupSet, Decay
from lance_memory.wording import counted, ranges, shown, some, worded

PLURALS_OF_ONE = re.compile(
    r"\b1 (rows|versions|files|fragments|memories|bytes|indices|tables|checks|vectors)\b"
)


def test_a_number_and_its_word_agree():
    assert [counted(n, "row") for n in (0, 1, 2, 1_000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,000 rows",
    ]
    assert counted(2, "memory", "memories") == "2 memories"
    told = "{n} [row is|rows are] here"
    assert [worded(told, n) for n in (1, 2)] == ["1 row is here", "2 rows are here"]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [([], "none"), ([5], "5"), ([1, 2], "1-2"), ([3, 4, 5, 20, 22, 23], "3-5, 20, 22-23")],
)
def test_runs_of_versions_are_told_by_their_ends(numbers, told):
    assert ranges(numbers) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n b", "a b"),
        ("abcdefgh", "abcdefgh"),
        ("abcdefghi", "abcdefg…"),
        ("abcdef hi", "abcdef…"),
    ],
)
def test_a_long_text_is_shown_in_one_line_and_ends_with_three_dots(text, told):
    assert shown(text, 8) == told


def test_of_many_the_first_few_are_told():
    assert [some([]), some("ab"), some(range(7), 3)] == ["none", "a, b", "0, 1, 2 and 4 more"]


@pytest.fixture
def many(tmp_path, reopen):
    """A hundred memories of one user."""
    store = reopen(tmp_path / "store", upkeep=None)
    store.add_many([{"content": f"memory {n}", "user": "ann"} for n in range(100)])
    return store


def test_every_result_prints_in_a_few_lines(many, tmp_path):
    ids = [m.id for m in many.list()]
    wide = many.retire(ids)
    printed = {
        "added": many.add_many([f"more {n}" for n in range(100)]),
        "retired": wide,
        "rollback": many.rollback(wide.version - 1, dry_run=True),
        "diff": many.diff(1),
        "upkeep plan": many.optimize(dry_run=True),
        "upkeep": many.optimize(index=None),
        "backup": many.backup(tmp_path / "backups"),
        "archive": many.export_store(tmp_path / "archive", dry_run=True),
        "export": many.export(tmp_path / "training", dry_run=True),
        "health": many.doctor(),
        "fading": many.plan_retirement(
            below=1.0, decay=Decay(half_life=timedelta(days=1)), user="ann"
        ),
        "plan": many.consolidate(user="ann", dry_run=True),
        "forget plan": many.forget(user="ann", dry_run=True),
        "forget": many.forget(user="ann"),
    }
    texts = {name: str(result) for name, result in printed.items()}
    assert {name: len(text) for name, text in texts.items() if len(text) > 1_500} == {}
    assert texts["retired"] == f"version {wide.version}: retire, 100 updated"
    assert texts["added"] == f"version {wide.version + 1}: 100 stored, 0 already there"
    assert f"100 memories: {ids[0]}, " in texts["forget plan"]
    assert " and 95 more" in texts["forget plan"]
    assert ": forgot 100 memories; looked for in " in texts["forget"]
    assert BackupSet(tmp_path / "backups").backups()[0].name in texts["backup"]
    assert ", ".join(map(str, range(1, 9))) not in "".join(texts.values())


def test_of_one_nothing_is_told_in_the_plural(tmp_path, reopen):
    store = reopen(tmp_path / "one", upkeep=None)
    store.add("the only one", user="ann")
    health = store.doctor(deep=True)
    texts = [
        str(health),
        *(text for one in health.findings for text in one.sample),
        str(store.optimize(dry_run=True)),
        str(store.forget(user="ann", dry_run=True)),
        str(store.export_store(tmp_path / "x", dry_run=True)),
        str(store.backup(tmp_path / "b")),
        str(store.forget(user="ann")),
    ]
    assert [text for text in texts if PLURALS_OF_ONE.search(text)] == []
