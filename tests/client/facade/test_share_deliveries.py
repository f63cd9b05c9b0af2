import socket

import pytest

from ottla.client import Message
from ottla.client.share_deliveries import ShareDeliveries


def test_certificates_given_as_text_are_used() -> None:
    message = Message.of("orders", 0, 0, 0, None, b"", [])
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = {
            "bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}",
            "client.id": "c",
            "security.protocol": "ssl",
            "ssl.ca.pem": "nothing that can be used",
        }
        with pytest.raises(ValueError, match="not PEM"):
            ShareDeliveries(settings, "g").release(message, 1.0)
