"""Which files a store has, what refers to them, and whether they can be read."""
