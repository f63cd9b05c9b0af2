"""What small services expect: one call, one JSON object."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.new_records import (
    common_headers,
    record_of_json,
    validate_delay,
    with_headers,
)
from ottla.gateway.api.once import IDEMPOTENCY_KEY, publish_once
from ottla.gateway.api.parameters import read_object
from ottla.gateway.api.reports import report
from ottla.gateway.core.errors import Invalid
from ottla.gateway.services import Services


def routes(services: Services) -> Sequence[BaseRoute]:
    async def publish(request: Request) -> Response:
        """`{topic, message, key?}`; answers when it is acknowledged."""
        body = await read_object(request, required={"topic", "message"}, optional={"key"})
        topic = _text(body, "topic")
        key = None if body.get("key") is None else _text(body, "key")
        known = await services.publisher.topic(topic)
        record = record_of_json({"value": body["message"], "key": key})
        record = with_headers(record, common_headers(request))
        await validate_delay(request, services, topic)
        if IDEMPOTENCY_KEY in request.headers:
            (outcome,) = await publish_once(request, services, topic, known, [record])
        else:
            outcome = await services.publisher.publish(topic, record)
        return JSONResponse(report(topic, outcome))

    return [Route("/publish", publish, methods=["POST"])]


def _text(body: dict[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not value:
        raise Invalid(f"{name} is text")
    return value
