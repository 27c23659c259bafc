"""What `module:attribute` leads to."""

from __future__ import annotations

import difflib
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from lance_memory.errors import InvalidInputError

__all__ = ["is_dotted", "led_to"]

_SHOWN = 20


def is_dotted(name: str) -> bool:
    """Whether it is a dotted module name, a colon, and a dotted name in it."""
    module, colon, path = name.partition(":")
    parts = [*module.split("."), *path.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def led_to(name: str) -> Any:
    """What the name leads to; the module is imported.

    The current directory is put on `sys.path`, where it stays, so that what the module imports
    later, and worker processes, find their files too.

    Danger: importing a module runs it.

    Raises:
        InvalidInputError: no such module or attribute, or the module cannot be imported.
    """
    module, _, path = name.partition(":")
    return _attribute(_module(module), path)


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
