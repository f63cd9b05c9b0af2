"""`ottla transactions`, one file per command."""
