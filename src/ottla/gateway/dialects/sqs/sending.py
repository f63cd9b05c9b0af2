"""SendMessage and SendMessageBatch: messages become records.

The body is the record's value, the message group its key, attributes are headers. Other data for
receivers is in headers that begin with `sqs-`.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ottla.client.wire.errors import WireError
from ottla.gateway.core.errors import CoreError
from ottla.gateway.core.idempotency import Idempotency
from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.dialects.sqs.batches import Entry, batch_result, validate_entries
from ottla.gateway.dialects.sqs.call import Call, queue_in
from ottla.gateway.dialects.sqs.catalogue import Catalogue, Queue
from ottla.gateway.dialects.sqs.errors import SqsError, error_of, invalid_value, missing
from ottla.gateway.dialects.sqs.ids import id_of_record, new_id
from ottla.gateway.dialects.sqs.message_attributes import (
    TRACE_HEADER,
    attributes_md5,
    attributes_size,
    body_md5,
    bytes_of,
    to_headers,
    validate_message_attributes,
)
from ottla.records.deliver_at import DELIVER_AT

MESSAGE_ID: Final = "sqs-message-id"
SENDER_ID: Final = "sqs-sender-id"
DEDUPLICATION_ID: Final = "sqs-deduplication-id"
TRACE: Final = "sqs-trace-header"

DEDUPLICATION_TOPIC: Final = "__gateway_sqs_deduplication"
DEDUPLICATION_WINDOW_S: Final = 300

_BATCH_BYTES_MAX: Final = 1_048_576
_DELAY_S_MAX: Final = 900
_TOKEN = re.compile(r"[!-~]{1,128}")  # ASCII letters, digits and punctuation.


class Message(NamedTuple):
    id: str
    record: NewRecord
    size: int
    group_id: str | None
    deduplication_id: str | None
    answer: dict[str, str]


class Sending:
    def __init__(
        self, catalogue: Catalogue, publisher: Publisher, deduplication: Idempotency
    ) -> None:
        self._catalogue = catalogue
        self._publisher = publisher
        self._deduplication = deduplication

    async def send_message(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request))
        message = message_of(call, queue, request)
        (outcome,) = await self._send(queue, [message])
        if isinstance(outcome, SqsError):
            raise outcome
        return outcome

    async def send_message_batch(self, call: Call, request: dict[str, Any]) -> dict[str, Any]:
        queue = await self._catalogue.get(queue_in(request))
        entries: list[Entry] = request["Entries"]
        validate_entries(entries, "SendMessage")
        messages = [_message_or_error(call, queue, entry) for entry in entries]
        size = sum(each.size for each in messages if isinstance(each, Message))
        if size > _BATCH_BYTES_MAX:
            raise SqsError(
                "BatchRequestTooLong",
                f"Batch requests cannot be longer than {_BATCH_BYTES_MAX} bytes. You have sent"
                f" {size} bytes.",
            )
        sent = iter(
            await self._send(queue, [each for each in messages if isinstance(each, Message)])
        )
        outcomes = [next(sent) if isinstance(each, Message) else each for each in messages]
        return batch_result(entries, outcomes)

    async def _send(
        self, queue: Queue, messages: Sequence[Message]
    ) -> list[dict[str, Any] | SqsError]:
        if not messages:
            return []
        published: Sequence[Published | Exception]
        if queue.is_fifo:
            published = [await self._send_once(queue, message) for message in messages]
        else:
            published = await self._publisher.publish_all(
                queue.name, [each.record for each in messages]
            )
        return [
            _answer(queue, message, outcome)
            for message, outcome in zip(messages, published, strict=True)
        ]

    async def _send_once(self, queue: Queue, message: Message) -> Published | Exception:
        """A message with a recently seen deduplication id is taken for the one sent then."""
        scope = queue.attributes["DeduplicationScope"] == "messageGroup"
        group = f"{message.group_id}/" if scope else ""
        key = f"{queue.name}/{queue.topic_id}/{group}{message.deduplication_id}"
        try:
            topic = await self._publisher.topic(queue.name)
            (published,) = await self._deduplication.publish(
                key, "", queue.name, topic, [message.record]
            )
        except (WireError, CoreError) as error:
            return error
        return published


def _answer(
    queue: Queue, message: Message, outcome: Published | Exception
) -> dict[str, Any] | SqsError:
    if isinstance(outcome, Exception):
        return error_of(outcome)
    answer = {"MessageId": message.id, **message.answer}
    if queue.is_fifo:
        assert outcome.offset is not None
        answer["MessageId"] = id_of_record(queue.name, outcome.partition, outcome.offset)
        answer["SequenceNumber"] = sequence_number(outcome.offset)
    return answer


def sequence_number(offset: int) -> str:
    """Ascending within a message group, which is in one partition."""
    return f"{offset:020d}"


def _message_or_error(call: Call, queue: Queue, entry: Entry) -> Message | SqsError:
    try:
        return message_of(call, queue, entry)
    except SqsError as error:
        return error


def message_of(call: Call, queue: Queue, request: dict[str, Any]) -> Message:
    """Raises SqsError if the message is not valid."""
    text: str = request["MessageBody"]
    if not text:
        raise missing("MessageBody")
    body = bytes_of(text)
    if body is None:
        raise SqsError("InvalidMessageContents", "Invalid characters found in the message body.")
    attributes = request.get("MessageAttributes") or {}
    validate_message_attributes(attributes)
    size = len(body) + attributes_size(attributes)
    if size > queue.message_bytes_max:
        raise invalid_value(
            "One or more parameters are invalid. Reason: Message must be shorter than"
            f" {queue.message_bytes_max} bytes."
        )
    group_id, deduplication_id = _fifo_parameters(queue, request, body)
    message_id = new_id()
    now_ms = time.time_ns() // 1_000_000
    headers = to_headers(attributes)
    if not queue.is_fifo:  # In FIFO queues a duplicate has the first message's id.
        headers.append((MESSAGE_ID, message_id.encode()))
    answer = {"MD5OfMessageBody": body_md5(body)}
    if attributes:
        answer["MD5OfMessageAttributes"] = attributes_md5(attributes)
    if call.access_key:
        headers.append((SENDER_ID, call.access_key.encode()))
    if deduplication_id is not None:
        headers.append((DEDUPLICATION_ID, deduplication_id.encode()))
    system = _system_attributes(request)
    if system:
        headers.append((TRACE, system[TRACE_HEADER]["StringValue"].encode()))
        answer["MD5OfMessageSystemAttributes"] = attributes_md5(system)
    delay_s = _delay_s(queue, request)
    if delay_s:
        headers.append((DELIVER_AT, str(now_ms + 1000 * delay_s).encode()))
    key = None if group_id is None else group_id.encode()
    record = NewRecord(body, key, headers=tuple(headers), timestamp_ms=now_ms)
    return Message(message_id, record, size, group_id, deduplication_id, answer)


def _delay_s(queue: Queue, request: dict[str, Any]) -> int:
    delay_s = request.get("DelaySeconds")
    if delay_s is None:
        return queue.delay_s
    if queue.is_fifo and delay_s != queue.delay_s:
        raise invalid_value(
            f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: The request include"
            " parameter that is not valid for this queue type."
        )
    if not 0 <= delay_s <= _DELAY_S_MAX:
        raise invalid_value(
            f"Value {delay_s} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be"
            f" >= 0 and <= {_DELAY_S_MAX}."
        )
    return int(delay_s)


def _fifo_parameters(
    queue: Queue, request: dict[str, Any], body: bytes
) -> tuple[str | None, str | None]:
    """The message group, and the id that identifies duplicates."""
    group_id = _token(request, "MessageGroupId")
    deduplication_id = _token(request, "MessageDeduplicationId")
    if not queue.is_fifo:
        if deduplication_id is not None:
            raise invalid_value(
                f"Value {deduplication_id} for parameter MessageDeduplicationId is invalid. Reason:"
                " The request includes a parameter that is not valid for this queue type."
            )
        return group_id, None
    if group_id is None:
        raise missing("MessageGroupId")
    if deduplication_id is None:
        if queue.attributes["ContentBasedDeduplication"] != "true":
            raise invalid_value(
                "The queue should either have ContentBasedDeduplication enabled or"
                " MessageDeduplicationId provided explicitly"
            )
        deduplication_id = hashlib.sha256(body).hexdigest()
    return group_id, deduplication_id


def _token(request: dict[str, Any], name: str) -> str | None:
    value: str | None = request.get(name)
    if value is not None and not _TOKEN.fullmatch(value):
        raise invalid_value(
            f"Value {value} for parameter {name} is invalid. Reason: {name} can only include"
            " alphanumeric and punctuation characters. 1 to 128 in length."
        )
    return value


def _system_attributes(request: dict[str, Any]) -> dict[str, Any]:
    system: dict[str, Any] = request.get("MessageSystemAttributes") or {}
    for name, attribute in system.items():
        if name != TRACE_HEADER or attribute.get("DataType") != "String":
            raise invalid_value(
                f"Message system attribute name '{name}' is invalid; only {TRACE_HEADER} of type"
                " String can be sent."
            )
        if not attribute.get("StringValue"):
            raise invalid_value(f"Message system attribute '{name}' must have a value.")
        if bytes_of(attribute["StringValue"]) is None:
            raise invalid_value(f"Message system attribute '{name}' has an invalid character.")
    return system
