"""Produce latency at a fixed rate, open loop.

Message n is due at start + n / rate, whatever happened to earlier ones, and its latency counts from
when it was due, not from when it could be sent: a stall of the broker shows in every message that
was due during the stall.
"""

import select
import struct
import threading
import time
from array import array

import cyclopts
from confluent_kafka import KafkaError, Message, Producer

from benchmarks.loads import frames
from benchmarks.loads.outcome import report
from benchmarks.results import percentile

ARRIVAL_SECONDS_MAX = 120.0


def main(
    *,
    address: str,
    topic: str,
    client: str = "confluent",
    rate: int = 5_000,
    value_size: int = 100,
    warm_seconds: float = 2.0,
    seconds: float = 8.0,
    acks: str = "all",
) -> None:
    """`client` is `confluent` (no linger) or `raw` (every message is one request)."""
    total = int(rate * (warm_seconds + seconds))
    measure = _measure_raw if client == "raw" else _measure_confluent
    latencies = measure(address, topic, rate, total, value_size, acks)
    measured = sorted(latencies[int(rate * warm_seconds) :])
    report(
        p50_ms=percentile(measured, 0.50) * 1e3,
        p99_ms=percentile(measured, 0.99) * 1e3,
        p999_ms=percentile(measured, 0.999) * 1e3,
        max_ms=measured[-1] * 1e3,
        messages=len(measured),
        bytes=len(measured) * value_size,
    )


def _measure_confluent(
    address: str, topic: str, rate: int, total: int, value_size: int, acks: str
) -> "array[float]":
    producer = Producer({"bootstrap.servers": address, "acks": acks, "linger.ms": 0})
    producer.list_topics(topic, timeout=120)
    due, latencies, clock = array("d", bytes(8 * total)), array("d"), time.perf_counter
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        # One partition: deliveries arrive in send order.
        latencies.append(clock() - due[len(latencies)])
        if error is not None:
            failures.append(error)

    def poll() -> None:
        deadline = clock() + total / rate + ARRIVAL_SECONDS_MAX
        while len(latencies) < total and clock() < deadline:
            producer.poll(0.1)

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    value, start = bytes(value_size), clock() + 0.01
    for index in range(total):
        due[index] = start + index / rate
        if (wait := due[index] - clock()) > 0:
            time.sleep(wait)
        producer.produce(topic, value, partition=0, on_delivery=on_delivery)
    poller.join()
    if failures or len(latencies) != total:
        raise frames.LoadError(f"{len(latencies)} of {total} answered, {len(failures)} failed")
    return latencies


def _measure_raw(
    address: str, topic: str, rate: int, total: int, value_size: int, acks: str
) -> "array[float]":
    required = {"all": -1, "1": 1}[acks]
    request = frames.produce_frame(topic, 0, frames.build_batch(1, value_size), required)
    connection = frames.connect(address)
    latencies, held, sent, clock = array("d"), bytearray(), 0, time.perf_counter
    error_position = frames.produce_response_error_position(topic)
    start = clock() + 0.01
    while len(latencies) < total:
        ready_count = min(total, int((clock() - start) * rate) + 1) if clock() >= start else 0
        if ready_count > sent:
            connection.sendall(request * (ready_count - sent))
            sent = ready_count
        wait = start + sent / rate - clock() if sent < total else ARRIVAL_SECONDS_MAX
        if select.select([connection], (), (), max(wait, 0))[0]:
            held += connection.recv(1 << 16)
            now = clock()
            for _ in range(_take_answers(held, error_position)):
                latencies.append(now - (start + len(latencies) / rate))
        elif sent == total:
            raise frames.LoadError(f"{len(latencies)} of {total} answered")
    return latencies


def _take_answers(held: bytearray, error_position: int) -> int:
    """Removes whole responses from the buffer; returns how many."""
    count = position = 0
    while len(held) - position >= 4:
        size = 4 + struct.unpack_from(">i", held, position)[0]
        if len(held) - position < size:
            break
        if held[position + error_position] or held[position + error_position + 1]:
            raise frames.LoadError("produce was refused")
        position += size
        count += 1
    del held[:position]
    return count


if __name__ == "__main__":
    cyclopts.run(main)
