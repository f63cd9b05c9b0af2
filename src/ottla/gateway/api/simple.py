"""The API that small services expect: one call, one JSON object."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.bodies import Fields, read_object
from ottla.gateway.api.new_records import (
    common_headers,
    record_of_json,
    validate_delay,
    with_headers,
)
from ottla.gateway.api.once import is_once, publish_once
from ottla.gateway.api.reports import encode_report
from ottla.gateway.core.errors import Invalid
from ottla.gateway.services import Services


def routes(services: Services) -> Sequence[BaseRoute]:
    async def publish(request: Request) -> Response:
        """`{topic, message, key?}`; answers once the record is acknowledged."""
        body = await read_object(request)
        topic, key = _topic_and_key(body)
        known = await services.publisher.topic(topic)
        record = record_of_json({"value": body["message"], "key": key})
        record = with_headers(record, common_headers(request))
        await validate_delay(request, services, topic)
        if is_once(request):
            (outcome,) = await publish_once(request, services, topic, known, [record])
        else:
            outcome = await services.publisher.publish(topic, record)
        return Response(encode_report(topic, outcome), media_type="application/json")

    return [Route("/publish", publish, methods=["POST"])]


def _topic_and_key(body: dict[str, Any]) -> tuple[str, str | None]:
    """Raises Invalid for unknown or missing members."""
    fields = Fields(body)
    topic = fields.text("topic")
    key = None if body.get("key") is None else fields.text("key")
    if not topic or key == "":
        raise Invalid("topic and key are not empty")
    if "message" not in body:
        raise Invalid("the body needs message")
    fields.validate_all_known("key", "message")
    return topic, key
