"""What is worth extracting from, and within whose means: four layers, each with its reason."""

from lance_memory.ingest.gate.gate import Gate, standard_layers
from lance_memory.ingest.gate.layer import Blocked, Layer, Look
from lance_memory.ingest.gate.policy import Budget, GatePolicy
from lance_memory.ingest.gate.recent import count_inputs, forget_inputs

__all__ = [
    "Blocked",
    "Budget",
    "Gate",
    "GatePolicy",
    "Layer",
    "Look",
    "count_inputs",
    "forget_inputs",
    "standard_layers",
]
