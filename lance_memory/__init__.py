"""lance-memory: git for an AI agent's memory.

The public names stand in `__init__.pyi`, each with the room it is from; a room is imported when a
name of it is first used.
"""

import threading as _threading

import lazy_loader as _lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
_loading = _threading.RLock()


def __getattr__(name: str) -> object:
    """A public name, from its room; one thread at a time.

    Two that enter the rooms by different doors would wait for one another's modules, which Python
    resolves by giving one of them half a module.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _loading:
        return _load(name)
