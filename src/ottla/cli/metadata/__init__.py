"""`ottla metadata`, one file per command."""
