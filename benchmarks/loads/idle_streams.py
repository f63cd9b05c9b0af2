"""Opens event streams of a topic and holds them until stdin ends."""

import asyncio
import sys
from urllib.parse import urlsplit

import cyclopts
import uvloop

from benchmarks import processes
from benchmarks.loads.outcome import report

AT_A_TIME = 50


async def hold(url: str, topic: str, count: int) -> None:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    request = f"GET /topics/{topic}/stream HTTP/1.1\r\nHost: gateway\r\n\r\n".encode()
    slots = asyncio.Semaphore(AT_A_TIME)
    writers = []

    async def open_stream() -> None:
        async with slots:
            reader, writer = await asyncio.open_connection(host, port, limit=4096)
            writer.write(request)
            await reader.readuntil(b"\nid: ")
            writers.append(writer)

    await asyncio.gather(*(open_stream() for _ in range(count)))
    report(streams=len(writers))
    await asyncio.to_thread(sys.stdin.read)
    for writer in writers:
        writer.transport.abort()


def main(*, url: str, topic: str, count: int) -> None:
    processes.raise_open_files_limit()
    uvloop.run(hold(url, topic, count))


if __name__ == "__main__":
    cyclopts.run(main)
