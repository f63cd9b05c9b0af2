"""`POST /consume`, `/ack`, `/nack`, `/clear`: a queue in four calls, one record at a time."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.bodies import read_object
from ottla.gateway.api.queue_bodies import (
    delay_ms_of,
    handles_of,
    text_of,
    wait_ms_of,
)
from ottla.gateway.api.queues import delivery_fields, receive_for, settled_response
from ottla.gateway.core.queues import Delivery
from ottla.gateway.core.record_json import encode
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.services import Services

DEFAULT_GROUP: Final = "default"

_FIELDS: Final = ("topic", "partition", "offset", "key", "key_base64", "delivery")
_MESSAGE: Final = {"value": "message", "value_base64": "message_base64"}


def routes(services: Services) -> Sequence[BaseRoute]:
    queues = services.queues

    async def consume(request: Request) -> Response:
        body = await read_object(request)
        return await receive_for(
            request,
            queues,
            text_of(body, "topic"),
            text_of(body, "group", DEFAULT_GROUP),
            count=1,
            wait_ms=wait_ms_of(body),
            lock_ms=None,
            encode_deliveries=_encode_message,
        )

    async def ack(request: Request) -> Response:
        handles, is_batch = handles_of(await read_object(request))
        return settled_response(await queues.acknowledge(handles), is_batch=is_batch)

    async def nack(request: Request) -> Response:
        body = await read_object(request)
        handles, is_batch = handles_of(body)
        settled = await queues.release(handles, delay_ms=delay_ms_of(body))
        return settled_response(settled, is_batch=is_batch)

    async def clear(request: Request) -> Response:
        topic = text_of(await read_object(request), "topic")
        validate_topic(topic)
        begins = await queues.clear(topic)
        return JSONResponse({"topic": topic, "partitions": {str(p): o for p, o in begins.items()}})

    return [
        Route("/consume", consume, methods=["POST"]),
        Route("/ack", ack, methods=["POST"]),
        Route("/nack", nack, methods=["POST"]),
        Route("/clear", clear, methods=["POST"]),
    ]


def _encode_message(deliveries: Sequence[Delivery]) -> bytes | None:
    if not deliveries:
        return None
    fields = delivery_fields(deliveries[0])
    message: dict[str, Any] = {name: fields[name] for name in _FIELDS if name in fields}
    message |= {new: fields[old] for old, new in _MESSAGE.items() if old in fields}
    return encode(message)
