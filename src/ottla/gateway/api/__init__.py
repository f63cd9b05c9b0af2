"""The native HTTP API, one module per family of routes."""
