"""`ottla secure`."""
