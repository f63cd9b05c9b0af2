"""Drives the pure machines: clock, commit log, machine runtime, supervised tasks."""
