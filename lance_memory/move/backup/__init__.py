"""Backups: the files of a store, each once, and the way back."""
