"""`ottla groups`, one file per command."""
