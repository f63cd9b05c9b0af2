"""`ottla quotas`."""
