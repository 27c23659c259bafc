"""Transforms by name: the built-in ones, and `module:function`."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from lance_memory.curate.transform.builtin import TRANSFORMS
from lance_memory.curate.transform.protocol import Transform
from lance_memory.errors import InvalidInputError

__all__ = ["transform_named"]

_SHOWN = 20


def transform_named(name: str) -> Transform:
    """The transform of that name: a built-in one, or what `module:attribute` leads to.

    The module is imported with the current directory on `sys.path`, where it stays, so that what
    the module imports later, and worker processes, find their files too. A class is called
    without arguments.

    Danger: importing a module runs it.

    Raises:
        InvalidInputError: no such transform, module or attribute, the module cannot be imported,
            or nothing there that takes one cluster.
    """
    if name in TRANSFORMS:
        return TRANSFORMS[name]
    module_name, colon, path = name.partition(":")
    if not (colon and _dotted(module_name) and _dotted(path)):
        raise InvalidInputError(
            f"no transform {name!r}; there are: {', '.join(TRANSFORMS)}, or MODULE:FUNCTION, "
            "a dotted module name and a name in it"
        )
    return _callable(_attribute(_module(module_name), path), name)


def _dotted(path: str) -> bool:
    return all(part.isidentifier() for part in path.split("."))


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = str(error.name)
        if f"{name}.".startswith(f"{missing}."):
            found = f"no module {missing!r} in {here} or among the installed packages"
        else:
            found = f"the module {name!r} needs {missing!r}, which is not installed"
        raise InvalidInputError(found) from error
    except SyntaxError as error:
        raise InvalidInputError(
            f"the module {name!r} is no valid Python: {error.msg}, "
            f"in {error.filename}, line {error.lineno}"
        ) from error
    except Exception as error:
        raise InvalidInputError(
            f"the module {name!r} cannot be imported; it raised {type(error).__name__}: {error}"
        ) from error


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    where = f"the module {module.__name__!r}"
    for part in path.split("."):
        if not hasattr(found, part):
            raise InvalidInputError(f"{where} has no {part!r}; {_there(found, part)}")
        found = getattr(found, part)
        where = f"{part!r}"
    return found


def _there(found: object, wanted: str) -> str:
    """The callable names of an object, those like `wanted` first."""
    names = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n, None))]
    near = difflib.get_close_matches(wanted, names, n=_SHOWN)
    ordered = [*near, *(name for name in names if name not in near)]
    more = ", ..." if len(ordered) > _SHOWN else ""
    return (
        f"there are: {', '.join(ordered[:_SHOWN])}{more}"
        if ordered
        else "nothing there is callable"
    )


def _callable(found: Any, name: str) -> Transform:
    transform = _made(found, name) if inspect.isclass(found) else found
    if not callable(transform):
        raise InvalidInputError(
            f"{name!r} is {type(transform).__name__}; a transform is called with a cluster"
        )
    try:
        inspect.signature(transform).bind(())
    except TypeError as error:
        raise InvalidInputError(
            f"{name!r} cannot be called with one cluster: {error}; "
            "a transform takes a list of memories and nothing else"
        ) from error
    except ValueError:  # some of what is written in C has no signature to look at
        pass
    made: Transform = transform
    return made


def _made(found: type, name: str) -> Any:
    try:
        return found()
    except Exception as error:
        raise InvalidInputError(
            f"{name!r} is a class that cannot be made without arguments: "
            f"{type(error).__name__}: {error}"
        ) from error
