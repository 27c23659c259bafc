"""What every service has in common; the embedder's tests and the model's show the rest."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
from service_kit import Server, answering, drips, floods, hangs_up, running, says, sleeps

from lance_memory.errors import InvalidInputError
from lance_memory.service import JsonService, Retry, ServiceError

KEY = "sk-test-0123456789"
ONCE = Retry(attempts=1)


@pytest.fixture
def server() -> Iterator[Server]:
    with running(answering(lambda body: {"got": body}), path="/v1/echo") as started:
        yield started


def service(server: Server, **options: Any) -> JsonService:
    given = {"key": KEY, "timeout": 1.0, "retry": ONCE, **options}
    return JsonService(f"{server.url}/echo", **given)


def test_failures_are_one_error_that_callers_translate(server: Server) -> None:
    for trouble in (says(404, "nothing here"), says(200, "no JSON"), says(200, ""), hangs_up):
        server.plan = [trouble]
        with pytest.raises(ServiceError, match=r"/v1/echo (answered|must answer|did not answer)"):
            service(server).post({})


def test_an_answer_that_trickles_in_ends_at_the_limit(server: Server) -> None:
    server.plan = [drips]
    started = time.monotonic()
    with pytest.raises(ServiceError, match=r"ReadTimeout: its answer was not whole after 0\.1 s"):
        service(server, limit=0.1).post({})
    assert time.monotonic() - started < 1
    assert service(server, limit=0.5).post([1]) == {"got": [1]}


@pytest.mark.parametrize("slow", [sleeps, drips])
def test_what_took_as_long_as_the_limit_is_not_asked_for_again(server: Server, slow: Any) -> None:
    server.plan = [slow]
    with pytest.raises(ServiceError, match=r"did not answer .* at try 1 of 4"):
        service(server, timeout=0.1, limit=0.1, retry=Retry(first_wait=0)).post({})
    assert len(server.requests) == 1
    server.plan = [hangs_up]
    assert service(server, limit=0.5, retry=Retry(first_wait=0)).post([1]) == {"got": [1]}


def test_without_a_limit_a_sign_of_life_is_enough(server: Server) -> None:
    server.plan = [drips]
    started = time.monotonic()
    with pytest.raises(ServiceError, match="did not answer"):
        service(server, timeout=0.3).post({})
    assert time.monotonic() - started > 0.6


@pytest.mark.parametrize("headers", [{}, {"content_encoding": "gzip"}])
def test_of_an_answer_that_is_too_long_no_more_is_read(server: Server, headers: Any) -> None:
    server.plan = [floods(50_000_000, **headers)]
    one = service(server, largest=1 << 20, retry=Retry(first_wait=0))
    with pytest.raises(ServiceError, match=r"is longer than 1,048,576 bytes\), at try 1 of 4"):
        one.post([1])
    assert len(server.requests) == 1
    assert one.post([1]) == {"got": [1]}


def test_an_answer_may_be_as_long_as_the_largest(server: Server) -> None:
    content = json.dumps("x" * 1000)
    server.plan = [says(200, content), says(200, content)]
    assert service(server, largest=len(content)).post({}) == "x" * 1000
    with pytest.raises(ServiceError, match="longer than"):
        service(server, largest=len(content) - 1).post({})


def test_an_answer_nested_without_end_is_no_json(server: Server) -> None:
    server.plan = [says(200, "[" * 200_000)]
    with pytest.raises(ServiceError, match="must answer in JSON"):
        service(server).post({})


def test_a_copy_in_another_process_asks_as_the_original(server: Server) -> None:
    one = service(server)
    assert one.post(1) == {"got": 1}
    copy = pickle.loads(pickle.dumps(one))
    assert copy.post(2) == {"got": 2}
    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2
    assert server.connections == 2


@pytest.mark.parametrize("options", [{"attempts": 0}, {"first_wait": -1}, {"longest_wait": -1}])
def test_a_retry_without_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="it takes"):
        Retry(**options)


def test_waits_grow_to_a_bound_and_vary_by_half() -> None:
    retry = Retry(first_wait=1, longest_wait=6)
    for failed, full in [(1, 1), (2, 2), (3, 4), (4, 6), (9, 6)]:
        waits = [retry.wait(failed) for _ in range(50)]
        assert full / 2 <= min(waits) < max(waits) <= full
