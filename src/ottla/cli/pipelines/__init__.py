"""`ottla pipeline`, one file per command."""
