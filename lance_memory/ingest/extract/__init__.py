"""What may become a memory, found in what was said: by rules, or by a model.

`ModelExtractor` and `Provider` are taken from their own modules: what reads a model's answers takes
0.1 s to import, and most who read what was said ask no model.
"""

from lance_memory.ingest.extract.protocol import Extractor, Reading
from lance_memory.ingest.extract.rules import Rules
from lance_memory.ingest.extract.step import Extract

__all__ = ["Extract", "Extractor", "Reading", "Rules"]
