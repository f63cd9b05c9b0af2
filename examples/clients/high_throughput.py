"""Write as many records per second as the machine allows.

Records wait a little so that they travel in large, compressed batches, and `send` waits by itself
when the buffer is full. Nothing waits for a single record; failures are collected as they are
reported.
"""

import sys
import time

from ottla.client import CompressionType, Producer
from ottla.client.delivery import Delivery

TOPIC = "measurements"
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000

failures: list[BaseException] = []


def on_done(delivery: Delivery) -> None:
    if (failure := delivery.exception()) is not None:
        failures.append(failure)


producer = Producer(
    linger_ms=50,
    batch_size=1_000_000,
    compression_type=CompressionType.LZ4,
    buffer_memory=64 * 1024 * 1024,
)
begin = time.perf_counter()
with producer:
    for number in range(COUNT):
        delivery = producer.send(TOPIC, b"%d degrees" % (number % 40))
        if number % 1000 == 0:
            delivery.add_done_callback(on_done)  # The rest of its batch shares its fate.
seconds = time.perf_counter() - begin
print(f"wrote {COUNT} records, {COUNT / seconds:,.0f} a second, {len(failures)} failures seen")
