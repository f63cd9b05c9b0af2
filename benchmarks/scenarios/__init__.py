"""What is measured, one subject per file."""
