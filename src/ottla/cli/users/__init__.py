"""`ottla users`."""
