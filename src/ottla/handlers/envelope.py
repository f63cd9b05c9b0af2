"""Envelope (58): v0.

A node of the cluster passes a request on to the controller, which is this node or NOT_CONTROLLER is
the answer. The response says how far the controller's image is, for the node that passed it on.
"""

from typing import Any

from kio.static.primitive import i64

from ottla.controller.mutations import Caller
from ottla.controller.operations import FORWARDED_KEYS
from ottla.handlers.api import ColdApi
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.codec import read_request, write_response
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.frames import RequestHeader, parse_request_header
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

_SIZE_BYTES = 4
_BROKER_HEARTBEAT_KEY = 63


async def handle(
    broker: Broker, context: RequestContext, envelope: EnvelopeRequest
) -> EnvelopeResponse:
    header, api, request = _open(envelope)
    try:
        response = await broker.controller.call_here(request, _caller(envelope))
        if header.api_key == _BROKER_HEARTBEAT_KEY:
            broker.connections.on_heartbeat(request.broker_id, context.session)
    except ApiError as error:
        if error.code is ErrorCode.not_controller:
            raise
        response = api.module.error_response(request, error)
    frame = write_response(header.api_key, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(
        response_data=frame[_SIZE_BYTES:],
        error_code=ErrorCode.none,
        metadata_offset=i64(broker.metadata_end_offset()),
    )


def _caller(envelope: EnvelopeRequest) -> Caller | None:
    if envelope.user is None:
        return None
    return Caller(envelope.user, envelope.client_id, envelope.is_strict)


def _open(envelope: EnvelopeRequest) -> tuple[RequestHeader, ColdApi, Any]:
    from ottla.handlers.table import API_TABLE  # It lists this module.

    frame = memoryview(envelope.request_data)
    try:
        header = parse_request_header(frame)
        request = read_request(header, frame)
    except ProtocolError as error:
        raise ApiError(ErrorCode.invalid_request, str(error)) from error
    api = API_TABLE.get(header.api_key)
    if header.api_key not in FORWARDED_KEYS or not isinstance(api, ColdApi):
        raise ApiError(ErrorCode.invalid_request, f"API key {header.api_key} is not forwarded")
    return header, api, request


def error_response(_: EnvelopeRequest, error: ApiError) -> EnvelopeResponse:
    return EnvelopeResponse(response_data=None, error_code=error.code)
