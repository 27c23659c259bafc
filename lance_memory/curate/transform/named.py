"""Transforms by name: the built-in ones, and `module:function`."""

from __future__ import annotations

import inspect
from typing import Any

from lance_memory.curate.transform.builtin import TRANSFORMS
from lance_memory.curate.transform.protocol import Transform
from lance_memory.errors import InvalidInputError
from lance_memory.record.dotted import is_dotted, led_to

__all__ = ["transform_named"]


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
    if not is_dotted(name):
        raise InvalidInputError(
            f"no transform {name!r}; there are: {', '.join(TRANSFORMS)}, or MODULE:FUNCTION, "
            "a dotted module name and a name in it"
        )
    return _callable(led_to(name), name)


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
