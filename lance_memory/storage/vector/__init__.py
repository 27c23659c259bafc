"""The vectors: their rows, their index, and the switch to those of another model."""
