"""The native HTTP API, one module for each family of routes."""
