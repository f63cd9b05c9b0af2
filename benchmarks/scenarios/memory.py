"""Resident memory: idle, under load, and with many idle connections."""

import json
import subprocess
import time

from benchmarks import processes
from benchmarks.bench import SOURCE, Bench, load_command, run_load
from benchmarks.peers.peer import Flush, Server
from benchmarks.results import Better, Requirement, Row

IDLE_CONNECTIONS = 5_000
IDLE = Row("memory", "idle", "MB", Better.LOWER, Requirement(ratio_min=5.0, value_max=80.0))
MANY_IDLE = Row(
    "memory",
    f"{IDLE_CONNECTIONS:,} idle connections",
    "MB",
    Better.LOWER,
    Requirement(value_max=150.0),
)
LOADED = Row("memory", "peak while producing and consuming", "MB", Better.LOWER)


def memory(bench: Bench) -> None:
    for peer in bench.peers:
        with bench.fresh_server(peer, Flush.OS) as server:
            time.sleep(bench.effort.idle_seconds)
            _record(bench, server, IDLE)
            _load(bench, server)
            peak = processes.peak_resident_bytes(server.pid) / 1e6
            bench.results.record(LOADED, peer.name, peak)
    bench.say("memory: idle and loaded")


def idle_connections(bench: Bench) -> None:
    for peer in bench.peers:
        with bench.fresh_server(peer, Flush.OS) as server:
            command = load_command(
                "idle_connections", address=server.address, count=IDLE_CONNECTIONS
            )
            holder = subprocess.Popen(
                command, cwd=SOURCE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            try:
                assert holder.stdout is not None
                held = json.loads(holder.stdout.readline() or "{}").get("connections")
                if held != IDLE_CONNECTIONS:
                    raise RuntimeError(f"{peer.name} took {held} connections")
                time.sleep(1)
                _record(bench, server, MANY_IDLE)
            finally:
                holder.communicate(timeout=60)
    bench.say(f"memory: {IDLE_CONNECTIONS:,} idle connections")


def _record(bench: Bench, server: Server, row: Row) -> None:
    bench.results.record(row, server.peer.name, processes.resident_bytes(server.pid) / 1e6)


def _load(bench: Bench, server: Server) -> None:
    with bench.topic(server, Flush.OS, 8) as topic:
        common = {"address": server.address, "topic": topic, "partitions": 8}
        seconds = bench.effort.seconds * 2
        filled = run_load("confluent_produce", value_size=1024, seconds=seconds, **common)
        run_load("confluent_consume", count=int(filled["messages"]), **common)
