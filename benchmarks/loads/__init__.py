"""Loads: each module is a process of its own that prints one JSON object."""
