"""lance-memory: git for an AI agent's memory.

The public names stand in `__init__.pyi`, each with the room it is from; a room is imported when a
name of it is first used.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
