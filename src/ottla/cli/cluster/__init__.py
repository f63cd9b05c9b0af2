"""Commands about a cluster as a whole."""
