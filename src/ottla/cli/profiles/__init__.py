"""`ottla profile`, one file per command."""
