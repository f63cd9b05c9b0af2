"""SaslAuthenticate (36): v0-v2.

See `sasl_handshake`: a request that arrives here had no handshake.

v1  how long the login lasts (KIP-368)
v2  flexible
"""

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError, ErrorCode


def handle(_: Broker, __: RequestContext, ___: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    raise ApiError(ErrorCode.illegal_sasl_state, "SaslHandshake comes before SaslAuthenticate")
