"""How a node logs in to another: SCRAM, with its own name and password."""

import re
import secrets
from collections.abc import Generator
from dataclasses import field
from typing import Any, Final

from ottla.protocol.codec import newest_request_type, read_response, write_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import SCRAM_MECHANISMS
from ottla.security.scram_client import ScramClient

_HANDSHAKE: Final = (17, 1)
_AUTHENTICATE: Final = (36, 2)
_NONCE_BYTES: Final = 24
_OPTION: Final = r'\b{}\s*=\s*"((?:[^"\\]|\\.)*)"'


@dataclass(frozen=True, slots=True)
class PeerLogin:
    mechanism: str  # One of SCRAM_MECHANISMS.
    username: str
    password: str = field(repr=False)

    def frames(self, client_id: str) -> Generator[bytes, memoryview, None]:
        """Yields the messages to send and receives the responses, without their size;
        AuthenticationFailed and ProtocolError if the peer does not accept it."""

        def frame(api: tuple[int, int], **values: object) -> bytes:
            key, version = api
            request = newest_request_type(key)(**values)
            return write_request(key, version, 0, client_id, request)

        _taken(_HANDSHAKE, (yield frame(_HANDSHAKE, mechanism=self.mechanism)))
        client = ScramClient(
            SCRAM_MECHANISMS[self.mechanism],
            self.username,
            self.password,
            secrets.token_urlsafe(_NONCE_BYTES),
        )
        first = _taken(_AUTHENTICATE, (yield frame(_AUTHENTICATE, auth_bytes=client.first())))
        proof = client.final(bytes(first.auth_bytes))
        final = _taken(_AUTHENTICATE, (yield frame(_AUTHENTICATE, auth_bytes=proof)))
        client.verify(bytes(final.auth_bytes))


def _taken(api: tuple[int, int], frame: memoryview) -> Any:
    response = read_response(*api, frame)[1]
    if response.error_code is not ErrorCode.none:
        reason = getattr(response, "error_message", None) or response.error_code.name
        raise AuthenticationFailed(reason)
    return response


def parse_jaas(mechanism: str, text: str) -> PeerLogin:
    """`... required username="node" password="...";`, in Kafka's format; otherwise ValueError."""
    values = {}
    for name in ("username", "password"):
        found = re.search(_OPTION.format(name), text)
        if found is None:
            raise ValueError(f'sasl.jaas.config has no {name}="..."')
        values[name] = re.sub(r"\\(.)", r"\1", found[1])
    return PeerLogin(mechanism, **values)
