"""Sockets: listener, session."""
