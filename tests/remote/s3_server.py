"""An S3 server on a free port of this machine: `python s3_server.py` prints the port.

It is moto's, with one request at a time: S3 decides a conditional put (`If-None-Match: *`) in one
step, and moto's threads look and then write. It keeps its objects in memory and ends with whoever
started it, when its stdin closes.
"""

from __future__ import annotations

import os
import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_one = threading.Lock()
_app = DomainDispatcherApplication(create_backend_app)


def _alone(environ, start_response):
    with _one:
        return list(_app(environ, start_response))


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept

    def log_request(self, *args):
        pass


def _end_with_the_parent():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, _alone, threaded=True, request_handler=_Quiet)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
