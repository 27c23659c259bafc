"""Governing: what is forgotten, and whether a store is sound."""
