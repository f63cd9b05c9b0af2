"""What the pipeline of the demonstration has written, and whether it is right."""

import json
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from ottla.cli.demo.orders import LAST_CUSTOMER, PARTITIONS, Load, Total

TOTALS = "orders-per-minute"
DEAD_LETTERS = "demo.dead-letter"

_POLL_S = 0.2


class Written(NamedTuple):
    """What a consumer of committed records has seen."""

    orders: Counter[Total]
    cents: Counter[Total]
    records: int
    bad_count: int


def read_totals(bootstrap: str, load: Load, timeout_s: float) -> Written:
    """Until everything that the load has sent is there, or the time is over."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "ottla-demo",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    partitions = [TopicPartition(TOTALS, partition, 0) for partition in range(PARTITIONS)]
    consumer.assign([*partitions, TopicPartition(DEAD_LETTERS, 0, 0)])
    written = Written(Counter(), Counter(), 0, 0)
    deadline = time.monotonic() + timeout_s
    try:
        while not _is_complete(written, load) and time.monotonic() < deadline:
            for message in consumer.consume(500, _POLL_S):
                if message.error() is None:
                    written = _count(written, str(message.topic()), message.value() or b"")
    finally:
        consumer.close()
    return written


def _is_complete(written: Written, load: Load) -> bool:
    return (
        sum(written.orders.values()) >= sum(load.orders.values())
        and written.bad_count >= load.bad_count
    )


def _count(written: Written, topic: str, value: bytes) -> Written:
    if topic == DEAD_LETTERS:
        return written._replace(bad_count=written.bad_count + 1)
    row = json.loads(value)
    if row["customer"] == LAST_CUSTOMER:
        return written
    total = Total(row["customer"], row["minute"][:16])
    written.orders[total] += row["orders"]
    written.cents[total] += row["cents"]
    return written._replace(records=written.records + 1)


def find_difference(written: Written, load: Load) -> str:
    """What is not as it must be; empty if all is."""
    if written.records != len(load.orders):
        return f"{written.records} totals were written, and {len(load.orders)} should have been"
    for total in load.orders:
        found = (written.orders[total], written.cents[total])
        wanted = (load.orders[total], load.cents[total])
        if found != wanted:
            return (
                f"{total.customer} at {total.minute}: {found[0]} orders of {found[1]} cents, and"
                f" it should be {wanted[0]} of {wanted[1]}"
            )
    if written.bad_count != load.bad_count:
        return f"{written.bad_count} orders were put aside, and {load.bad_count} should have been"
    return ""
