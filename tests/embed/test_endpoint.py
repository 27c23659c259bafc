"""Against a real server on this machine, which behaves as badly as it is told."""

from __future__ import annotations

import base64
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lance_memory.embed import CachedEmbedder, Embedder, OpenAIEmbedder, checked
from lance_memory.errors import EmbeddingError, InvalidInputError, MissingExtraError
from lance_memory.service import Retry

HERE = str(Path(__file__).parents[1] / "service")
if HERE not in sys.path:
    sys.path.append(HERE)

from service_kit import Handler, Server, answering, hangs_up, running, says, sleeps  # noqa: E402

KEY = "sk-test-0123456789"
QUICK = Retry(attempts=3, first_wait=0.001, longest_wait=1.0)


def vector(text: str) -> list[float]:
    return [len(text), text.count("a"), 1.0]


def answer(texts: list[str]) -> dict[str, Any]:
    data = [
        {"object": "embedding", "index": index, "embedding": vector(text)}
        for index, text in enumerate(texts)
    ]
    return {"object": "list", "data": data, "model": "any", "usage": {"total_tokens": 1}}


def answers(change: Callable[[dict[str, Any]], Any]) -> Callable[[Handler, dict[str, Any]], None]:
    """A proper answer, changed."""
    return answering(lambda body: change(answer(body["input"])))


@pytest.fixture
def server() -> Iterator[Server]:
    with running(answers(lambda given: given), path="/v1/embeddings") as started:
        yield started


def embedder(server: Server, **options: Any) -> OpenAIEmbedder:
    given = {"dimension": 3, "base_url": server.url, "retry": QUICK, **options}
    return OpenAIEmbedder("tiny", **given)


def test_texts_are_embedded_in_order_and_in_batches(server: Server) -> None:
    texts = ["a", "bb", "banana", "", "ccc"]
    one = embedder(server, batch_size=2)
    assert isinstance(one, Embedder)
    assert (one.name, one.dimension) == ("tiny", 3)
    vectors = one.embed(texts)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [vector(text) for text in texts]
    assert [body["input"] for body in server.requests] == [texts[:2], texts[2:4], texts[4:]]
    assert server.connections == 1  # kept alive


def test_no_texts_cost_no_request(server: Server) -> None:
    assert embedder(server).embed([]).shape == (0, 3)
    assert server.requests == []


def test_what_is_sent(server: Server) -> None:
    embedder(server, api_key=f" {KEY}\n").embed(["Zürich 我 \ud800"])
    assert server.requests == [
        {"model": "tiny", "encoding_format": "float", "input": ["Zürich 我 ?"]}
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder(server).embed(["a"])
    assert "authorization" not in server.headers[0]


def test_shortened_vectors_are_asked_for_by_their_dimension(server: Server) -> None:
    embedder(server, shorten=True, name="tiny-3").embed(["a"])
    assert server.requests[0]["dimensions"] == 3


def test_vectors_are_put_in_order_by_their_index(server: Server) -> None:
    server.plan = [answers(lambda given: {"data": given["data"][::-1]})]
    texts = ["a", "bb", "ccc", "dddd"]
    assert embedder(server).embed(texts).tolist() == [vector(text) for text in texts]


def test_base64_is_asked_for_and_read(server: Server) -> None:
    def packed(given: dict[str, Any]) -> dict[str, Any]:
        for item in given["data"]:
            raw = np.array(item["embedding"], dtype="<f4").tobytes()
            item["embedding"] = base64.b64encode(raw).decode()
        return given

    server.plan = [answers(packed)]
    assert embedder(server, encoding="base64").embed(["a", "ban"]).tolist() == [
        [1, 1, 1],
        [3, 1, 1],
    ]
    assert server.requests[0]["encoding_format"] == "base64"


def test_an_absent_index_counts_as_zero(server: Server) -> None:
    server.plan = [answers(lambda given: {"data": [{"embedding": given["data"][0]["embedding"]}]})]
    assert embedder(server).embed(["a"]).tolist() == [[1, 1, 1]]


def without_first(given: dict[str, Any]) -> dict[str, Any]:
    return {"data": given["data"][1:]}


def twice(given: dict[str, Any]) -> dict[str, Any]:
    return {"data": [given["data"][0], given["data"][0]]}


def one_more(given: dict[str, Any]) -> dict[str, Any]:
    return {"data": [*given["data"], {"index": 2, "embedding": [1, 2, 3]}]}


@pytest.mark.parametrize("change", [without_first, twice, one_more, lambda given: {"data": []}])
def test_another_number_of_vectors_than_texts_is_an_error(server: Server, change: Any) -> None:
    server.plan = [answers(change)]
    with pytest.raises(EmbeddingError, match=r"'tiny' was given 2 texts.*one vector for each"):
        embedder(server).embed(["a", "b"])
    assert len(server.requests) == 1  # it would not pass by itself


@pytest.mark.parametrize(
    "changed",
    [{"embeddings": []}, [], None, "text", {"data": None}, {"data": [{}]}, {"data": ["text"]}],
)
def test_an_answer_of_another_form_is_an_error(server: Server, changed: Any) -> None:
    server.plan = [answers(lambda _: changed)]
    with pytest.raises(EmbeddingError, match=r"must answer .*found (an object with|a value of)"):
        embedder(server).embed(["a"])


@pytest.mark.parametrize("embedding", [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], None, "AAAA", "?", {}])
def test_a_vector_of_another_length_or_kind_is_an_error(server: Server, embedding: Any) -> None:
    server.plan = [answers(lambda _: {"data": [{"index": 0, "embedding": embedding}]})]
    with pytest.raises(EmbeddingError, match=r"'tiny' was given 1 text"):
        embedder(server).embed(["a"])


def test_malformed_json_is_an_error_that_shows_its_beginning(server: Server) -> None:
    server.plan = [says(200, "<html>\n  no JSON" + "x" * 5000)]
    with pytest.raises(
        EmbeddingError, match="must answer in JSON; it gave '<html> no JSON"
    ) as told:
        embedder(server).embed(["a"])
    assert len(str(told.value)) < 600


def test_an_answer_that_cannot_be_unpacked_is_an_error(server: Server) -> None:
    server.plan = [says(200, "not packed", content_encoding="gzip")]
    with pytest.raises(EmbeddingError, match="gave an unreadable answer"):
        embedder(server).embed(["a"])
    assert len(server.requests) == 1


def test_a_refusal_is_an_error_with_its_status_and_is_not_repeated(server: Server) -> None:
    server.plan = [says(401, '{"error": "wrong key"}')]
    with pytest.raises(
        EmbeddingError, match=r"/v1/embeddings answered 401: .*wrong key.*try 1 of 3"
    ):
        embedder(server).embed(["a"])
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.plan = [says(307, location="http://127.0.0.1:1/v1/embeddings")]
    with pytest.raises(EmbeddingError, match="answered 307"):
        embedder(server, api_key=KEY).embed(["a"])


@pytest.mark.parametrize("trouble", [says(500), says(503, "busy"), says(408), hangs_up])
def test_what_passes_by_itself_is_tried_again(server: Server, trouble: Any) -> None:
    server.plan = [trouble, trouble]
    assert embedder(server).embed(["a"]).tolist() == [[1, 1, 1]]
    assert len(server.requests) == 3


def test_tries_are_bounded(server: Server) -> None:
    server.plan = [says(500, "still broken")] * 9
    with pytest.raises(EmbeddingError, match="answered 500: 'still broken', at try 3 of 3"):
        embedder(server).embed(["a"])
    assert len(server.requests) == 3


def test_the_wait_that_the_service_names_is_kept(server: Server) -> None:
    server.plan = [says(429, retry_after="1")]
    started = time.monotonic()
    assert embedder(server).embed(["a"]).tolist() == [[1, 1, 1]]
    assert time.monotonic() - started >= 1


def test_a_wait_can_be_named_by_a_date(server: Server) -> None:
    past = format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)
    server.plan = [says(429, retry_after=past), says(429, retry_after="not a date")]
    assert embedder(server).embed(["a"]).tolist() == [[1, 1, 1]]
    server.plan = [says(429, retry_after=past.replace("GMT", "-0000"))]  # of no zone: UTC
    assert embedder(server).embed(["a"]).tolist() == [[1, 1, 1]]
    future = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    server.plan = [says(503, retry_after=future)]
    with pytest.raises(EmbeddingError, match=r"asks to wait 3[56]\d\d s"):
        embedder(server).embed(["a"])


def test_a_named_wait_that_is_too_long_ends_the_tries(server: Server) -> None:
    server.plan = [says(429, "slow down", retry_after="3600")]
    started = time.monotonic()
    with pytest.raises(EmbeddingError, match=r"429: 'slow down', at try 1 of 3; it asks .* 3600 s"):
        embedder(server).embed(["a"])
    assert time.monotonic() - started < 60


def test_silence_is_an_error_after_the_timeout(server: Server) -> None:
    server.plan = [sleeps] * 2
    two = Retry(attempts=2, first_wait=0)
    with pytest.raises(EmbeddingError, match=r"did not answer \(\w+Timeout.*at try 2 of 2"):
        embedder(server, timeout=0.1, retry=two).embed(["a"])


def test_nobody_there_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(EmbeddingError, match=r"did not answer \(ConnectError.*at try 3 of 3"):
            OpenAIEmbedder("tiny", dimension=3, base_url=url, retry=QUICK).embed(["a"])


def test_the_key_is_in_no_message_and_no_repr(server: Server) -> None:
    one = embedder(server, api_key=KEY)
    server.plan = [
        says(401, f"no such key {KEY}"),
        says(200, f"no JSON {KEY}"),
        says(429, f"slow down {KEY}", retry_after="3600"),
    ]
    for _ in range(3):
        with pytest.raises(EmbeddingError) as told:
            one.embed(["a"])
        assert KEY not in str(told.value)
        assert "[key]" in str(told.value)
    assert repr(one) == f"OpenAIEmbedder('tiny', dimension=3, url='{server.url}/embeddings')"
    for bad in (KEY + "\n" + KEY, KEY + "ü"):
        with pytest.raises(InvalidInputError, match="printable ASCII") as refused:
            embedder(server, api_key=bad)
        assert KEY not in str(refused.value)


def test_repeated_texts_are_sent_once_and_remembered(server: Server) -> None:
    cached = CachedEmbedder(embedder(server))
    for _ in range(2):
        assert checked(cached, ["a", "b", "a"]).tolist() == [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
    assert [body["input"] for body in server.requests] == [["a", "b"]]


def test_threads_get_what_one_thread_would(server: Server) -> None:
    one = embedder(server)
    calls = [["a" * number, "b"] for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(one.embed, calls))
    expected = [[vector(text) for text in texts] for texts in calls]
    assert [vectors.tolist() for vectors in together] == expected


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"name": " "},
        {"dimension": 0},
        {"batch_size": 0},
        {"batch_size": True},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"encoding": "int8"},
        {"base_url": "localhost:11434/v1"},
        {"base_url": "ftp://localhost/v1"},
        {"base_url": "http://localhost:port/v1"},
        {"base_url": "http:///v1"},
        {"base_url": "http://local host/v1"},
    ],
)
def test_arguments_without_sense_are_refused(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"model": "tiny", "dimension": 3, **options}
    with pytest.raises(InvalidInputError, match=f"^{next(iter(options))}"):
        OpenAIEmbedder(given.pop("model"), **given)


@pytest.mark.parametrize("url", ["http://me:secret@host/v1", "http://host/v1?key=secret"])
def test_a_secret_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInputError, match="pass a key as api_key") as told:
        OpenAIEmbedder("tiny", dimension=3, base_url=url)
    assert "secret" not in str(told.value)


def test_a_missing_client_is_an_error_that_says_what_to_install(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lance-memory\[openai\]'"):
        embedder(server).embed(["a"])
