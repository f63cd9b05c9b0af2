"""ReceiveMessage, and what consumers do with received messages."""

import asyncio
import base64
import time
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

from ottla.gateway.core.dead_letters import origin_of
from ottla.gateway.core.queues import Delivery, Queues, Settled, SettleError
from ottla.gateway.dialects.sqs.batches import Entry, batch_result, validate_entries
from ottla.gateway.dialects.sqs.call import Call, queue_in
from ottla.gateway.dialects.sqs.catalogue import Catalogue, Queue
from ottla.gateway.dialects.sqs.errors import SqsError, denied, invalid_value, unavailable
from ottla.gateway.dialects.sqs.ids import id_of_record
from ottla.gateway.dialects.sqs.message_attributes import (
    attributes_md5,
    body_md5,
    from_headers,
    select,
    text_of,
)
from ottla.gateway.dialects.sqs.sending import (
    DEDUPLICATION_ID,
    MESSAGE_ID,
    SENDER_ID,
    TRACE,
    sequence_number,
)

DELIVERIES: Final = "deliveries"  # For the sender of the answer; removed before sending.

_COUNT_MAX: Final = 10
_WAIT_S_MAX: Final = 20
_VISIBILITY_TIMEOUT_S_MAX: Final = 43_200
_AT_ONCE_MS: Final = 1  # A lock that expires as soon as it is taken: the message stays visible.
_DEAD_LETTER_TOPIC: Final = "__dlq.errors.topic"
_ENCODING: Final = "ottla-encoding"


class Receiving:
    def __init__(self, catalogue: Catalogue, queues: Queues) -> None:
        self._catalogue = catalogue
        self._queues = queues

    async def receive_message(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        count = _bounded(request, "MaxNumberOfMessages", 1, _COUNT_MAX, default=1)
        queue = await self._catalogue.get(queue_in(request))
        lock_s = _bounded(
            request,
            "VisibilityTimeout",
            0,
            _VISIBILITY_TIMEOUT_S_MAX,
            default=queue.visibility_timeout_s,
        )
        wait_s = _bounded(request, "WaitTimeSeconds", 0, _WAIT_S_MAX, default=queue.wait_s)
        await self._catalogue.configure(queue)
        deliveries = await self._receive(queue, count, wait_s, lock_s)
        wanted = _Wanted(
            request.get("MessageAttributeNames") or (),
            {
                *(request.get("AttributeNames") or ()),
                *(request.get("MessageSystemAttributeNames") or ()),
            },
        )
        messages = [_message(call, queue, delivery, wanted) for delivery in deliveries]
        return {"Messages": messages, DELIVERIES: deliveries} if messages else {}

    async def _receive(
        self, queue: Queue, count: int, wait_s: int, lock_s: int
    ) -> Sequence[Delivery]:
        """Leaves out messages received as often as the redrive policy allows; they are rejected."""
        deadline = time.monotonic() + wait_s
        while True:
            deliveries = await self._queues.receive(
                queue.name,
                queue.group,
                count=count,
                wait_ms=max(0, int((deadline - time.monotonic()) * 1000)),
                lock_ms=1000 * lock_s or _AT_ONCE_MS,
            )
            if queue.redrive is None:
                return deliveries
            alive = [each for each in deliveries if not _is_worn(queue, each)]
            worn = [each.handle for each in deliveries if _is_worn(queue, each)]
            if worn:
                try:
                    await self._queues.reject(worn)
                except asyncio.CancelledError:
                    self._queues.put_back(alive)
                    raise
            if alive or not deliveries:
                return alive

    async def delete_message(self, _call: Call, request: dict[str, Any]) -> None:
        queue = await self._catalogue.get(queue_in(request))
        (settled,) = await self._queues.acknowledge(
            [request["ReceiptHandle"]], topic=queue.name, group=queue.group
        )
        error = _deletion_error(queue, settled)
        if error is not None:
            raise error

    async def delete_message_batch(self, _call: Call, request: dict[str, Any]) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request))
        entries: list[Entry] = request["Entries"]
        validate_entries(entries, "DeleteMessage")
        handles = [entry["ReceiptHandle"] for entry in entries]
        settled = await self._queues.acknowledge(handles, topic=queue.name, group=queue.group)
        return batch_result(entries, [_deletion_error(queue, each) or {} for each in settled])

    async def change_message_visibility(self, _call: Call, request: dict[str, Any]) -> None:
        queue = await self._catalogue.get(queue_in(request))
        timeout_s = _bounded(request, "VisibilityTimeout", 0, _VISIBILITY_TIMEOUT_S_MAX, default=0)
        (outcome,) = await self._change(queue, [request["ReceiptHandle"]], timeout_s)
        if isinstance(outcome, SqsError):
            raise outcome

    async def change_message_visibility_batch(
        self, _call: Call, request: dict[str, Any]
    ) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request))
        entries: list[Entry] = request["Entries"]
        validate_entries(entries, "ChangeMessageVisibility")
        outcomes: dict[int, Any] = {}
        by_timeout: dict[int, list[int]] = {}
        for index, entry in enumerate(entries):
            try:
                timeout_s = _bounded(
                    entry, "VisibilityTimeout", 0, _VISIBILITY_TIMEOUT_S_MAX, default=0
                )
                by_timeout.setdefault(timeout_s, []).append(index)
            except SqsError as error:
                outcomes[index] = error
        for timeout_s, indexes in by_timeout.items():
            handles = [entries[index]["ReceiptHandle"] for index in indexes]
            changed = await self._change(queue, handles, timeout_s)
            outcomes.update(zip(indexes, changed, strict=True))
        return batch_result(entries, [outcomes[index] for index in range(len(entries))])

    async def _change(
        self, queue: Queue, handles: Sequence[str], timeout_s: int
    ) -> list[SqsError | dict[str, Any]]:
        settled = await self._queues.extend(
            handles, lock_ms=1000 * timeout_s, topic=queue.name, group=queue.group
        )
        return [_settle_error(each) or {} for each in settled]


def _is_worn(queue: Queue, delivery: Delivery) -> bool:
    redrive = queue.redrive
    return redrive is not None and delivery.opened.delivery_count > redrive.receive_count_max


def _bounded(request: Mapping[str, Any], name: str, least: int, most: int, *, default: int) -> int:
    value = request.get(name)
    if value is None:
        return default
    if not least <= value <= most:
        raise invalid_value(
            f"Value {value} for parameter {name} is invalid. Reason: Must be between {least} and"
            f" {most}, if provided."
        )
    return int(value)


# Outcomes of handles.


def _settle_error(settled: Settled) -> SqsError | None:
    match settled.error:
        case None:
            return None
        case SettleError.INVALID | SettleError.OTHER_QUEUE:
            return SqsError(
                "ReceiptHandleIsInvalid",
                f'The input receipt handle "{settled.handle}" is not a valid receipt handle.',
            )
        case SettleError.FORBIDDEN:
            return denied(settled.message)
        case SettleError.UNAVAILABLE | SettleError.NOT_HERE:
            return unavailable(settled.message)
    return SqsError(
        "MessageNotInflight",
        "The message does not exist or is not available for visibility timeout change.",
    )


def _deletion_error(queue: Queue, settled: Settled) -> SqsError | None:
    """A message that is gone or whose lock expired counts as deleted, except in FIFO queues."""
    if settled.error is not SettleError.EXPIRED:
        return _settle_error(settled)
    if not queue.is_fifo:
        return None
    return invalid_value(
        f"Value {settled.handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle"
        " has expired."
    )


# Messages.


class _Wanted(NamedTuple):
    """What to return of a message besides its body."""

    attributes: Sequence[str]
    system_attributes: Set[str]


def _message(call: Call, queue: Queue, delivery: Delivery, wanted: _Wanted) -> dict[str, Any]:
    attributes: dict[str, Mapping[str, Any]] = {}
    content = delivery.record.value or b""
    body = text_of(content)
    if wanted.attributes:
        attributes = select(from_headers(delivery.record.headers), wanted.attributes)
    if body is None:  # Not text: written by a Kafka producer.
        body = base64.b64encode(content).decode()
        attributes[_ENCODING] = {"StringValue": "base64", "DataType": "String"}
        content = body.encode()
    message: dict[str, Any] = {
        "MessageId": _message_id(delivery),
        "ReceiptHandle": delivery.handle,
        "MD5OfBody": body_md5(content),
        "Body": body,
    }
    names = wanted.system_attributes
    if names:
        found = _system_attributes(call, queue, delivery)
        message["Attributes"] = (
            found if "All" in names else {name: found[name] for name in found if name in names}
        )
    if attributes:
        message["MessageAttributes"] = attributes
        message["MD5OfMessageAttributes"] = attributes_md5(attributes)
    return message


def _message_id(delivery: Delivery) -> str:
    known = _header(delivery, MESSAGE_ID)
    if known is not None:
        return known
    source = origin_of(delivery.record.headers) or delivery.opened
    return id_of_record(source.topic, source.partition, source.offset)


def _system_attributes(call: Call, queue: Queue, delivery: Delivery) -> dict[str, str]:
    found = {
        "SenderId": _header(delivery, SENDER_ID) or "anonymous",
        "SentTimestamp": str(delivery.record.timestamp),
        "ApproximateReceiveCount": str(delivery.opened.delivery_count),
        "ApproximateFirstReceiveTimestamp": str(time.time_ns() // 1_000_000),
    }
    if delivery.record.key is not None and (group_id := text_of(delivery.record.key)):
        found["MessageGroupId"] = group_id
    if queue.is_fifo:
        found["SequenceNumber"] = sequence_number(delivery.record.offset)
    optional = {
        "MessageDeduplicationId": _header(delivery, DEDUPLICATION_ID),
        "AWSTraceHeader": _header(delivery, TRACE),
    }
    found.update({name: value for name, value in optional.items() if value is not None})
    source = _header(delivery, _DEAD_LETTER_TOPIC)
    if source is not None:
        found["DeadLetterQueueSourceArn"] = call.arn(source)
    return found


def _header(delivery: Delivery, name: str) -> str | None:
    for key, value in delivery.record.headers:
        if key == name and value is not None:
            return value.decode(errors="replace")
    return None
