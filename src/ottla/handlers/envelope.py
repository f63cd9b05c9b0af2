"""Envelope (58): v0.

A node forwards a request to the controller, which is this node; otherwise it gets NOT_CONTROLLER.
The response has the controller's metadata offset, for the forwarding node.

A client's request comes with the client's principal and address (KIP-590), and its handler
authorizes it here in their name, whatever the forwarding node decided. A request without a
principal is that node's own. Senders that may not act as a node are rejected before this is called.
"""

from inspect import isawaitable
from typing import Any

from kio.static.primitive import i64

from ottla.controller.mutations import Caller
from ottla.controller.operations import FORWARDED_KEYS, INTERNAL_KEYS
from ottla.handlers.api import ColdApi
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.codec import read_request, write_response
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.frames import RequestHeader, parse_request_header
from ottla.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.runtime.forwarding import forwarded_caller
from ottla.security.authorizer import UNLIMITED

_SIZE_BYTES = 4
_BROKER_HEARTBEAT_KEY = 63


async def handle(
    broker: Broker, context: RequestContext, envelope: EnvelopeRequest
) -> EnvelopeResponse:
    header, api, request = _open(envelope)
    caller = forwarded_caller(envelope)
    try:
        if caller is None:
            response = await broker.controller.call_here(request)
        else:
            response = await _handle_for(broker, context, header, caller, api, request)
        if header.api_key == _BROKER_HEARTBEAT_KEY:
            broker.connections.on_heartbeat(request.broker_id, context.session)
    except ApiError as error:
        if error.code is ErrorCode.not_controller:
            raise
        response = api.error_response(request, error)
    frame = write_response(header.api_key, header.api_version, header.correlation_id, response)
    return EnvelopeResponse(
        response_data=frame[_SIZE_BYTES:],
        error_code=ErrorCode.none,
        metadata_offset=i64(broker.metadata_end_offset()),
    )


async def _handle_for(
    broker: Broker,
    context: RequestContext,
    header: RequestHeader,
    caller: Caller,
    api: ColdApi,
    request: Any,
) -> Any:
    """The client's response. ApiError NOT_CONTROLLER while permissions are unknown."""
    if header.api_key in INTERNAL_KEYS:
        raise ApiError(ErrorCode.invalid_request, f"{api.name} is not for clients")
    authorizer, access = broker.authorizer, UNLIMITED
    if authorizer is not None:
        if not authorizer.is_loaded:
            raise ApiError(ErrorCode.not_controller, "the controller does not know the ACLs yet")
        access = authorizer.access(caller.principal, caller.host)
    own = RequestContext(
        header.api_version,
        caller.client_id,
        context.listener_name,
        context.session,
        access,
        forwarded=caller,
    )
    response = api.module.handle(broker, own, request)
    return await response if isawaitable(response) else response


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
