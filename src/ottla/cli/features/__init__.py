"""`ottla features`, one file per command."""
