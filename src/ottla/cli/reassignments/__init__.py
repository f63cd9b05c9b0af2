"""`ottla reassignments`, one file per command."""
