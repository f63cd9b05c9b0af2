"""Partition logs in files."""
