"""SaslHandshake (17): v0-v1.

The gate of a SASL listener answers it before a login, or for its renewal. Here it is too late, or
on a listener without login.
"""

from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode


def handle(_: Broker, __: RequestContext, ___: SaslHandshakeRequest) -> SaslHandshakeResponse:
    raise ApiError(ErrorCode.illegal_sasl_state, "there is no login on this connection now")
