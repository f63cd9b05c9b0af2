"""`ottla topics`, one file per command."""
