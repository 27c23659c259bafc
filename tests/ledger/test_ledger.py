"""A ledger is one thing for all threads and processes, whatever it is kept in."""

from __future__ import annotations

import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from forked import Forked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_memory.ledger import numbered, open_ledger

CHILD = Path(__file__).with_name("ledger_child.py")
HOSTILE = [
    "x' OR '1'='1",
    '"',
    "%",
    "_",
    "*",
    "a?[b]\\",
    "\n",
    "\0",
    "é",
    "\ud800",
    "",
    "a:b",
    "x" * 10**6,
]


def test_what_is_put_is_there_until_it_is_removed(ledger):
    assert ledger.get("s", "k") is None
    ledger.put("s", "k", b"one")
    ledger.put("s", "k", b"\0two")
    assert ledger.get("s", "k") == b"\0two"
    assert ledger.get("other", "k") is None
    ledger.remove("s", "k")
    ledger.remove("s", "k")
    assert ledger.get("s", "k") is None


def test_a_value_may_be_empty_and_is_then_no_missing_one(ledger):
    ledger.put("s", "k", b"")
    assert ledger.get("s", "k") == b""
    assert not ledger.swap("s", "k", old=None, new=b"x")
    assert ledger.swap("s", "k", old=b"", new=b"x")


def test_a_swap_is_made_only_where_the_old_value_is(ledger):
    assert ledger.swap("s", "k", old=None, new=None)
    assert not ledger.swap("s", "k", old=b"a", new=b"b")
    assert ledger.swap("s", "k", old=None, new=b"a")
    assert not ledger.swap("s", "k", old=None, new=b"b")
    assert not ledger.swap("s", "k", old=None, new=None)
    assert not ledger.swap("s", "k", old=b"b", new=b"c")
    assert ledger.swap("s", "k", old=b"a", new=b"c")
    assert ledger.get("s", "k") == b"c"
    assert not ledger.swap("s", "k", old=b"a", new=None)
    assert ledger.swap("s", "k", old=b"c", new=None)
    assert ledger.get("s", "k") is None


def test_sums_are_no_values(ledger):
    assert ledger.counted("s", "k") == 0
    assert [ledger.add("s", "k", amount) for amount in (2, 3, -10)] == [2, 5, -5]
    ledger.put("s", "k", b"v")
    assert (ledger.counted("s", "k"), ledger.get("s", "k")) == (-5, b"v")
    assert list(ledger.items("s")) == [("k", b"v")]
    ledger.remove("s", "k")
    assert (ledger.counted("s", "k"), ledger.get("s", "k")) == (0, None)


def test_a_hostile_name_matches_only_itself(ledger):
    for number, name in enumerate(HOSTILE):
        ledger.put("s", name, b"%d" % number)
        ledger.put(name, "k", b"%d" % number)
    for number, name in enumerate(HOSTILE):
        assert ledger.get("s", name) == ledger.get(name, "k") == b"%d" % number
        found = [key for key, _ in ledger.items("s", prefix=name)]
        assert found == sorted((k for k in HOSTILE if k.startswith(name)), key=codes)


def codes(name):
    return name.encode("utf-8", "surrogatepass")


def test_items_come_in_the_order_of_their_keys_however_many(ledger):
    names = [f"{prefix}{n:05d}" for prefix in "ba" for n in range(1200)]
    for name in names:
        ledger.put("s", name, name.encode())
    ordered = sorted(names)
    assert list(ledger.items("s")) == [(name, name.encode()) for name in ordered]
    assert [key for key, _ in ledger.items("s", prefix="a")] == ordered[:1200]
    assert [key for key, _ in ledger.items("s", prefix="b0119")] == ordered[-10:]
    assert [key for key, _ in ledger.items("s", start="b00600")] == ordered[-600:]
    assert [key for key, _ in ledger.items("s", prefix="a", start="a01198")] == ordered[1198:1200]
    assert list(ledger.items("s", prefix="a", start="b")) == []


def test_what_is_appended_has_the_next_number_for_good(ledger):
    assert ledger.appended("s") == 0
    assert [ledger.append("s", b"%d" % n) for n in (1, 2, 3)] == [1, 2, 3]
    assert ledger.append("other", b"x") == 1
    ledger.remove("s", numbered(3))
    ledger.remove_all("s", [numbered(1), numbered(7)])
    assert (ledger.append("s", b"4"), ledger.appended("s")) == (4, 4)
    assert list(ledger.items("s")) == [(numbered(2), b"2"), (numbered(4), b"4")]
    assert [ledger.counted("s", key) for key in ("", numbered(4))] == [0, 0]


def test_numbers_sort_as_their_keys_do():
    numbers = [1, 9, 10, 15, 16, 255, 256, 2**40]
    assert sorted(map(numbered, reversed(numbers))) == [numbered(n) for n in numbers]
    assert {len(numbered(n)) for n in numbers} == {16}


def test_a_space_goes_with_all_that_is_in_it_and_begins_anew(ledger):
    for space in ("s", "st"):
        ledger.append(space, b"v")
        ledger.put(space, "k", b"v")
        ledger.add(space, "k", 5)
    assert ledger.drop("s")
    assert ledger.drop("s")
    assert (list(ledger.items("s")), ledger.counted("s", "k"), ledger.appended("s")) == ([], 0, 0)
    assert [key for key, _ in ledger.items("st")] == [numbered(1), "k"]
    assert (ledger.counted("st", "k"), ledger.append("s", b"w")) == (5, 1)


def test_a_space_that_was_appended_to_meanwhile_is_not_dropped(ledger):
    ledger.append("s", b"1")
    seen = ledger.appended("s")
    ledger.append("s", b"2")
    assert not ledger.drop("s", upto=seen)
    assert [value for _, value in ledger.items("s")] == [b"1", b"2"]
    assert ledger.drop("s", upto=2)
    assert ledger.drop("s", upto=0)
    assert list(ledger.spaces()) == []


def test_spaces_are_listed_as_long_as_anything_is_in_them(ledger):
    ledger.put("ab", "k", b"v")
    ledger.add("ac", "n", 1)
    ledger.append("b*", b"v")
    ledger.put("b", "k", b"v")
    assert list(ledger.spaces()) == ["ab", "ac", "b", "b*"]
    assert list(ledger.spaces(prefix="a")) == ["ab", "ac"]
    assert list(ledger.spaces(prefix="b*")) == ["b*"]
    ledger.remove("ab", "k")
    ledger.remove("ac", "n")
    ledger.remove("b*", numbered(1))
    assert list(ledger.spaces()) == ["b", "b*"]  # the number of "b*" is never given again


def test_a_hostile_space_is_listed_as_it_is_named(ledger):
    for name in HOSTILE:
        ledger.append(name, b"v")
    assert list(ledger.spaces()) == sorted(HOSTILE, key=codes)
    for name in HOSTILE:
        found = [space for space in HOSTILE if space.startswith(name)]
        assert list(ledger.spaces(prefix=name)) == sorted(found, key=codes)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_ledger_is_a_plain_dict(ledger, data):
    space = uuid.uuid4().hex  # examples must not meet
    model, sums, last = {}, {}, 0
    keys, values = st.sampled_from(["a", "b", "ab"]), st.sampled_from([b"", b"1", b"2"])
    for _ in range(data.draw(st.integers(1, 12))):
        key, value = data.draw(keys), data.draw(values)
        match data.draw(st.sampled_from(CHANGES)):
            case "put":
                ledger.put(space, key, value)
                model[key] = value
            case "swap":
                old, new = data.draw(st.none() | values), data.draw(st.none() | values)
                fits = model.get(key) == old
                assert ledger.swap(space, key, old=old, new=new) == fits
                if fits:
                    model = {k: v for k, v in {**model, key: new}.items() if v is not None}
            case "add":
                sums[key] = sums.get(key, 0) + len(value)
                assert ledger.add(space, key, len(value)) == sums[key]
            case "remove":
                ledger.remove(space, key)
                model.pop(key, None)
                sums.pop(key, None)
            case "append":
                last += 1
                assert ledger.append(space, value) == last
                model[numbered(last)] = value
            case "remove_all":
                number = numbered(data.draw(st.integers(1, 4)))
                ledger.remove_all(space, [key, number])
                model = {k: v for k, v in model.items() if k not in (key, number)}
            case "drop":
                upto = data.draw(st.none() | st.integers(0, 4))
                assert ledger.drop(space, upto=upto) == (upto is None or last <= upto)
                if upto is None or last <= upto:
                    model, sums, last = {}, {}, 0
    assert list(ledger.items(space)) == sorted(model.items())
    assert [ledger.counted(space, key) for key in "ab"] == [sums.get(key, 0) for key in "ab"]
    assert ledger.appended(space) == last
    assert list(ledger.spaces(prefix=space)) == ([space] if model or sums or last else [])


CHANGES = ["put", "swap", "add", "remove", "append", "append", "remove_all", "drop"]


def test_it_goes_on_after_a_close(where):
    ledger = open_ledger(where)
    ledger.close()
    ledger.put("s", "k", b"v")
    ledger.close()
    assert ledger.get("s", "k") == b"v"
    ledger.scrub()
    ledger.close()


def test_threads_share_one(ledger):
    def grow(_):
        while True:
            old = ledger.get("s", "shared")
            if ledger.swap("s", "shared", old=old, new=(old or b"") + b"x"):
                return ledger.add("s", "sum", 1)

    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda n: ledger.append("said", b"%d" % n), range(80)))
        sums = list(pool.map(grow, range(80)))
    assert sorted(numbers) == list(range(1, 81))
    assert {k: int(v) for k, v in ledger.items("said")} == {
        numbered(number): n for n, number in enumerate(numbers)
    }
    assert sorted(sums) == list(range(1, 81))
    assert ledger.get("s", "shared") == b"x" * 80


def test_processes_share_one(where, ledger):
    started = [Forked(CHILD, "share", where) for _ in range(2)]
    one, other = (process.communicate(timeout=120)[0].split() for process in started)
    assert [process.returncode for process in started] == [0, 0]
    assert ledger.counted("sums", "all") == 200
    assert ledger.get("values", "shared") == b"x" * 200
    assert sorted(map(int, one + other)) == list(range(100))
    said = [value.split() for _, value in ledger.items("said")]
    assert [key for key, _ in ledger.items("said")] == [numbered(n) for n in range(1, 201)]
    for process in {process for process, _ in said}:
        assert [int(n) for p, n in said if p == process] == list(range(100))


def test_what_was_written_survives_a_killed_process(where, ledger):
    with Forked(CHILD, "write", where) as process:
        told = [int(process.stdout.readline()) for _ in range(50)]
        process.kill()
        told += map(int, process.stdout.read().split())
    kept = {int(key): value for key, value in ledger.items("written")}
    assert kept == {number: b"%d" % number for number in range(len(kept))}
    assert set(told) <= kept.keys()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:lance is not fork-safe", "ignore:.*multi-threaded.*fork")
def test_a_fork_makes_a_connection_of_its_own(ledger):
    ledger.put("s", "k", b"parent")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            ledger.put("s", "k", b"child")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.get("s", "k") == b"child"
    ledger.put("s", "k", b"parent again")
    assert ledger.get("s", "k") == b"parent again"
