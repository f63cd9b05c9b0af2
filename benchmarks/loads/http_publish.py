"""Publishes over HTTP on many connections; each sends once its last was acknowledged."""

import asyncio
import json
import time
from urllib.parse import urlsplit

import cyclopts
import uvloop

from benchmarks.loads.frames import LoadError
from benchmarks.loads.http_queue import HttpConnection
from benchmarks.loads.outcome import report


async def run(
    url: str, topic: str, connections: int, batch: int, value_size: int, seconds: float
) -> None:
    parts = urlsplit(url)
    opened = [
        HttpConnection(*await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20))
        for _ in range(connections)
    ]
    path = f"/topics/{topic}/records"
    value = "x" * value_size
    body = json.dumps([{"value": value}] * batch if batch > 1 else value).encode()
    requests = 0

    async def publish(http: HttpConnection, until: float) -> None:
        nonlocal requests
        while time.perf_counter() < until:
            status, answer = await http.post(path, body)
            if status != 200:
                raise LoadError(f"publish: {status} {answer.decode()[:500]}")
            requests += 1

    start = time.perf_counter()
    await asyncio.gather(*(publish(http, start + seconds) for http in opened))
    taken = time.perf_counter() - start
    for http in opened:
        http.close()
    records = requests * batch
    report(records_per_second=records / taken, records=records, seconds=taken)


def main(
    *,
    url: str,
    topic: str,
    connections: int = 64,
    batch: int = 1,
    value_size: int = 1_000,
    seconds: float = 10.0,
) -> None:
    """Publishes for `seconds`."""
    uvloop.run(run(url, topic, connections, batch, value_size, seconds))


if __name__ == "__main__":
    cyclopts.run(main)
