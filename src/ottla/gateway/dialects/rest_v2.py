"""Confluent REST Proxy, API v2: produce, and consumer instances, in JSON and binary."""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Message, TopicPartition
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.client.wire.errors import BrokerError
from ottla.gateway.core.consumer_instances import ConsumerInstances, poll
from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.dialects.rest_errors import (
    KAFKA_ERROR,
    RETRIABLE_KAFKA_ERROR,
    Handler,
    RestError,
    answering,
    partition_not_found,
    read_body,
    unprocessable,
)
from ottla.gateway.services import Services
from ottla.protocol.errors import ErrorCode

MEDIA_TYPE: Final = "application/vnd.kafka.v2+json"
BINARY: Final = "binary"
JSON: Final = "json"

_CONTENT_TYPES: Final = {
    "application/vnd.kafka.binary.v2+json": BINARY,
    "application/vnd.kafka.json.v2+json": JSON,
    MEDIA_TYPE: BINARY,
    "application/json": BINARY,
    "application/octet-stream": BINARY,
}
_ACCEPTED: Final = {**_CONTENT_TYPES, "*/*": None, "": None}
_TIMEOUT_MS: Final = 1_000
_TIMEOUT_MS_MAX: Final = 60_000
_BYTES_MAX: Final = 64 * 1024 * 1024
_INSTANCE: Final = "/consumers/{group}/instances/{instance}"


def routes(services: Services) -> Sequence[BaseRoute]:
    producing = _Producing(services.publisher)
    consume = _Consuming(services.consumers)

    def route(path: str, handler: Handler, method: str) -> BaseRoute:
        return Route(path, answering(handler, MEDIA_TYPE), methods=[method])

    return [
        route("/topics/{topic}", producing.produce, "POST"),
        route("/topics/{topic}/partitions/{partition:int}", producing.produce, "POST"),
        route("/consumers/{group}", consume.create, "POST"),
        route(_INSTANCE, consume.delete, "DELETE"),
        route(_INSTANCE + "/subscription", consume.subscribe, "POST"),
        route(_INSTANCE + "/subscription", consume.subscription, "GET"),
        route(_INSTANCE + "/subscription", consume.unsubscribe, "DELETE"),
        route(_INSTANCE + "/assignments", consume.assign, "POST"),
        route(_INSTANCE + "/assignments", consume.assignments, "GET"),
        route(_INSTANCE + "/records", consume.records, "GET"),
        route(_INSTANCE + "/offsets", consume.commit, "POST"),
        route(_INSTANCE + "/offsets", consume.committed, "GET"),
        route(_INSTANCE + "/positions", consume.seek, "POST"),
        route(_INSTANCE + "/positions/beginning", consume.seek_to_beginning, "POST"),
        route(_INSTANCE + "/positions/end", consume.seek_to_end, "POST"),
    ]


def answer(content: Any, media_type: str = MEDIA_TYPE) -> Response:
    return Response(json.dumps(content), media_type=media_type)


def _done() -> Response:
    return Response(status_code=204)


def _format_of_content(request: Request) -> str:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    found = _CONTENT_TYPES.get(media_type)
    if found is None:
        raise RestError(415, 415, "HTTP 415 Unsupported Media Type")
    return found


# Producing.


class _Producing:
    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher

    async def produce(self, request: Request) -> Response:
        partition: int | None = request.path_params.get("partition")
        encoding = _format_of_content(request)
        topic: str = request.path_params["topic"]
        records = (await read_body(request)).get("records")
        if not isinstance(records, list) or not records:
            raise unprocessable("records may not be empty")
        parsed = [_record(item, encoding, partition) for item in records]
        leaders = (await self._publisher.topic(topic)).leaders
        if partition is not None and partition not in leaders:
            raise partition_not_found()
        outcomes = await self._publisher.publish_all(topic, parsed)
        offsets = [_offset(outcome) for outcome in outcomes]
        return answer({"offsets": offsets, "key_schema_id": None, "value_schema_id": None})


def _record(item: Any, encoding: str, partition: int | None) -> NewRecord:
    if not isinstance(item, dict):
        raise unprocessable("a record is not a JSON object")
    if partition is None:
        partition = item.get("partition")
        if partition is not None and (type(partition) is not int or partition < 0):
            raise unprocessable("partition must be a number from 0 on")
    value, key = (_encoded(item.get(name), encoding) for name in ("value", "key"))
    return NewRecord(value, key, partition)


def _encoded(value: Any, encoding: str) -> bytes | None:
    if value is None:
        return None
    if encoding == JSON:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise unprocessable("Payload error. Keys and values must be base64.", 42206) from None


def _offset(outcome: Published | Exception) -> dict[str, Any]:
    if not isinstance(outcome, Exception):
        return {
            "partition": outcome.partition,
            "offset": outcome.offset,
            "error_code": None,
            "error": None,
        }
    may_pass = not isinstance(outcome, BrokerError) or outcome.may_pass
    code = RETRIABLE_KAFKA_ERROR if may_pass else KAFKA_ERROR
    if isinstance(outcome, BrokerError) and outcome.code is ErrorCode.unknown_topic_or_partition:
        code = 40402
    return {"partition": None, "offset": None, "error_code": code, "error": str(outcome)}


# Consuming.


class _Consuming:
    def __init__(self, instances: ConsumerInstances) -> None:
        self._instances = instances

    async def create(self, request: Request) -> Response:
        body = await read_body(request)
        encoding = body.get("format", BINARY)
        if encoding not in (BINARY, JSON):
            raise unprocessable(
                f"Invalid consumer configuration: {encoding} is not a format here.", 42204
            )
        reset = body.get("auto.offset.reset", "latest")
        if reset not in ("earliest", "latest", "none"):
            raise unprocessable("Invalid consumer configuration: auto.offset.reset", 42204)
        name = str(body.get("name") or body.get("id") or f"rest-consumer-{uuid4()}")
        key = request.path_params["group"], name
        config = {
            "auto.offset.reset": {"none": "error"}.get(reset, reset),
            "enable.auto.commit": str(body.get("auto.commit.enable", "true")).lower() == "true",
        }
        timeout_ms = _number(body.get("consumer.request.timeout.ms", _TIMEOUT_MS))
        await self._instances.create(key, encoding, timeout_ms, config)
        base = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}"
        uri = f"{base}/consumers/{key[0]}/instances/{name}"
        return answer({"instance_id": name, "base_uri": uri})

    async def delete(self, request: Request) -> Response:
        await self._instances.delete(_key(request))
        return _done()

    async def subscribe(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        body = await read_body(request)
        topics, pattern = body.get("topics"), body.get("topic_pattern")
        if (topics is None) == (pattern is None):
            raise RestError(
                409,
                40903,
                "Illegal state: Subscription to topics, partitions and pattern are"
                " mutually exclusive.",
            )
        names = [f"^{str(pattern).removeprefix('^')}"] if topics is None else _topics(topics)
        await instance.run(lambda consumer: consumer.subscribe(names))
        instance.topics = names
        return _done()

    async def subscription(self, request: Request) -> Response:
        return answer({"topics": self._instances.get(_key(request)).topics})

    async def unsubscribe(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        await instance.run(lambda consumer: consumer.unsubscribe())
        instance.topics = []
        return _done()

    async def assign(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        topic_partitions = _topic_partitions((await read_body(request)).get("partitions"))
        if instance.topics:
            raise RestError(409, 40903, "Illegal state: the consumer is subscribed to topics.")
        await instance.run(lambda consumer: consumer.assign(topic_partitions))
        return _done()

    async def assignments(self, request: Request) -> Response:
        found = await self._instances.get(_key(request)).run(lambda consumer: consumer.assignment())
        partitions = [{"topic": each.topic, "partition": each.partition} for each in found]
        return answer({"partitions": partitions})

    async def records(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        accepted = request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip()
        if accepted not in _ACCEPTED:
            raise RestError(406, 406, "HTTP 406 Not Acceptable")
        if accepted != MEDIA_TYPE and _ACCEPTED[accepted] not in (None, instance.format):
            raise RestError(
                406,
                40601,
                "The requested embedded data format does not match the deserializer"
                " for this consumer instance",
            )
        query = request.query_params
        timeout_ms = _number(query.get("timeout", instance.timeout_ms))
        bytes_max = _number(query.get("max_bytes", _BYTES_MAX))
        timeout_ms = min(timeout_ms, _TIMEOUT_MS_MAX)
        found = await instance.run(lambda consumer: poll(consumer, timeout_ms, bytes_max))
        content = [_shown(each, instance.format) for each in found]
        return answer(content, f"application/vnd.kafka.{instance.format}.v2+json")

    async def commit(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        offsets = (await read_body(request)).get("offsets")
        topic_partitions = _topic_partitions(offsets, with_offsets=True) if offsets else None

        def commit(consumer: Consumer) -> Any:
            # The proxy takes the offset of the last record, Kafka that of the next.
            if topic_partitions is None:
                return consumer.commit(asynchronous=False)
            following = [
                TopicPartition(each.topic, each.partition, each.offset + 1)
                for each in topic_partitions
            ]
            return consumer.commit(offsets=following, asynchronous=False)

        await instance.run(commit)
        return answer([])

    async def committed(self, request: Request) -> Response:
        instance = self._instances.get(_key(request))
        topic_partitions = _topic_partitions((await read_body(request)).get("partitions"))
        found = await instance.run(lambda consumer: consumer.committed(topic_partitions))
        offsets = [
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": each.offset,
                "metadata": each.metadata or "",
            }
            for each in found
            if each.offset >= 0
        ]
        return answer({"offsets": offsets})

    async def seek(self, request: Request) -> Response:
        topic_partitions = _topic_partitions(
            (await read_body(request)).get("offsets"), with_offsets=True
        )
        return await self._seek(request, topic_partitions)

    async def seek_to_beginning(self, request: Request) -> Response:
        return await self._seek(request, await _ends(request, OFFSET_BEGINNING))

    async def seek_to_end(self, request: Request) -> Response:
        return await self._seek(request, await _ends(request, OFFSET_END))

    async def _seek(self, request: Request, topic_partitions: list[TopicPartition]) -> Response:
        instance = self._instances.get(_key(request))

        def seek(consumer: Consumer) -> None:
            assigned = consumer.assignment()
            wanted = {(each.topic, each.partition): each for each in topic_partitions}
            if wanted.keys() - {(each.topic, each.partition) for each in assigned}:
                raise RestError(409, 40903, "Illegal state: No current assignment for partition")
            consumer.assign([wanted.get((each.topic, each.partition), each) for each in assigned])

        await instance.run(seek)
        return _done()


def _key(request: Request) -> tuple[str, str]:
    return request.path_params["group"], request.path_params["instance"]


def _number(value: Any) -> int:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise RestError(400, 400, f"{value} is not a number from 0 on.")
    return int(text)


def _topics(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise unprocessable("topics must be a list of names")
    for name in value:
        validate_topic(name)
    return value


def _topic_partitions(value: Any, *, with_offsets: bool = False) -> list[TopicPartition]:
    if not isinstance(value, list):
        raise unprocessable("a list of partitions is needed")
    found = []
    for item in value:
        if not isinstance(item, dict) or not isinstance(item.get("topic"), str):
            raise unprocessable("a partition is {topic, partition}")
        numbers: list[Any] = [item.get("partition")]
        if with_offsets:
            numbers.append(item.get("offset"))
        if any(type(number) is not int or number < 0 for number in numbers):
            raise unprocessable("partitions and offsets are numbers from 0 on")
        validate_topic(item["topic"])
        found.append(TopicPartition(item["topic"], *numbers))
    return found


async def _ends(request: Request, offset: int) -> list[TopicPartition]:
    topic_partitions = _topic_partitions((await read_body(request)).get("partitions"))
    return [TopicPartition(each.topic, each.partition, offset) for each in topic_partitions]


def _shown(message: "Message[Any, Any]", encoding: str) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "key": _decoded(message.key(), encoding),
        "value": _decoded(message.value(), encoding),
        "partition": message.partition(),
        "offset": message.offset(),
    }


def _decoded(value: bytes | None, encoding: str) -> Any:
    if value is None:
        return None
    if encoding == BINARY:
        return base64.b64encode(value).decode()
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise RestError(
            500, KAFKA_ERROR, "A record is not JSON; make a consumer of the format binary."
        ) from None
