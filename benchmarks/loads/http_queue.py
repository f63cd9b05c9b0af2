"""Receives and acknowledges the records of a queue over HTTP, on many connections.

Each connection receives a batch, acknowledges it and so on. The clock runs from the first answer
with records to the last acknowledgement.
"""

import asyncio
import json
import time
import uuid
from urllib.parse import urlsplit

import cyclopts
import uvloop

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

SILENCE_SECONDS_MAX = 120.0


class HttpConnection:
    """POST requests over one persistent connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
            status = int(answer[9:12])
            at = answer.find(b"content-length:")
            size = int(answer[at + 15 : answer.index(b"\r\n", at)]) if at >= 0 else 0
            return status, await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


class Consumers:
    def __init__(self, topic: str, count: int, batch: int) -> None:
        self._queue = f"/queues/{topic}/bench-{uuid.uuid4().hex}"
        self._count = count
        self._receive = json.dumps({"max": batch, "wait": 5}).encode()
        self.received = 0
        self.acknowledged = 0
        self.start = 0.0
        self.end = 0.0

    async def consume(self, http: HttpConnection) -> None:
        while self.received < self._count:
            status, body = await http.post(f"{self._queue}:receive", self._receive)
            if status != 200:
                raise LoadError(f"receive: {status} {body.decode()}")
            handles = [each["delivery"] for each in json.loads(body)["deliveries"]]
            if not handles:
                continue
            self.start = self.start or time.perf_counter()
            self.received += len(handles)
            settled = json.dumps({"deliveries": handles}).encode()
            status, body = await http.post(f"{self._queue}:ack", settled)
            done = body.count(b'"done"')
            if status != 200 or done != len(handles):
                raise LoadError(f"ack: {status} {body.decode()[:500]}")
            self.acknowledged += done
            self.end = time.perf_counter()


async def run(url: str, topic: str, count: int, connections: int, batch: int) -> None:
    parts = urlsplit(url)
    opened = [
        HttpConnection(*await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20))
        for _ in range(connections)
    ]
    consumers = Consumers(topic, count, batch)
    await asyncio.gather(*(consumers.consume(http) for http in opened))
    for http in opened:
        http.close()
    seconds = consumers.end - consumers.start
    report(
        messages_per_second=consumers.acknowledged / seconds,
        messages=consumers.acknowledged,
        seconds=seconds,
    )


def main(*, url: str, topic: str, count: int, connections: int = 64, batch: int = 10) -> None:
    """Takes `count` records from a filled queue."""
    uvloop.run(run(url, topic, count, connections, batch))


if __name__ == "__main__":
    cyclopts.run(main)
