"""Migrating: a store from an earlier schema or another embedding model to the present one."""
