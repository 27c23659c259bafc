"""Moving: archives that hold a whole store, and backups of its files."""
