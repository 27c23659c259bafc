"""Runs a notebook, and writes what came out: a process of its own, as a person would start one."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

notebook, out = map(Path, sys.argv[1:])
found = nbformat.read(notebook, as_version=4)
client = NotebookClient(
    found,
    timeout=120,
    kernel_name="python3",
    resources={"metadata": {"path": str(notebook.parent)}},
)
client.execute()
nbformat.write(found, out)
