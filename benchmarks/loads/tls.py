"""How loads connect over TLS."""

import socket
import ssl

from benchmarks.loads import frames


def client_settings(address: str, authority: str) -> dict[str, str]:
    """confluent-kafka's settings; `authority` is a certificate file, or empty for no TLS."""
    servers = {"bootstrap.servers": address}
    if not authority:
        return servers
    return {**servers, "security.protocol": "SSL", "ssl.ca.location": authority}


def client_context(authority: str) -> ssl.SSLContext:
    """Allows only TLS 1.3."""
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def connect(address: str, authority: str) -> socket.socket:
    """Over TLS 1.3 if `authority` is given, otherwise plaintext."""
    connection = frames.connect(address)
    if not authority:
        return connection
    host = address.rpartition(":")[0]
    return client_context(authority).wrap_socket(connection, server_hostname=host)
