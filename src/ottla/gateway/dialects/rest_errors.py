"""Errors of the Confluent REST Proxy: a number next to the status, and a message."""

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from confluent_kafka import KafkaException
from starlette.requests import Request
from starlette.responses import Response

from ottla.client.wire.errors import BrokerError, WireError
from ottla.gateway.core.consumer_instances import InstanceExists, NoInstance
from ottla.gateway.core.errors import Invalid, TooBusy
from ottla.protocol.errors import ErrorCode

Handler = Callable[[Request], Awaitable[Response]]

KAFKA_ERROR: Final = 50002
RETRIABLE_KAFKA_ERROR: Final = 50003


class RestError(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def topic_not_found() -> RestError:
    return RestError(404, 40401, "Topic not found.")


def partition_not_found() -> RestError:
    return RestError(404, 40402, "Partition not found.")


def unprocessable(message: str, code: int = 422) -> RestError:
    return RestError(422, code, message)


def rest_error_of(error: Exception) -> RestError:
    match error:
        case RestError():
            return error
        case Invalid():
            return unprocessable(str(error))
        case TooBusy():
            return RestError(429, 429, str(error))
        case NoInstance():
            return RestError(404, 40403, "Consumer instance not found.")
        case InstanceExists():
            return RestError(
                409,
                40902,
                "Consumer with specified consumer ID already exists in the specified"
                " consumer group.",
            )
        case BrokerError(code=ErrorCode.unknown_topic_or_partition):
            return topic_not_found()
        case BrokerError(code=ErrorCode.group_id_not_found):
            return RestError(404, 40405, "Consumer group id not found.")
        case BrokerError() if not error.may_pass:
            return RestError(400, KAFKA_ERROR, str(error))
        case WireError():
            return RestError(503, RETRIABLE_KAFKA_ERROR, str(error))
        case KafkaException():
            return RestError(500, KAFKA_ERROR, f"Kafka error: {error}")
    raise error


def answering(handler: Handler, media_type: str) -> Handler:
    """Wrap the handler so that errors have the proxy's form."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:
            found = rest_error_of(error)
            content = json.dumps({"error_code": found.code, "message": found.message})
            return Response(content, found.status, media_type=media_type)

    return answer


async def read_body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body() or b"{}")
    except (ValueError, RecursionError):
        raise RestError(400, 400, "The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise unprocessable("The body is not a JSON object.")
    return body
