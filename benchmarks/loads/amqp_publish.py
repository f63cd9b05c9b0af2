"""Publishes over AMQP on many connections; each sends once its last message was confirmed."""

import asyncio
import time

import cyclopts
import uvloop

from benchmarks.loads.amqp import CONFIRMED, Channel, publication
from benchmarks.loads.outcome import report


async def run(address: str, queue: str, connections: int, value_size: int, seconds: float) -> None:
    channels = [await Channel.open(address, queue) for _ in range(connections)]
    message = publication(queue, bytes(value_size))
    count = 0

    async def publish(channel: Channel, until: float) -> None:
        nonlocal count
        while time.perf_counter() < until:
            channel.write(message)
            await channel.expect(CONFIRMED)
            count += 1

    for channel in channels:
        await channel.confirm_publications()
    start = time.perf_counter()
    await asyncio.gather(*(publish(each, start + seconds) for each in channels))
    taken = time.perf_counter() - start
    for channel in channels:
        channel.close()
    report(records_per_second=count / taken, records=count, seconds=taken)


def main(
    *,
    address: str,
    queue: str,
    connections: int = 64,
    value_size: int = 1_000,
    seconds: float = 10.0,
) -> None:
    uvloop.run(run(address, queue, connections, value_size, seconds))


if __name__ == "__main__":
    cyclopts.run(main)
