"""The `lmem` command."""
