"""`ottla node`, one file per command."""
