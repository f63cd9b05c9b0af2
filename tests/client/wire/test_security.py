import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i16
from tests.broker_process import BrokerProcess
from tests.client.wire.test_connection import METADATA
from tests.client.wire.tls_proxy import make_certificate, tls_proxy

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import NotAuthenticated, Unreachable
from ottla.client.wire.security import Sasl, Security, Tls
from ottla.protocol.codec import write_response
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

HANDSHAKE, AUTHENTICATE, API_VERSIONS = 17, 36, 18


def ask(port: int, security: Security) -> int:
    """The number of brokers in the metadata of a connection with this security."""
    connection = Connection("127.0.0.1", port, client_id="c", timeout_s=60, security=security)
    try:
        return len(connection.call(METADATA).brokers)
    finally:
        connection.close()


def test_tls_with_an_authority_of_ones_own(own_broker: BrokerProcess, tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "broker")
    with tls_proxy(own_broker.port, certificate) as port:
        assert ask(port, Security(Tls(authorities=certificate.read_text()))) == 1


def test_a_broker_with_another_certificate_is_not_trusted(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    other = make_certificate(tmp_path, "other").read_text()
    with tls_proxy(own_broker.port, make_certificate(tmp_path, "broker")) as port:
        with pytest.raises(NotAuthenticated, match="self-signed certificate"):
            ask(port, Security(Tls(authorities=other)))
        cluster = Cluster(f"127.0.0.1:{port}", security=Security(Tls(authorities=other)))
        with cluster, pytest.raises(NotAuthenticated):  # At once, without a retry.
            cluster.topics()


def test_a_certificate_for_another_host_is_refused_unless_that_is_left_out(
    own_broker: BrokerProcess, tmp_path: Path
) -> None:
    certificate = make_certificate(tmp_path, "broker", host="10.1.2.3")
    text = certificate.read_text()
    with tls_proxy(own_broker.port, certificate) as port:
        with pytest.raises(NotAuthenticated, match="IP address mismatch"):
            ask(port, Security(Tls(authorities=text)))
        assert ask(port, Security(Tls(authorities=text, checks_host_name=False))) == 1


def test_a_client_with_a_certificate(own_broker: BrokerProcess, tmp_path: Path) -> None:
    broker, client = (make_certificate(tmp_path, name) for name in ("broker", "client"))
    trusting = Tls(authorities=broker.read_text())
    with tls_proxy(own_broker.port, broker, clients=client) as port:
        with pytest.raises(Unreachable):
            ask(port, Security(trusting))
        with_certificate = Tls(trusting.authorities, certificates=client.read_text())
        assert ask(port, Security(with_certificate)) == 1


def test_what_is_no_certificate_is_said() -> None:
    with pytest.raises(ValueError, match="not PEM"):
        Tls(authorities="nonsense").context()


def test_secrets_are_not_shown() -> None:
    shown = repr(
        Security(Tls(key="k-secret", key_password="p-secret"), Sasl("PLAIN", "a", "s-secret"))
    )
    assert "secret" not in shown


class SaslPeer:
    """Accepts PLAIN from anna with the password `lamp`."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        peer, _ = self._server.accept()
        with peer:
            while head := peer.recv(4, socket.MSG_WAITALL):
                (size,) = struct.unpack(">i", head)
                peer.sendall(self._answer(peer.recv(size, socket.MSG_WAITALL)))

    def _answer(self, request: bytes) -> bytes:
        api_key, version, correlation_id = struct.unpack_from(">hhi", request)
        response: ApiVersionsResponse | SaslHandshakeResponse | SaslAuthenticateResponse
        if api_key == API_VERSIONS:
            keys = [(HANDSHAKE, 1), (AUTHENTICATE, 2)]
            versions = tuple(
                ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(newest))
                for key, newest in keys
            )
            response = ApiVersionsResponse(
                error_code=ErrorCode.none, api_keys=versions, throttle_time=NO_THROTTLE
            )
        elif api_key == HANDSHAKE:
            known = b"\x05PLAIN" in request or request.endswith(b"PLAIN")
            code = ErrorCode.none if known else ErrorCode.unsupported_sasl_mechanism
            response = SaslHandshakeResponse(error_code=code, mechanisms=("PLAIN",))
        else:
            right = b"\0anna\0lamp" in request
            code = ErrorCode.none if right else ErrorCode.sasl_authentication_failed
            message = None if right else "wrong name or password"
            response = SaslAuthenticateResponse(
                error_code=code, error_message=message, auth_bytes=b""
            )
        return write_response(api_key, version, correlation_id, response)


@pytest.fixture
def peer() -> Iterator[SaslPeer]:
    peer = SaslPeer()
    yield peer
    peer.stop()


def connect(peer: SaslPeer, sasl: Sasl) -> None:
    address = "127.0.0.1", peer.port
    Connection(*address, client_id="c", timeout_s=60, security=Security(sasl=sasl)).close()


def test_a_name_and_a_password(peer: SaslPeer) -> None:
    connect(peer, Sasl("PLAIN", "anna", "lamp"))


def test_a_wrong_password_is_told_by_the_broker(peer: SaslPeer) -> None:
    with pytest.raises(NotAuthenticated, match="wrong name or password"):
        connect(peer, Sasl("PLAIN", "anna", "desk"))


def test_a_mechanism_that_the_broker_does_not_have(peer: SaslPeer) -> None:
    with pytest.raises(NotAuthenticated, match="offers PLAIN for SASL, not SCRAM-SHA-256"):
        connect(peer, Sasl("SCRAM-SHA-256", "anna", "lamp"))
