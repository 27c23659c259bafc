"""Runs `lmem` for shells, each time in a process forked from this one: `python lmem_server.py PATH`.

A process of its own takes two seconds to import the engine; this one has imported it, and has not
run it, so what is forked from it is as good as new. It listens on the Unix socket PATH, and what
calls it is `lmem_client.py`, which a shell finds under the name `lmem`.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import socket
import sys
import threading

IMPORTED = (
    "lance_memory.agent",
    "lmem.main",
    "lmem.render",
    "onnxruntime",
    "tokenizers",
    "scipy.sparse",
)


def serve(path):
    """Until it is ended."""
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the client is told by its own connection
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                answer(connection)
            connection.close()


def answer(connection):
    """Runs one command line with the client's streams, directory and environment."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    asked = json.loads(request)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # By lines, as at a terminal: what is said on both streams comes in its order.
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r", 1) for n in range(3))
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["directory"])
    code = 1
    try:
        from lmem.main import main

        code = main(asked["words"])
    finally:  # as an interpreter ends, and a forked process by itself does not
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        connection.sendall(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
