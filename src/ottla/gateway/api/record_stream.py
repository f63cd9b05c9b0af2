"""NDJSON as a stream: one record per line in, one report per line out, in the order of the records.

The number of a stream's unacknowledged records is bounded; a client that does not read its reports
is not read either. A line that cannot be published is reported, and the stream goes on.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ottla.client.wire.cluster import TopicPartition
from ottla.gateway.api.new_records import acks_of, common_headers, record_of_json, with_headers
from ottla.gateway.api.reports import report
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.partition_writer import Acks, Published
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.topic_names import validate_partition
from ottla.gateway.settings import GatewaySettings
from ottla.records.builder import Headers

NDJSON: Final = "application/x-ndjson"
_CHUNK_LINES_MAX: Final = 500

Pending = asyncio.Future[Published] | Exception


class DuplexResponse(StreamingResponse):
    """Sent while the body is read; Starlette's own would also read it, to notice a disconnect."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await self.stream_response(send)


async def publish_stream(
    request: Request, topic: str, publisher: Publisher, settings: GatewaySettings
) -> Response:
    """Errors in the request as a whole are raised at once."""
    stream = _Stream(topic, publisher, acks_of(request), common_headers(request), settings)
    await publisher.topic(topic)
    return DuplexResponse(stream.run(request), media_type=NDJSON)


class _Stream:
    def __init__(
        self,
        topic: str,
        publisher: Publisher,
        acks: Acks,
        headers: Headers,
        settings: GatewaySettings,
    ) -> None:
        self._topic = topic
        self._publisher = publisher
        self._acks = acks
        self._headers = headers
        self._line_bytes_max = settings.record_bytes_max
        self._pending: asyncio.Queue[Pending | None] = asyncio.Queue(settings.stream_in_flight_max)

    async def run(self, request: Request) -> AsyncIterator[bytes]:
        reading = asyncio.ensure_future(self._read(request))
        try:
            pending = await self._pending.get()
            while pending is not None:
                lines = [await self._line(pending)]
                pending = None
                # Include reports that are ready.
                while pending is None and not self._pending.empty():
                    pending = self._pending.get_nowait()
                    if pending is None:
                        self._pending.put_nowait(None)
                        break
                    if _is_there(pending) and len(lines) < _CHUNK_LINES_MAX:
                        lines.append(await self._line(pending))
                        pending = None
                yield b"".join(lines)
                pending = pending or await self._pending.get()
            await reading
        finally:
            reading.cancel()

    async def _line(self, pending: Pending) -> bytes:
        outcome: Published | Exception
        if isinstance(pending, Exception):
            outcome = pending
        else:
            try:
                outcome = await pending
            except Exception as error:
                outcome = error
        return json.dumps(report(self._topic, outcome)).encode() + b"\n"

    async def _read(self, request: Request) -> None:
        try:
            async for line in self._lines(request):
                await self._pending.put(await self._publish(line))
        except ClientDisconnect:
            pass
        finally:
            await self._pending.put(None)

    async def _publish(self, line: bytes) -> Pending:
        try:
            if len(line) > self._line_bytes_max:
                raise Invalid(f"a line has at most {self._line_bytes_max} bytes")
            record = with_headers(record_of_json(_parse(line)), self._headers)
            known = await self._publisher.topic(self._topic)
            if record.partition is not None:
                validate_partition(TopicPartition(self._topic, record.partition), known)
            return await self._publisher.publish_patiently(self._topic, record, self._acks)
        except Exception as error:
            return error

    async def _lines(self, request: Request) -> AsyncIterator[bytes]:
        """Truncates overlong lines, just enough to show that they are too long."""
        rest = b""
        async for chunk in request.stream():
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                if line.strip():
                    yield line
            rest = rest[: self._line_bytes_max + 1]
        if rest.strip():
            yield rest


def _is_there(pending: Pending) -> bool:
    return isinstance(pending, Exception) or pending.done()


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the line is not JSON: {error}") from None
