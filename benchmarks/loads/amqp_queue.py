"""Fills a queue over AMQP, then consumes and acknowledges it in batches, on many connections.

The clock runs from the first delivery to the last acknowledgement, which the server does not
confirm.
"""

import asyncio
import time

import cyclopts
import uvloop

from benchmarks.loads.amqp import CONFIRMED, Channel, publication
from benchmarks.loads.outcome import report


async def fill(address: str, queue: str, count: int, value_size: int) -> None:
    channel = await Channel.open(address, queue)
    await channel.confirm_publications()
    message = publication(queue, bytes(value_size))
    for _ in range(count):
        channel.write(message)
    confirmed = 0
    while confirmed < count:  # A confirm carries the tag of the last message it covers.
        payload = (await channel.expect(CONFIRMED)).payload
        tag = int.from_bytes(payload[4:12], "big")
        confirmed = max(confirmed, tag)
    channel.close()


async def run(
    address: str, queue: str, count: int, connections: int, batch: int, value_size: int
) -> None:
    await fill(address, queue, count, value_size)
    channels = [await Channel.open(address, queue) for _ in range(connections)]
    start = end = 0.0
    received = 0
    done = asyncio.Event()

    async def consume(channel: Channel) -> None:
        nonlocal start, end, received
        await channel.consume(queue, batch)
        waiting = 0
        while True:
            tag = await channel.delivery()
            start = start or time.perf_counter()
            received += 1
            waiting += 1
            if waiting == batch or received >= count:
                channel.acknowledge(tag)
                waiting = 0
                end = time.perf_counter()
            if received >= count:
                done.set()

    tasks = [asyncio.ensure_future(consume(channel)) for channel in channels]
    await asyncio.wait([*tasks, asyncio.ensure_future(done.wait())], return_when="FIRST_COMPLETED")
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    for channel in channels:
        channel.close()
    report(messages_per_second=received / (end - start), messages=received, seconds=end - start)


def main(
    *,
    address: str,
    queue: str,
    count: int,
    connections: int = 64,
    batch: int = 10,
    value_size: int = 1_000,
) -> None:
    uvloop.run(run(address, queue, count, connections, batch, value_size))


if __name__ == "__main__":
    cyclopts.run(main)
