"""Requests of both protocols, to operations, to answers."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from ottla.client.wire.errors import WireError
from ottla.gateway.core.errors import CoreError
from ottla.gateway.core.queues import Delivery
from ottla.gateway.dialects.sqs import query_protocol
from ottla.gateway.dialects.sqs.call import Call, credential_of
from ottla.gateway.dialects.sqs.errors import SqsError, error_of
from ottla.gateway.dialects.sqs.ids import new_id
from ottla.gateway.dialects.sqs.managing import Managing
from ottla.gateway.dialects.sqs.moving import Moving
from ottla.gateway.dialects.sqs.receiving import DELIVERIES, Receiving
from ottla.gateway.dialects.sqs.sending import Sending
from ottla.gateway.dialects.sqs.shapes import INPUTS, validate

Operation = Callable[[Call, dict[str, Any]], Awaitable[dict[str, Any] | None]]

_AUTHORIZATION: Final = b"authorization"
_TARGET: Final = b"x-amz-target"
_TARGET_PREFIX: Final = b"AmazonSQS."
_RECEIVE_TARGET: Final = _TARGET_PREFIX + b"ReceiveMessage"
_JSON: Final = "application/x-amz-json-1.0"
_XML: Final = "text/xml"
_RECEIVE_ACTION: Final = b"Action=ReceiveMessage"
_SHAPE_PREFIX: Final = "com.amazonaws.sqs#"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    deliveries: Sequence[Delivery] = ()  # Returned if nobody is there to receive them.


class SqsServer:
    def __init__(
        self, sending: Sending, receiving: Receiving, managing: Managing, moving: Moving
    ) -> None:
        self._operations: dict[str, Operation] = {
            "AddPermission": managing.add_permission,
            "CancelMessageMoveTask": moving.cancel_message_move_task,
            "ChangeMessageVisibility": receiving.change_message_visibility,
            "ChangeMessageVisibilityBatch": receiving.change_message_visibility_batch,
            "CreateQueue": managing.create_queue,
            "DeleteMessage": receiving.delete_message,
            "DeleteMessageBatch": receiving.delete_message_batch,
            "DeleteQueue": managing.delete_queue,
            "GetQueueAttributes": managing.get_queue_attributes,
            "GetQueueUrl": managing.get_queue_url,
            "ListDeadLetterSourceQueues": managing.list_dead_letter_source_queues,
            "ListMessageMoveTasks": moving.list_message_move_tasks,
            "ListQueueTags": managing.list_queue_tags,
            "ListQueues": managing.list_queues,
            "PurgeQueue": managing.purge_queue,
            "ReceiveMessage": receiving.receive_message,
            "RemovePermission": managing.remove_permission,
            "SendMessage": sending.send_message,
            "SendMessageBatch": sending.send_message_batch,
            "SetQueueAttributes": managing.set_queue_attributes,
            "StartMessageMoveTask": moving.start_message_move_task,
            "TagQueue": managing.tag_queue,
            "UntagQueue": managing.untag_queue,
        }

    async def answer(
        self, headers: Mapping[bytes, bytes], base_url: str, path: str, query: bytes, body: bytes
    ) -> Answer:
        """`headers` by lower-case name."""
        access_key, region = credential_of(headers.get(_AUTHORIZATION, b"").decode("latin-1"))
        call = Call(base_url, new_id(), access_key, region)
        target = headers.get(_TARGET)
        if target is not None:
            operation = target.removeprefix(_TARGET_PREFIX).decode("latin-1")
            return await self._answer_json(call, operation, body)
        return await self._answer_query(call, path, query, body)

    async def _answer_json(self, call: Call, operation: str, body: bytes) -> Answer:
        headers = {"content-type": _JSON, "x-amzn-requestid": call.request_id}
        try:
            result = await self._run(call, operation, _parsed(body))
        except SqsError as error:
            return _json_error(error, call.request_id)
        deliveries = _deliveries(result)
        return Answer(200, headers, b"" if result is None else _encoded(result), deliveries)

    async def _answer_query(self, call: Call, path: str, query: bytes, body: bytes) -> Answer:
        headers = {"content-type": _XML, "x-amzn-requestid": call.request_id}
        try:
            parameters = query_protocol.parameters_of(body, query)
            operation = parameters.get("Action", "")
            if operation not in INPUTS:
                raise _unknown(operation)
            request = query_protocol.parse(operation, parameters)
            if "QueueUrl" in INPUTS[operation].members:
                request.setdefault("QueueUrl", call.base_url + path)
            result = await self._run(call, operation, request)
        except SqsError as error:
            return _query_error(error, call.request_id)
        deliveries = _deliveries(result)
        content = query_protocol.answer(operation, result, call.request_id)
        return Answer(200, headers, content, deliveries)

    async def _run(
        self, call: Call, operation: str, request: dict[str, Any]
    ) -> dict[str, Any] | None:
        run = self._operations.get(operation)
        if run is None:
            raise _unknown(operation)
        validate(request, INPUTS[operation])
        try:
            return await run(call, request)
        except (WireError, CoreError) as error:
            raise error_of(error) from None


def refused(error: SqsError, *, is_json: bool) -> Answer:
    """Before anything but the request's protocol was examined."""
    return (_json_error if is_json else _query_error)(error, new_id())


def _json_error(error: SqsError, request_id: str) -> Answer:
    fault = "Sender" if error.is_senders_fault else "Receiver"
    headers = {
        "content-type": _JSON,
        "x-amzn-requestid": request_id,
        "x-amzn-query-error": f"{error.query_code};{fault}",
    }
    document = {"__type": _SHAPE_PREFIX + error.name, "message": error.message}
    return Answer(error.status, headers, _encoded(document))


def _query_error(error: SqsError, request_id: str) -> Answer:
    headers = {"content-type": _XML, "x-amzn-requestid": request_id}
    return Answer(error.status, headers, query_protocol.error_answer(error, request_id))


def is_receive(headers: Mapping[bytes, bytes], query: bytes, body: bytes) -> bool:
    """Whether the answer may take a while and hold messages that nobody else gets."""
    target = headers.get(_TARGET)
    if target is not None:
        return target == _RECEIVE_TARGET
    return _RECEIVE_ACTION in query or _RECEIVE_ACTION in body


def _deliveries(result: dict[str, Any] | None) -> Sequence[Delivery]:
    """Removes them from the result of ReceiveMessage."""
    return () if result is None else result.pop(DELIVERIES, ())


def _unknown(operation: str) -> SqsError:
    return SqsError("UnknownOperationException", f"The action {operation} is not valid.")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        request = _decoded(body or b"{}")
    except (ValueError, RecursionError):
        raise SqsError("SerializationException", "The body is not valid JSON.") from None
    if not isinstance(request, dict):
        raise SqsError("SerializationException", "The body is not a JSON object.")
    return request


# The fast codec refuses lone surrogates, for which clients get a better answer.


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)


def _encoded(document: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        return json.dumps(document).encode()
