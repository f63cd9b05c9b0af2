"""Sockets: endpoints, listeners, sessions, and the bounds that keep them small."""
