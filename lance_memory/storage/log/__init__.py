"""The log's entries, and where those of cleaned versions are kept."""
