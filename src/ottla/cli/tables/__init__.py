"""`ottla table`, one file per command."""
