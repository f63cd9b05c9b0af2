"""The web page of a cluster: static files over the gateway's public HTTP API."""
