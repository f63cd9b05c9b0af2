"""Produces at a steady rate and reads it back as server-sent events, in one process with one clock.

A latency is the time from the call that produces a record to the arrival of its event.
"""

import asyncio
import threading
import time
from urllib.parse import urlsplit

import cyclopts
import uvloop
from confluent_kafka import Producer

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

SILENCE_SECONDS_MAX = 120.0
VALUE_SIZE = 100
WARM_SECONDS = 1.0


def produce(address: str, topic: str, rate: int, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    start = time.perf_counter()
    for number in range(int(rate * seconds)):
        while (wait := start + number / rate - time.perf_counter()) > 0:
            time.sleep(wait)
        value = str(time.perf_counter_ns()).rjust(VALUE_SIZE, " ")
        producer.produce(topic, value)
        producer.poll(0)
    if producer.flush(SILENCE_SECONDS_MAX):
        raise LoadError("records were not acknowledged")


async def measure(address: str, url: str, topic: str, rate: int, seconds: float) -> list[float]:
    host, port = urlsplit(url).hostname, urlsplit(url).port
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    writer.write(f"GET /topics/{topic}/stream HTTP/1.1\r\nHost: gateway\r\n\r\n".encode())
    await reader.readuntil(b"\nid: ")
    thread = threading.Thread(target=produce, args=(address, topic, rate, seconds))
    thread.start()
    latencies: list[float] = []
    while len(latencies) < int(rate * seconds):
        async with asyncio.timeout(SILENCE_SECONDS_MAX):
            line = await reader.readuntil(b"\n")
        if line.startswith(b"data: "):
            sent_ns = int(line.partition(b'"value":"')[2].partition(b'"')[0])
            latencies.append((time.perf_counter_ns() - sent_ns) / 1e6)
    thread.join()
    writer.close()
    return latencies[int(rate * WARM_SECONDS) :]


def main(*, address: str, url: str, topic: str, rate: int, seconds: float) -> None:
    latencies = sorted(uvloop.run(measure(address, url, topic, rate, WARM_SECONDS + seconds)))
    count = len(latencies)
    report(
        p50_ms=latencies[count // 2],
        p99_ms=latencies[count * 99 // 100],
        p999_ms=latencies[count * 999 // 1000],
    )


if __name__ == "__main__":
    cyclopts.run(main)
