"""SaslHandshake (17): v0-v1.

The gate of a listener with SASL answers it before a login, or when one is to be renewed. Here it
comes too late, or to a listener that wants no login.
"""

from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode


def handle(_: Broker, __: RequestContext, ___: SaslHandshakeRequest) -> SaslHandshakeResponse:
    raise ApiError(ErrorCode.illegal_sasl_state, "there is no login on this connection now")


def error_response(_: SaslHandshakeRequest, error: ApiError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)
