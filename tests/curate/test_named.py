from __future__ import annotations

import sys

import pytest

from lance_memory import InvalidInputError
from lance_memory.curate.transform.builtin import TRANSFORMS
from lance_memory.curate.transform.named import transform_named

SOURCE = """
import functools
LIMIT = 3
def first(cluster):
    return cluster[0]
def with_options(cluster, *, limit=LIMIT):
    return cluster[:limit]
def needs_two(cluster, limit):
    return None
class Last:
    def __call__(self, cluster):
        return cluster[-1]
class Silent:
    pass
class Wants:
    def __init__(self, model):
        self.model = model
    def __call__(self, cluster):
        return None
class box:
    inner = Last()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current directory, with a module of transforms; sys.path and modules as before after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "mine_ok.py").write_text(SOURCE)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("mine_"):
            del sys.modules[name]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_built_in_transform_is_found_by_its_name(name):
    assert transform_named(name) is TRANSFORMS[name]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("mine_ok:first", "a"),
        ("mine_ok:Last", "c"),
        ("mine_ok:box.inner", "c"),
        ("mine_ok:with_options", ["a", "b", "c"]),
        ("operator:length_hint", 3),
        ("builtins:max", "c"),
    ],
)
def test_a_function_a_class_or_an_instance_in_a_module_is_a_transform(here, name, answer):
    assert transform_named(name)(["a", "b", "c"]) == answer


def test_a_module_is_found_in_the_current_directory_and_in_packages_there(here):
    (here / "mine_package").mkdir()
    (here / "mine_package" / "deep.py").write_text("def drop(cluster):\n    import mine_late\n")
    (here / "mine_late.py").write_text("")
    assert transform_named("mine_package.deep:drop")([]) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "no transform ''; there are: extractive, latest, merge-lines, or MODULE:FUNCTION"),
        ("extractiv", "no transform 'extractiv'; there are: extractive"),
        ("mine_ok:", "no transform 'mine_ok:'"),
        (":first", "no transform ':first'"),
        ("mine ok:first", "MODULE:FUNCTION"),
        ("./mine_ok.py:first", "a dotted module name"),
        ("mine_none:first", "no module 'mine_none' in {here} or among"),
        ("mine_ok.deeper:first", "no module 'mine_ok.deeper'"),
        ("mine_ok:first_of", "the module 'mine_ok' has no 'first_of'; there are: first, Last"),
        ("mine_ok:box.outer", "'box' has no 'outer'; there are: inner"),
        ("mine_ok:LIMIT.name", "'LIMIT' has no 'name'; there are: "),
        ("mine_ok:LIMIT", "'mine_ok:LIMIT' is int; a transform is called with a cluster"),
        ("mine_ok:Silent", "is Silent; a transform is called"),
        ("mine_ok:Wants", "cannot be made without arguments: TypeError: "),
        ("mine_ok:needs_two", "cannot be called with one cluster: missing a required argument"),
        (
            "mine_bad:first",
            "'mine_bad' is no valid Python: expected ':', in {here}/mine_bad.py, line 1",
        ),
        ("mine_needs:first", "the module 'mine_needs' needs 'mine_absent', which is not installed"),
        (
            "mine_fails:first",
            "'mine_fails' cannot be imported; it raised ZeroDivisionError: division",
        ),
        ("mine_empty:first", "has no 'first'; nothing there is callable"),
    ],
)
def test_what_is_no_transform_is_named_with_what_there_is(here, name, told):
    (here / "mine_bad.py").write_text("def first(cluster)\n    return None\n")
    (here / "mine_needs.py").write_text("import mine_absent.part\n")
    (here / "mine_fails.py").write_text("1 / 0\n")
    (here / "mine_empty.py").write_text("")
    with pytest.raises(InvalidInputError) as caught:
        transform_named(name)
    assert told.format(here=here) in str(caught.value)
