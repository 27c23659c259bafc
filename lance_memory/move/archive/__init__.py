"""Archives: a whole store as checked files, and back."""
