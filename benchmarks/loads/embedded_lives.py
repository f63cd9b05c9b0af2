"""Memory left behind in a process by brokers that were started and stopped one after another."""

import gc
import os
import threading

import cyclopts

from benchmarks.loads.outcome import report
from benchmarks.processes import resident_bytes
from ottla.testing import EmbeddedBroker

WARM_UP = 100  # By then the allocator has its arenas.


def main(*, count: int = 100) -> None:
    _live(WARM_UP)
    before = _held()
    _live(count)
    threads, descriptors, memory = (now - then for now, then in zip(_held(), before, strict=True))
    report(threads=threads, descriptors=descriptors, kilobytes=memory / 1000)


def _live(count: int) -> None:
    for _ in range(count):
        with EmbeddedBroker() as broker:
            broker.records(broker.topic("orders"))


def _held() -> tuple[int, int, int]:
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    return threading.active_count(), descriptors, resident_bytes(os.getpid())


if __name__ == "__main__":
    cyclopts.run(main)
