"""L1: so many conversations of a user in a minute, in this process or in a Redis server."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lance_memory.errors import InvalidInputError
from lance_memory.ingest.gate import Gate, GatePolicy

TEXT = "I moved to Lisbon in March."
UNREACHABLE = "redis://:the-password@127.0.0.1:1/0"


def limited(most, **options):
    return Gate(GatePolicy(per_minute=most, last=0, **options))


def outcomes(gate, conversations, around):
    """One call each."""
    passed = [gate([one], around()) for one in conversations]
    return "".join("." if one.items else one.decisions[0].verdict[1] for one in passed)


def test_there_is_no_limit_unless_it_is_asked_for(talk, around):
    assert outcomes(Gate(GatePolicy(last=0)), [talk(TEXT)] * 50, around) == "." * 50


def test_a_user_has_so_many_a_minute(talk, around):
    gate = limited(3)
    assert outcomes(gate, [talk(TEXT)] * 5, around) == "...11"
    assert outcomes(gate, [talk(TEXT, user="eva")] * 4, around) == "...1"
    assert outcomes(gate, [talk(TEXT, tenant="other")] * 4, around) == "...1"


def test_without_a_user_the_tenant_has_so_many(talk, around):
    gate = limited(2)
    assert outcomes(gate, [talk(TEXT, user="")] * 3, around) == "..1"
    assert outcomes(gate, [talk(TEXT, user="ana")], around) == "."


def test_names_are_not_mixed_up(talk, around):
    gate = limited(1)
    hostile = [("a/b", "c"), ("a", "b/c"), ("a\x1fb", ""), ("a", "b"), ("\ud800", "x" * 10**6)]
    told = [talk(TEXT, tenant=tenant, user=user) for tenant, user in hostile]
    assert outcomes(gate, told, around) == "....."


def test_what_a_later_layer_blocks_was_a_request(talk, around):
    assert outcomes(limited(2), [talk("hi"), talk(TEXT), talk(TEXT)], around) == "2.1"


def test_registered_events_are_requests_too(talk, around):
    assert outcomes(limited(1), [talk("93", source="exams")] * 2, around) == ".1"


def test_the_decision_names_the_reason_and_the_wait(talk, around):
    gate = limited(1)
    decision = gate([talk(TEXT), talk(TEXT)], around()).decisions[0]
    assert (decision.verdict, decision.reason) == ("L1", "rate_limit_exceeded")
    assert decision.figures["limit"] == 1.0
    assert decision.figures["seconds"] == 60.0
    assert 0.0 < decision.figures["wait"] <= 60.0


def test_threads_share_a_limit(talk, around):
    gate = limited(10)
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda _: gate([talk(TEXT)], around()), range(40)))
    assert sum(len(one.items) for one in passed) == 10


def test_processes_share_a_limit_in_redis(redis_url, talk, around):
    redis_url += "?prefix=processes"
    gate = limited(3, rates=redis_url)
    person = talk(TEXT, tenant="processes")
    assert outcomes(gate, [person], around) == "."
    program = (
        "import sys; from lance_memory.ingest.gate.layer import owned\n"
        "from lance_memory.ingest.gate.rate import RateLimit\n"
        "rate = RateLimit(3, rates=sys.argv[1])\n"
        "print(rate.hit(owned('processes', 'ana')) is None)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, redis_url], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == ["True"]
    assert outcomes(limited(3, rates=redis_url), [person] * 2, around) == ".1"
    assert outcomes(gate, [person, talk(TEXT, tenant="processes", user="eva")], around) == "1."


def test_a_server_that_cannot_be_reached_blocks_nobody_and_is_left_alone(talk, around):
    gate = limited(1, rates=UNREACHABLE, failures=2, rest=60.0)
    passed = [gate([talk(TEXT), talk(TEXT)], around()) for _ in range(3)]
    assert [len(one.items) for one in passed] == [2, 2, 2]
    unreachable = (
        "gate.L1: the rates could not be counted (ConnectionError); 2 conversations went unjudged"
    )
    resting = "gate.L1: left alone after failures; 2 conversations went unjudged"
    assert [one.degraded for one in passed] == [(unreachable,), (unreachable,), (resting,)]


@pytest.mark.parametrize(
    "rates",
    ["ftp://host", "host:6379", "redis://host:port/0", "redis://host/0?nonsense=1"],
)
def test_a_place_that_cannot_be_is_refused_at_once(rates):
    with pytest.raises(InvalidInputError, match="URL"):
        limited(1, rates=rates)


def test_a_prefix_and_a_socket_name_a_place(redis_url, talk, around):
    for prefix in ("one", "two"):
        gate = limited(1, rates=f"{redis_url}?prefix=places-{prefix}")
        assert outcomes(gate, [talk(TEXT)] * 2, around) == ".1"
    gate = limited(1, rates="unix:///nowhere/redis.sock?prefix=one")
    assert gate([talk(TEXT)], around()).degraded == (
        "gate.L1: the rates could not be counted (ConnectionError); 1 conversation went unjudged",
    )


def test_no_password_is_shown():
    assert "the-password" not in repr(GatePolicy(rates=UNREACHABLE))
    with pytest.raises(InvalidInputError) as raised:
        limited(1, rates="redis://:the-password@host:port/0")
    assert "the-password" not in str(raised.value)
