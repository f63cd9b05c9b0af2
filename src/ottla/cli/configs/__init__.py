"""`ottla configs`, one file per command."""
