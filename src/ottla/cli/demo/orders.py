"""Orders of a shop for the demonstration, and what the pipeline must make of them.

Each second of the demonstration is a minute of the shop. One order in a hundred has a negative
amount, which the pipeline puts aside.
"""

import datetime as dt
import json
import threading
import time
from collections import Counter
from typing import NamedTuple

from confluent_kafka import Producer

ORDERS = "orders"
PARTITIONS = 2
CUSTOMERS = 20
BAD_EVERY = 100
LAST_CUSTOMER = "the end"  # Of an order that is so late that all minutes before are over.

_OPENING = dt.datetime(2026, 1, 1, 9, tzinfo=dt.UTC)
_TICK_S = 0.05


class Total(NamedTuple):
    customer: str
    minute: str


class Load:
    """Writes orders at a rate until its time is over, and remembers the totals."""

    def __init__(self, bootstrap: str, *, rate: int, seconds: float) -> None:
        self.orders: Counter[Total] = Counter()
        self.cents: Counter[Total] = Counter()
        self.bad_count = 0
        self.count = 0
        self.closing_count = 0  # Of those that only close the last minute.
        self._rate = rate
        self._seconds = seconds
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})

    def run(self, stopping: threading.Event) -> None:
        """The last orders close all minutes, so that their totals are written."""
        began = time.monotonic()
        while not stopping.is_set() and (passed := time.monotonic() - began) < self._seconds:
            while self.count < passed * self._rate:
                if not self.count % self._rate:
                    # A minute begins. Before it is seen in one partition, the last one is complete
                    # in all, also after a pause: what came later than that would be too late.
                    self._producer.flush()
                self._send(self.count / self._rate)
            self._producer.poll(0)
            stopping.wait(_TICK_S)
        self._producer.flush()
        for partition in range(PARTITIONS):
            late = {"id": -1, "customer": LAST_CUSTOMER, "cents": 1, "at": _time(24 * 60 * 60)}
            self._producer.produce(ORDERS, json.dumps(late).encode(), partition=partition)
            self.closing_count += 1
        self._producer.flush()

    def _send(self, second: float) -> None:
        number, self.count = self.count, self.count + 1
        customer = f"customer-{number * 7919 % CUSTOMERS}"
        is_bad = number % BAD_EVERY == BAD_EVERY - 1
        cents = -1 if is_bad else number % 10_000 + 1
        at = _time(second * 60)
        order = {"id": number, "customer": customer, "cents": cents, "at": at}
        while True:
            try:
                self._producer.produce(ORDERS, json.dumps(order).encode(), customer.encode())
            except BufferError:
                self._producer.poll(0.1)
            else:
                break
        if is_bad:
            self.bad_count += 1
            return
        total = Total(customer, at[:16])
        self.orders[total] += 1
        self.cents[total] += cents


def _time(seconds: float) -> str:
    return (_OPENING + dt.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
