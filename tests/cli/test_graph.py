"""log --graph: lanes that lead from each version to the one it came from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_memory import FunctionEmbedder, LogEntry, MemoryStore
from lmem.graph import Line, laid_out, ordered

START = datetime(2025, 1, 1, tzinfo=UTC)


def entry(version, minutes, **more):
    at = START + timedelta(minutes=minutes)
    return LogEntry(version=version, at=at, operation="add", inserted=1, **more)


def line(name, versions, origin=None, tags=None, **more):
    """A branch with a version every minute of its number, newest first."""
    entries = [entry(v, m) for v, m in sorted(versions.items(), reverse=True)]
    return Line(name=name, entries=entries, tags=tags or {}, origin=origin, **more)


def drawn(*lines):
    return [
        f"{rail} {node.name}" if node else rail for rail, node in laid_out(ordered(list(lines)))
    ]


def test_a_tag_on_a_version_that_is_not_listed_stands_at_the_one_it_means(lmem, tmp_path):
    """Upkeep makes versions after a write, and a tag lands there: it would be shown nowhere."""
    store = str(tmp_path / "store")
    with MemoryStore.open(store, upkeep=None) as made:
        made.add_many([f"memory {n}" for n in range(3)])
        written = made.version
        made.optimize()
        made.tag("talks")
        tagged = made.version
        made.add("later")
    assert tagged > written
    for words in (["log"], ["log", "--graph"]):
        shown = lmem(*words, "--store", store).out
        (line,) = [one for one in shown.splitlines() if "talks" in one]
        assert f"talks @{tagged}" in line
        assert str(written) in line.split("talks")[0]
        then = lmem(*words, "--store", store, "--at", str(written)).out
        assert "talks" not in then  # it was not there yet
    exact = lmem("log", "--store", store, "--format", "json").json
    assert [entry["tags"] for entry in exact] == [[], []]


# -- the layout


def test_a_branch_is_a_lane_that_leaves_where_it_began():
    main = line("main", {1: 1, 2: 2, 3: 5})
    beside = line("try", {3: 3, 4: 6}, origin=("main", 2))
    assert drawn(main, beside) == ["  * try/4", "* | 3", "| * try/3", "|/", "* 2", "* 1"]


def test_main_has_the_first_lane_also_where_only_a_branch_goes_on():
    main, beside = line("main", {1: 1, 2: 2}), line("try", {3: 3}, origin=("main", 2))
    assert drawn(main, beside) == ["  * try/3", " /", "* 2", "* 1"]


def test_a_lane_that_crosses_others_is_drawn_across_them():
    main = line("main", {1: 1, 2: 2, 9: 9})
    near = line("near", {3: 7}, origin=("main", 1))
    far = line("far", {4: 6}, origin=("main", 2))
    assert drawn(main, near, far) == [
        "* 9", "| * near/3", "| | * far/4", "|_|/", "* | 2", "|/", "* 1",
    ]  # fmt: skip


def test_a_branch_of_which_nothing_is_listed_hangs_its_own_on_what_is_below():
    main = line("main", {1: 1})
    empty = line("empty", {}, origin=("main", 1))
    deep = line("deep", {2: 2}, origin=("empty", 1))
    nodes = {node.place: node for node in ordered([main, empty, deep])}
    assert nodes["deep", 2].parent == ("main", 1)
    assert nodes["main", 1].branches == ("main", "empty")


def test_a_clock_that_was_behind_puts_no_version_below_the_one_it_came_from():
    main = line("main", {1: 9, 2: 3, 3: 1})
    assert drawn(main) == ["* 3", "* 2", "* 1"]


def test_what_is_gone_and_what_changed_no_memory_have_marks_of_their_own():
    entries = [entry(3, 3), entry(2, 2, upkeep=True), entry(1, 1, readable=False)]
    assert drawn(Line(name="main", entries=entries, tags={})) == ["* 3", "o 2", "x 1"]


@st.composite
def forests(draw):
    lines = [line("main", {v: draw(st.integers(0, 30)) for v in range(1, draw(st.integers(2, 6)))})]
    for name in "abcde"[: draw(st.integers(0, 5))]:
        parent = draw(st.sampled_from(lines))
        first = draw(st.integers(0, 6))
        versions = range(first + 1, first + 1 + draw(st.integers(0, 4)))
        made = {v: draw(st.integers(0, 30)) for v in versions}
        lines.append(line(name, made, origin=(parent.name, first)))
    return lines


def leads_to(rows, at, column):
    """The row of the mark that one arrives at, going down from a mark."""
    for number in range(at + 1, len(rows)):
        row = rows[number].ljust(column + 2)
        if row[column] in "*ox":
            return number
        if row[column] == "|":
            continue
        if column and row[column - 1] == "/":
            place = column - 1
            while place > 2 and row[place - 2] == "_":
                place -= 2
            column = place - 1
            continue
        return None
    return None


@settings(max_examples=60, deadline=None)
@given(forests())
def test_the_drawing_says_of_each_version_which_it_came_from(lines):
    found = list(laid_out(ordered(lines)))
    rows = [rail for rail, _ in found]
    assert sum(1 for _, node in found if node) == sum(len(one.entries) for one in lines)
    for number, (rail, node) in enumerate(found):
        if node is None:
            continue
        (column,) = (place for place, cell in enumerate(rail) if cell in "*ox")
        below = leads_to(rows, number, column)
        assert (below is not None and found[below][1].place) == (node.parent or False), rows


# -- the command


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """Two branches, a revert, a rollback, a tag; main ends at 8."""
    path = tmp_path_factory.mktemp("graph") / "memory"
    moments = iter(START + timedelta(minutes=number) for number in range(1_000))
    embedder = FunctionEmbedder(
        lambda texts: [[1.0, len(t)] for t in texts], name="two", dimension=2
    )
    store = MemoryStore.open(
        path, author="ann", embedder=embedder, clock=lambda: next(moments), upkeep=None
    )
    first = store.add("The kettle is red.", user="u")
    store.tag("start")
    beside = store.branch("try")
    beside.add("A thing on the branch.", user="u")
    gone = store.retire(first.id, reason="it is broken")
    beside.branch("deeper").add("Deep.", user="v")
    store.revert(gone.version, reason="it was mended")
    store.add("Another thing.", user="v")
    store.rollback("start", reason="a new begin")
    beside.branch("idle")
    return path


def lines_of(done):
    assert done.code == 0, done.err
    return [" ".join(text.split()) for text in done.out.splitlines()]


def without_times(text):
    words = text.split(" ")
    return " ".join(
        w for w in words if not (w.startswith("2025-") or (len(w) == 5 and w[2] == ":"))
    )


def test_the_graph_has_all_branches_tags_and_what_undid_what(story, lmem):
    done = lmem("log", "--graph", "--store", story)
    start = int(lmem("tag", "--store", story, "--format", "json").json["start"])
    assert list(map(without_times, lines_of(done))) == [
        f"* {start + 4} (main) rollback to {start} -1 ann: a new begin",
        f"* {start + 3} add +1 ann",
        f"* {start + 2} revert of {start + 1} ~1 ann: it was mended",
        f"| * deeper/{start + 2} (deeper) add +1 ann",
        f"* | {start + 1} retire ~1 ann: it is broken",
        f"| * try/{start + 1} (idle, try) add +1 ann",
        "|/",
        f"* {start} (tag: start) add +1 ann",
    ]
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_graph_of_a_past_is_what_led_there(story, lmem):
    start = lmem("tag", "--store", story, "--format", "json").json["start"]
    done = lmem("log", "--graph", "--at", str(start + 2), "--branch", "deeper", "--store", story)
    assert list(map(without_times, lines_of(done))) == [
        f"* deeper/{start + 2} (deeper) add +1 ann",
        f"* try/{start + 1} (try) add +1 ann",
        "/",
        f"* {start} (tag: start) add +1 ann",
    ]
    past = lmem("log", "--graph", "--at", "start", "--store", story)
    assert list(map(without_times, lines_of(past))) == [f"* {start} (tag: start) add +1 ann"]


def test_the_graph_as_json_names_the_version_that_each_came_from(story, lmem):
    found = lmem("log", "--graph", "--format", "json", "--store", story).json
    plain = lmem("log", "--format", "json", "--store", story).json
    edges = {(e["branch"], e["version"]): e["parent"] for e in found}
    start = plain[-1]["version"]
    assert edges["try", start + 1] == {"branch": "main", "version": start}
    assert edges["deeper", start + 2] == {"branch": "try", "version": start + 1}
    assert edges["main", start] is None
    more = {"branch", "branches", "parent"}
    same = [{k: v for k, v in e.items() if k not in more} for e in found if e["branch"] == "main"]
    assert same == plain
    limited = lmem("log", "--graph", "-n", "2", "--format", "json", "--store", story).json
    assert limited == found[:2]
    quiet = lmem("log", "--graph", "-n", "4", "--format", "quiet", "--store", story).out.split()
    assert quiet == [str(start + 4), str(start + 3), str(start + 2), f"deeper/{start + 2}"]


def test_the_graph_of_a_scope_has_what_was_written_in_it(story, lmem):
    found = lmem("log", "--graph", "--user", "v", "--format", "json", "--store", story).json
    assert {(e["branch"], e["operation"]) for e in found} == {
        ("main", "add"), ("main", "rollback"), ("deeper", "add"),
    }  # fmt: skip


@pytest.mark.parametrize("words", [["log"], ["log", "--graph"]])
def test_a_negative_limit_is_refused(words, lmem, store):
    """`log --graph --limit -1` once listed nothing, and was done."""
    done = lmem(*words, "--limit", "-1")
    assert (done.code, done.out) == (2, "")
    assert "--limit" in done.err


def test_a_damaged_version_is_not_called_cleaned_up(lmem, tmp_path):
    store = tmp_path / "store"
    with MemoryStore.open(store, upkeep=None) as made:
        for text in ("one", "two", "three"):
            made.add(text)
        there = made.version - 1
    manifest = f"{2**64 - 1 - there}.manifest"
    (store / "memories.lance" / "_versions" / manifest).write_bytes(b"torn")
    lines = lmem("log", "--store", str(store)).out.splitlines()
    (line,) = [line for line in lines if line.startswith(f"{there} ")]
    assert "damaged" in line
    assert "cleaned up" not in line
