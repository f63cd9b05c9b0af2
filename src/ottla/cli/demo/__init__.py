"""`ottla demo`, one file per demonstration."""
