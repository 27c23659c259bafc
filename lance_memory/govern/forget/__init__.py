"""Forgetting: what is to go, where it lies, its going, and the proof."""
