"""The guarantees that are checked, one file each."""
