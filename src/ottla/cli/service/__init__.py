"""`ottla service`."""
