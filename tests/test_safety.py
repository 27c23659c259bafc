"""Nothing in the package runs or unpacks what it reads; shown on its syntax trees."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("lance_memory", "cli") for path in (ROOT / folder).rglob("*.py"))
MODULES = {
    "pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml",
    "jsonpickle", "code", "codeop", "pty", "commands", "telnetlib",
}  # fmt: skip
BUILT_IN = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
CALLS = {
    "os.system", "os.popen", "os.spawnl", "os.spawnv", "subprocess.getoutput",
    "subprocess.getstatusoutput", "torch.load", "torch.jit.load", "tempfile.mktemp",
    "shutil.unpack_archive", "pandas.read_pickle", "asyncio.create_subprocess_shell",
}  # fmt: skip
METHODS = {"extractall", "read_pickle", "to_pickle", "unpack_archive", "loads_pickle"}
KEYWORDS = {"shell", "allow_pickle", "trust_remote_code"}


def name_of(node):
    """The dotted name of an expression, such as `os.system`; "" where it has none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def dangers(source):
    """What the source does that could run what it reads: line and what."""
    tree = ast.parse(source)
    names = {}  # as they are called here, to what they are
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({(a.asname or a.name): a.name for a in node.names})
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update({(a.asname or a.name): f"{node.module}.{a.name}" for a in node.names})
        yield from ((node.lineno, what) for what in _of(node, names))


def _of(node, names):
    if isinstance(node, ast.Import):
        yield from (a.name for a in node.names if a.name.partition(".")[0] in MODULES)
    elif isinstance(node, ast.ImportFrom):
        yield from [node.module] if (node.module or "").partition(".")[0] in MODULES else []
    elif isinstance(node, ast.Name) and node.id in BUILT_IN and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Call):
        called = name_of(node.func)
        first, dot, rest = called.partition(".")
        full = f"{names.get(first, first)}{dot}{rest}"
        yield from [full] if full in CALLS or rest.rpartition(".")[2] in METHODS else []
        literal = (ast.Constant, ast.Name, ast.Attribute)
        for word in node.keywords:
            off = isinstance(word.value, ast.Constant) and word.value.value is False
            if word.arg in KEYWORDS and not off and isinstance(word.value, literal):
                yield f"{word.arg}="
        texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
        if full in {"importlib.import_module", "require"}:
            yield from (t for t in texts if isinstance(t, str) and t.partition(".")[0] in MODULES)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "import yaml as y",
        "eval('1')",
        "run = exec",
        "__import__('os')",
        "import os\nos.system('ls')",
        "from os import system as s\ns('ls')",
        "import subprocess as p\np.run('ls', shell=True)",
        "import subprocess\nsubprocess.Popen(words, shell=given)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import torch\ntorch.load(path)",
        "archive.extractall(place)",
        "import importlib\nimportlib.import_module('pickle')",
    ],
)
def test_each_danger_is_seen(source):
    assert len(list(dangers(source))) == 1


def test_nothing_else_is_taken_for_a_danger():
    source = "import re, numpy\nre.compile('x')\nnumpy.load(f, allow_pickle=False)\nmodel.eval()"
    assert list(dangers(source)) == []


def test_nothing_in_the_package_runs_or_unpacks_what_it_reads():
    assert len(FILES) > 100
    found = {
        f"{path.relative_to(ROOT)}:{line}": what
        for path in FILES
        for line, what in dangers(path.read_text(encoding="utf-8"))
    }
    assert found == {}
