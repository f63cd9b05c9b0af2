"""Many partitions, and a large one."""

import shutil
import time
from typing import NamedTuple

from benchmarks import processes
from benchmarks.bench import Bench, run_load, wait_until_ready
from benchmarks.peers.peer import Flush, Peer, spawn_server
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.startup import wait_for_first_record

PARTITIONS = 10
LARGE_BYTES = 20_000_000_000
LARGE_BATCH_RECORDS = 1_000
LARGE_STOP_SECONDS_MAX = 300.0
LARGE_TOPIC = "large"
FIFTEEN_SECONDS = Requirement(value_max=15.0)
ONE_SECOND = Requirement(value_max=1.0)


class Times(NamedTuple):
    create: float
    write: float
    restart: float


def many_topics(bench: Bench) -> None:
    """Creates, writes, restarts; with flush on ack, its default, only Ottla."""
    topics = 1_000 if bench.effort.heavy else 20
    requirement = FIFTEEN_SECONDS if bench.effort.heavy else Requirement()
    for flush in (Flush.ACK, Flush.OS):
        scenario = f"{topics:,} topics of {PARTITIONS} partitions"
        for peer in bench.peers:
            if flush is Flush.ACK and peer.name != SUBJECT:
                continue
            times = _create_write_restart(bench, peer, flush, topics)
            for step, seconds in times._asdict().items():
                row = Row(scenario, f"{step}, flush {flush}", "s", Better.LOWER)
                bench.results.record(row, peer.name, seconds)
            total = Row(scenario, f"in all, flush {flush}", "s", Better.LOWER, requirement)
            bench.results.record(total, peer.name, sum(times))
        bench.say(f"{scenario}, flush {flush}")


def _create_write_restart(bench: Bench, peer: Peer, flush: Flush, topics: int) -> Times:
    """Restart: from the signal to stop until every partition shows its record again."""
    directory = bench.new_directory(peer)
    amount = {"topics": topics, "partitions": PARTITIONS}
    server = spawn_server(peer, directory, flush)
    try:
        wait_until_ready(server)
        written = run_load("many_topics", "write", address=server.address, **amount)
        start = time.perf_counter()
        server.stop()
        server = spawn_server(peer, directory, flush)
        wait_until_ready(server)
        run_load("many_topics", "check", address=server.address, **amount)
        restarted = time.perf_counter() - start
    finally:
        server.stop()
        shutil.rmtree(directory)
    return Times(written["create_seconds"], written["write_seconds"], restarted)


def large_partition(bench: Bench) -> None:
    """Fills one partition, stops cleanly, and times the next start."""
    size = LARGE_BYTES if bench.effort.heavy else LARGE_BYTES // 20
    label = f"{size / 1e9:g} GB partition, process start to first acknowledged record"
    requirement = ONE_SECOND if bench.effort.heavy else Requirement()
    row = Row("start", label, "s", Better.LOWER, requirement)
    if shutil.disk_usage(bench.directory).free < size * 1.5:
        bench.say(f"start: left out for want of disk space: {label}")
        return
    for peer in bench.peers:
        if peer.name == SUBJECT:
            bench.results.record(row, peer.name, _open_large(bench, peer, size))
            bench.say(f"start: {label}")


def _open_large(bench: Bench, peer: Peer, size: int) -> float:
    directory = bench.new_directory(peer)
    server = spawn_server(peer, directory, Flush.OS)
    try:
        wait_for_first_record(server, LARGE_TOPIC)
        run_load(
            "raw_produce",
            address=server.address,
            topic=LARGE_TOPIC,
            records=LARGE_BATCH_RECORDS,
            value_size=1024,
            in_flight=5,
            warm_seconds=0,
            seconds=280,
            count=size // (LARGE_BATCH_RECORDS * 1024),
        )
        processes.stop(server.process, LARGE_STOP_SECONDS_MAX)
        start = time.perf_counter()
        server = spawn_server(peer, directory, Flush.OS)
        wait_for_first_record(server, LARGE_TOPIC)
        return time.perf_counter() - start
    finally:
        server.stop()
        shutil.rmtree(directory)
