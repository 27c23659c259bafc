"""Upkeep: what keeps a table small and its indices whole, by and by, and what of it is kept."""
