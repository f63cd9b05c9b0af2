"""Test kits that ship with the broker."""
