"""Workarounds for Spark, one file each: the affected versions, and what would make it unnecessary.

Importing one changes nothing; calling its function does.
"""
