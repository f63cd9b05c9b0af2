"""The brokers that are measured, one file each."""
