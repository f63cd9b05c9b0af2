"""`/queues/{topic}/{group}:receive`, `:ack`, `:nack`, `:extend`, `:reject`.

A delivery is settled with its handle, alone (`delivery`: 204, or a problem) or with others
(`deliveries`: a result for each).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.bodies import read_command
from ottla.gateway.api.queue_bodies import (
    RECEIVE_MAX,
    count_of,
    delay_ms_of,
    handles_of,
    lock_ms_of,
    wait_ms_of,
)
from ottla.gateway.api.waiting import answer_while_connected
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.queues import Delivery, Queues, Settled, SettleError
from ottla.gateway.core.record_json import encode, record_to_json
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.problems import Problem
from ottla.gateway.services import Services

_JSON: Final = "application/json"
_STATUS: Final = {
    SettleError.INVALID: (400, None),
    SettleError.OTHER_QUEUE: (400, None),
    SettleError.EXPIRED: (409, "INVALID_RECORD_STATE"),
    SettleError.FORBIDDEN: (403, "GROUP_AUTHORIZATION_FAILED"),
    SettleError.NOT_HERE: (421, "UNKNOWN_MEMBER_ID"),
    SettleError.UNAVAILABLE: (503, None),
}


def routes(services: Services) -> Sequence[BaseRoute]:
    queues = services.queues

    async def receive(request: Request) -> Response:
        body = await read_command(request)
        topic, group = _queue(request)
        return await receive_for(
            request,
            queues,
            topic,
            group,
            count=count_of(body, "max", 1, RECEIVE_MAX),
            wait_ms=wait_ms_of(body),
            lock_ms=lock_ms_of(body),
            encode_deliveries=_encode_deliveries,
        )

    async def ack(request: Request) -> Response:
        return await _settle(request, await read_command(request), queues.acknowledge)

    async def nack(request: Request) -> Response:
        body = await read_command(request)
        return await _settle(request, body, queues.release, delay_ms=delay_ms_of(body))

    async def reject(request: Request) -> Response:
        return await _settle(request, await read_command(request), queues.reject)

    async def extend(request: Request) -> Response:
        body = await read_command(request)
        lock_ms = lock_ms_of(body)
        if lock_ms is None:
            raise Invalid("`lock` is missing: for how many seconds from now")
        return await _settle(request, body, queues.extend, lock_ms=lock_ms)

    path = "/queues/{topic}/{group}"
    return [
        Route(f"{path}:receive", receive, methods=["POST"]),
        Route(f"{path}:ack", ack, methods=["POST"]),
        Route(f"{path}:nack", nack, methods=["POST"]),
        Route(f"{path}:extend", extend, methods=["POST"]),
        Route(f"{path}:reject", reject, methods=["POST"]),
    ]


async def receive_for(
    request: Request,
    queues: Queues,
    topic: str,
    group: str,
    *,
    count: int,
    wait_ms: int,
    lock_ms: int | None,
    encode_deliveries: Callable[[Sequence[Delivery]], bytes | None],
) -> Response:
    """Receive deliveries while the client stays connected; 204 without content."""
    validate_topic(topic)

    def answer(deliveries: Sequence[Delivery]) -> tuple[Response, Sequence[Delivery]]:
        content = encode_deliveries(deliveries)
        status = 204 if content is None else 200
        return Response(content, status, media_type=_JSON), deliveries

    received = queues.receive(topic, group, count=count, wait_ms=wait_ms, lock_ms=lock_ms)
    return await answer_while_connected(request, queues, received, answer)


def settled_response(settled: Sequence[Settled], *, is_batch: bool) -> Response:
    if is_batch:
        return Response(
            encode({"results": [settled_fields(each) for each in settled]}), media_type=_JSON
        )
    (only,) = settled
    if only.error is not None:
        status, name = _STATUS[only.error]
        retry_after_s = 1 if only.error is SettleError.UNAVAILABLE else None
        raise Problem(status, only.message, error=name, retry_after_s=retry_after_s)
    if only.locked_until_ms:
        return Response(encode({"locked_until": only.locked_until_ms}), media_type=_JSON)
    return Response(status_code=204)


async def _settle(
    request: Request,
    body: Mapping[str, Any],
    settle: Callable[..., Awaitable[list[Settled]]],
    **options: Any,
) -> Response:
    handles, is_batch = handles_of(body)
    topic, group = _queue(request)
    settled = await settle(handles, topic=topic, group=group, **options)
    return settled_response(settled, is_batch=is_batch)


def _queue(request: Request) -> tuple[str, str]:
    return request.path_params["topic"], request.path_params["group"]


def _encode_deliveries(deliveries: Sequence[Delivery]) -> bytes:
    return encode({"deliveries": [delivery_fields(each) for each in deliveries]})


def delivery_fields(delivery: Delivery) -> dict[str, Any]:
    handle = delivery.opened
    fields = record_to_json(handle.topic, handle.partition, delivery.record)
    fields["delivery"] = delivery.handle
    fields["delivery_count"] = handle.delivery_count
    fields["locked_until"] = delivery.locked_until_ms
    return fields


def settled_fields(settled: Settled) -> dict[str, Any]:
    if settled.error is not None:
        return {
            "delivery": settled.handle,
            "status": "failed",
            "error": settled.error,
            "detail": settled.message,
        }
    done: dict[str, Any] = {"delivery": settled.handle, "status": "done"}
    if settled.locked_until_ms:
        done["locked_until"] = settled.locked_until_ms
    return done
