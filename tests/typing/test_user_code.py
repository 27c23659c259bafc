"""What a user's type checker sees of the package."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lance_memory

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".mypy_cache" / "user_code"

ABSENT = (
    "altair cupy cuvs duckdb httpx2 hypothesis lance lancedb narwhals redis sentence_transformers "
    "sklearn torch transformers"
)
"""What a user need not have, or what has no types for its users: not followed, as it takes time."""

CONFIG = f"""
[mypy]
strict = true
warn_unused_configs = false
[mypy-{",".join(f"{name}.*" for name in ABSENT.split())}]
follow_imports = skip
ignore_missing_imports = true
"""


def checked(tmp_path, code):
    """What mypy --strict says of a file outside of the project, each line without its place."""
    config = tmp_path / "mypy.ini"
    config.write_text(CONFIG, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", CACHE, code],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_users_program_is_well_typed_in_strict_mode(tmp_path):
    """And a mistake in it is seen: the package's types are not Any."""
    code = tmp_path / "user_code.py"
    text = (HERE / "user_code.py").read_text(encoding="utf-8")
    code.write_text(text, encoding="utf-8")
    assert checked(tmp_path, code) == ["Success: no issues found in 1 source file"]
    wrong = 'def wrong(store: MemoryStore) -> int:\n    return store.get("a").content\n'
    code.write_text(f"{text}\n\n{wrong}", encoding="utf-8")
    told, summary = checked(tmp_path, code)
    assert '(got "str", expected "int")' in told
    assert summary.startswith("Found 1 error")


# -- no Any where a user would lean on it

JSON = "holds any JSON value"
READ = "takes what a JSON reader gives, and checks it"
ENGINE = "an object of LanceDB's, which is not imported for its type"
VECTORS = "takes what numpy makes an array of"

LOOSE = {
    "Claim.from_json": READ,
    "Fact.value": JSON,
    "Grant.terms": "a tuple of different values, to compare",
    "ItemChange.after": JSON,
    "ItemChange.before": JSON,
    "LanceDBEmbedder.from_registry": "options of LanceDB's function, whichever it is",
    "LanceDBReranker": ENGINE,
    "MemoryStore.lancedb_table": ENGINE,
    "MemoryStore.open": VECTORS,
    "MemoryStore.reembed": VECTORS,
    "MemoryStore.worker": "options of Worker, which says their types",
    "MemoryView.lancedb_table": ENGINE,
    "ProfileMemory.set": JSON,
    "Quota.from_json": READ,
    "Quotas.from_json": READ,
    "RetentionPolicy.from_json": READ,
    "Step": "conversations or candidates, by the step",
    "Workspace.flag": JSON,
    "Workspace.plan": JSON,
    "Workspace.policy": JSON,
    "Workspace.set": JSON,
    "Workspace.set_policy": JSON,
    "WorkspaceItem.value": JSON,
    "WorkspaceView.flag": JSON,
    "WorkspaceView.policy": JSON,
}
"""Public names whose signature has Any other than as the values of a mapping of names, and why."""

CALLED = ("__init__", "__call__", "__iter__", "__getitem__", "__len__", "__enter__", "__bool__")


def functions(owner):
    """The functions of our own that a user calls: name → function."""
    if inspect.isfunction(owner):
        yield "", owner
    for name in dir(owner) if inspect.isclass(owner) else ():
        found = inspect.getattr_static(owner, name)
        found = getattr(found, "fget", None) or getattr(found, "__func__", found)
        ours = inspect.isfunction(found) and found.__module__.startswith("lance_memory")
        if ours and (name in CALLED or not name.startswith("_")):
            yield "" if name in CALLED else f".{name}", found


def annotations(owner):
    """Each annotation that stands in the source, with the place it belongs to; None: it lacks."""
    if inspect.isclass(owner) and dataclasses.is_dataclass(owner):
        for field in dataclasses.fields(owner):
            if not field.name.startswith("_"):
                yield f".{field.name}", field.type
        given = {"__init__"}
    else:
        given = set()
    for place, function in functions(owner):
        if function.__name__ in given:
            continue
        for parameter in list(inspect.signature(function).parameters.values()):
            if parameter.name not in ("self", "cls"):
                told = parameter.annotation
                yield place, None if told is parameter.empty else told
        told = inspect.signature(function).return_annotation
        yield place, None if told is inspect.Signature.empty else told


def loose(told):
    """Whether an annotation says Any, other than of the values of a mapping of names."""
    text = told if isinstance(told, str) else str(told)
    return re.search(r"\bAny\b", re.sub(r"\b(dict|Mapping)\[str, Any\]", "", text)) is not None


def test_no_public_signature_is_untyped():
    untyped = {
        f"{name}{place}"
        for name in lance_memory.__all__
        for place, told in annotations(getattr(lance_memory, name))
        if told is None
    }
    assert untyped == set()


def test_any_stands_only_where_there_is_a_reason():
    found = {
        f"{name}{place}"
        for name in lance_memory.__all__
        for place, told in annotations(getattr(lance_memory, name))
        if told is not None and loose(told)
    }
    assert sorted(found) == sorted(LOOSE)


PROTOCOLS = [
    name
    for name in lance_memory.__all__
    if getattr(getattr(lance_memory, name), "_is_protocol", False)
]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_whoever_implements_a_protocol_finds_its_types_in_the_package(name):
    """Guards against Extractor without Reading, and Overlay without Additions."""
    ours = set(re.findall(r"\b[A-Z]\w+", " ".join(
        str(told) for _, told in annotations(getattr(lance_memory, name))
    )))  # fmt: skip
    elsewhere = {"Any", "ArrayLike", "Exception", "Mapping", "NDArray", "None", "Sequence"}
    aliases = {"Transformed"}  # Derived, a text, or None
    assert ours - elsewhere - aliases <= set(lance_memory.__all__)
