"""Records: publish them, and read a partition.

POST /topics/{topic}/records                       by the content type of the body:
    application/json that is an array              a batch, one report per record in order
    application/x-ndjson                           a stream, one report line per acknowledged record
    application/cloudevents(-batch)+json, ce-*     CloudEvents
    anything else                                  one record, whose value is the body
GET  /topics/{topic}/partitions/{partition}/records?offset=|time=&max=&wait=
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.client.wire.cluster import Topic, TopicPartition
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.gateway.api.bodies import read_body, read_json, read_stream
from ottla.gateway.api.cloudevents import (
    BATCH,
    STRUCTURED,
    binary_event,
    is_binary,
    structured_event,
)
from ottla.gateway.api.new_records import (
    acks_of,
    common_headers,
    record_of,
    record_of_json,
    records_of_text,
    validate_delay,
    with_headers,
)
from ottla.gateway.api.once import is_once, publish_once
from ottla.gateway.api.parameters import header, number, parse_number, topic_name
from ottla.gateway.api.record_stream import NDJSON, publish_stream
from ottla.gateway.api.reports import encode_report, encode_reports
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.partition_writer import Published
from ottla.gateway.core.record_json import NewRecord, record_to_json
from ottla.gateway.core.topic_names import validate_partition
from ottla.gateway.problems import Problem
from ottla.gateway.services import Services

_JSON: Final = "application/json"
_OFFSET_MAX: Final = 2**63 - 1
_PARTITION_MAX: Final = 2**31 - 1
_READ_COUNT: Final = 100
_ENDS: Final = {"earliest": EARLIEST, "latest": LATEST}


def routes(services: Services) -> Sequence[BaseRoute]:
    api = _Records(services)
    return [
        Route("/topics/{topic}/records", api.publish, methods=["POST"]),
        Route("/topics/{topic}/partitions/{partition}/records", api.read, methods=["GET"]),
    ]


class _Records:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._settings = services.settings
        self._publisher = services.publisher
        self._reader = services.reader

    async def publish(self, request: Request) -> Response:
        topic = topic_name(request)
        media_type = _media_type(header(request, b"content-type") or b"")
        if media_type == NDJSON:
            if is_once(request):
                raise Invalid("a stream has no Idempotency-Key; send a batch")
            read_stream(request)
            await validate_delay(request, self._services, topic)
            return await publish_stream(request, topic, self._publisher, self._settings)
        acks = acks_of(request)
        if media_type == BATCH:
            return await self._publish_many(
                request, topic, _events(request, await read_json(request))
            )
        body = await read_body(request)
        if media_type == _JSON and body.lstrip()[:1] == b"[":
            return await self._publish_many(request, topic, await _batch(request, body))
        record = record_of(request, body)
        if media_type == STRUCTURED:
            record = structured_event(await read_json(request), record)
        elif is_binary(request):
            record = binary_event(request, record)
        known = await self._publisher.topic(topic)
        _validate_partitions(topic, known, [record])
        await validate_delay(request, self._services, topic)
        if is_once(request):
            (outcome,) = await publish_once(request, self._services, topic, known, [record])
        else:
            outcome = await self._publisher.publish(topic, record, acks)
        return Response(encode_report(topic, outcome), media_type=_JSON)

    async def _publish_many(
        self, request: Request, topic: str, records: Sequence[NewRecord]
    ) -> Response:
        if len(records) > self._settings.batch_records_max:
            raise Problem(
                413,
                f"a batch has at most {self._settings.batch_records_max} records",
                hint="Send NDJSON, which is read as a stream.",
            )
        known = await self._publisher.topic(topic)
        _validate_partitions(topic, known, records)
        await validate_delay(request, self._services, topic)
        outcomes: Sequence[Published | Exception]
        if is_once(request):
            outcomes = await publish_once(request, self._services, topic, known, records)
        else:
            outcomes = await self._publisher.publish_all(topic, records, acks_of(request))
        failures = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        if failures and len(failures) == len(outcomes):
            raise failures[0]
        return Response(
            encode_reports(topic, outcomes),
            207 if failures else 200,
            media_type=_JSON,
        )

    async def read(self, request: Request) -> Response:
        partition = parse_number(
            request.path_params["partition"], "partition", maximum=_PARTITION_MAX
        )
        topic_partition = TopicPartition(topic_name(request), partition)
        settings = self._settings
        count_max = number(request, "max", maximum=settings.read_records_max)
        wait_ms = number(request, "wait", maximum=settings.read_wait_ms_max)
        found = await self._reader.read(
            topic_partition,
            await self._start(request, topic_partition),
            count_max=_READ_COUNT if count_max is None else count_max,
            wait_ms=wait_ms or 0,
        )
        answer = {
            "records": [record_to_json(*topic_partition, record) for record in found.records],
            "next_offset": found.next_offset,
            "log_start_offset": found.log_start_offset,
            "high_watermark": found.high_watermark,
        }
        return JSONResponse(answer)

    async def _start(self, request: Request, topic_partition: TopicPartition) -> int:
        offset = request.query_params.get("offset")
        time_ms = number(request, "time", maximum=_OFFSET_MAX)
        if offset is not None and time_ms is not None:
            raise Invalid("say offset or time, not both")
        if time_ms is not None:
            return await self._reader.offset_at(topic_partition, time_ms)
        if offset is None or offset in _ENDS:
            return await self._reader.offset_at(topic_partition, _ENDS[offset or "earliest"])
        return parse_number(offset, "offset", maximum=_OFFSET_MAX)


@lru_cache(64)
def _media_type(content_type: bytes) -> str:
    return content_type.partition(b";")[0].strip().lower().decode("latin-1")


async def _batch(request: Request, body: bytes) -> list[NewRecord]:
    common = common_headers(request)
    texts = None if common else records_of_text(body)
    if texts is not None:
        return texts
    records = []
    for index, item in enumerate(await read_json(request)):
        try:
            record = record_of_json(item)
            records.append(with_headers(record, common) if common else record)
        except Invalid as error:
            raise Invalid(f"record {index}: {error}") from None
    return records


def _events(request: Request, items: Any) -> list[NewRecord]:
    if not isinstance(items, list):
        raise Invalid("a batch of CloudEvents is a JSON array")
    record = record_of(request, None)
    return [structured_event(item, record) for item in items]


def _validate_partitions(name: str, topic: Topic, records: Sequence[NewRecord]) -> None:
    for partition in {record.partition for record in records}:
        if partition is not None:
            validate_partition(TopicPartition(name, partition), topic)
