"""Server-sent events through one gateway: latency, and the cost of idle streams."""

import json
import subprocess
import time
from typing import Final

from benchmarks import processes
from benchmarks.bench import SOURCE, Bench, load_command, run_load
from benchmarks.peers.peer import Flush
from benchmarks.results import SUBJECT, Better, Requirement, Row
from benchmarks.scenarios.gateway_queues import running_gateway

RATE: Final = 500
IDLE_STREAMS: Final = 10_000
HEARTBEAT_S: Final = 15.0  # After which every stream was written to.

P99: Final = Row(
    "push",
    f"p99 from produce to event, {RATE} msg/s",
    "ms",
    Better.LOWER,
    Requirement(value_max=20.0),
)
P50: Final = Row("push", f"p50 from produce to event, {RATE} msg/s", "ms", Better.LOWER)
IDLE: Final = Row(
    "push",
    f"{IDLE_STREAMS:,} idle streams",
    "MB",
    Better.LOWER,
    Requirement(value_max=300.0),
)


def gateway_push(bench: Bench) -> None:
    server = bench.server(bench.subject(), Flush.ACK)
    with running_gateway(bench, server) as (url, _):
        for _ in range(bench.effort.rounds):
            with bench.topic(server, Flush.ACK) as topic:
                outcome = run_load(
                    "http_stream",
                    address=server.address,
                    url=url,
                    topic=topic,
                    rate=RATE,
                    seconds=bench.effort.seconds * 2,
                )
            bench.results.record(P50, SUBJECT, outcome["p50_ms"])
            bench.results.record(P99, SUBJECT, outcome["p99_ms"])
    bench.say("gateway push: latency")
    with (
        running_gateway(bench, server) as (url, pid),
        bench.topic(server, Flush.ACK, partitions=4) as topic,
    ):
        bench.results.record(IDLE, SUBJECT, _resident_with_streams(url, pid, topic) / 1e6)
    bench.say("gateway push: idle streams")


def _resident_with_streams(url: str, pid: int, topic: str) -> int:
    command = load_command("idle_streams", url=url, topic=topic, count=IDLE_STREAMS)
    holder = subprocess.Popen(
        command, cwd=SOURCE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        held = json.loads(holder.stdout.readline() or "{}").get("streams")
        if held != IDLE_STREAMS:
            raise RuntimeError(f"the gateway took {held} streams")
        time.sleep(HEARTBEAT_S)
        return processes.resident_bytes(pid)
    finally:
        holder.communicate(timeout=60)
