"""Which memories of one version belong together, and which must be kept apart."""
