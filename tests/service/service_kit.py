"""A real server on this machine, which behaves as badly as it is told."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

Step: TypeAlias = "Callable[[Handler, dict[str, Any]], None]"


class Server(ThreadingHTTPServer):
    """Answers by `usual`, unless `plan` holds what to do with the next requests."""

    daemon_threads = True

    def __init__(self, usual: Step, path: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.usual = usual
        self.path = path
        self.plan: list[Step] = []
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # which keeps connections alive
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert self.path == self.server.path
        self.server.bodies.append(body)
        self.server.requests.append(json.loads(body))
        self.server.headers.append(self.headers)
        step = self.server.plan.pop(0) if self.server.plan else self.server.usual
        step(self, self.server.requests[-1])

    def reply(self, status: int, content: str, **headers: str) -> None:
        encoded = content.encode()
        self.begin(status, len(encoded), **headers)
        self.wfile.write(encoded)

    def begin(self, status: int, length: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-length": str(length), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def running(usual: Step, *, path: str) -> Iterator[Server]:
    """A server that listens until the block ends."""
    with Server(usual, path) as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.01,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def answering(answer: Callable[[dict[str, Any]], Any]) -> Step:
    return lambda handler, body: handler.reply(200, json.dumps(answer(body)))


def says(status: int, content: str = "", **headers: str) -> Step:
    return lambda handler, _: handler.reply(status, content, **headers)


def hangs_up(handler: Handler, _: Any) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def sleeps(handler: Handler, body: dict[str, Any]) -> None:
    time.sleep(0.5)
    hangs_up(handler, body)


def floods(size: int, **headers: str) -> Step:
    """Blanks, so many, for as long as somebody listens; packed if the headers say gzip."""

    def step(handler: Handler, _: Any) -> None:
        packed = headers.get("content_encoding") == "gzip"
        content = gzip.compress(bytes(size), 1) if packed else b" " * size
        handler.begin(200, len(content), **headers)
        with suppress(OSError):
            handler.wfile.write(content)
        handler.close_connection = True

    return step


def drips(handler: Handler, _: Any) -> None:
    """A byte every 20 ms, for as long as somebody listens, at most 1 s."""
    handler.begin(200, 1000)
    try:
        for _ in range(50):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:  # nobody does
        pass
    handler.close_connection = True
