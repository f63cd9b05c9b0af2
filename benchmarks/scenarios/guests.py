"""Brokers that do not speak Kafka's protocol, in the rows that compare."""

import time

from benchmarks import processes
from benchmarks.bench import Bench, run_load
from benchmarks.peers import nats
from benchmarks.peers.nats import Nats
from benchmarks.peers.peer import Flush, Peer, Server, spawn_server
from benchmarks.scenarios.memory import IDLE
from benchmarks.scenarios.requests import SMALL_REQUESTS
from benchmarks.scenarios.startup import FIRST_RECORD


def guests(bench: Bench) -> None:
    peer = bench.guest(Nats.name)
    if peer is not None:
        for _ in range(bench.effort.rounds):
            bench.results.record(FIRST_RECORD, peer.name, _first_message_seconds(bench, peer))
        with bench.fresh_server(peer, Flush.OS) as server:
            time.sleep(bench.effort.idle_seconds)
            idle = processes.resident_bytes(server.pid) / 1e6
            bench.results.record(IDLE, peer.name, idle)
            with nats.connect(server.address) as connection:
                nats.create_stream(connection)
            run_load("nats_publish", address=server.address, seconds=peer.warm_seconds())
            for _ in range(bench.effort.rounds):
                outcome = run_load(
                    "nats_publish", address=server.address, seconds=bench.effort.seconds
                )
                rate = outcome["requests_per_second"]
                bench.results.record(SMALL_REQUESTS, peer.name, rate)
        bench.say(f"{peer.name}: start, idle memory, small messages")


def _first_message_seconds(bench: Bench, peer: Peer) -> float:
    start = time.perf_counter()
    server = spawn_server(peer, bench.new_directory(peer), Flush.OS)
    try:
        _wait_for_first_message(server)
        return time.perf_counter() - start
    finally:
        server.stop()


def _wait_for_first_message(server: Server) -> None:
    assert isinstance(server.peer, Nats)
    server.wait_until_listening()
    with nats.connect(server.address) as connection:
        nats.create_stream(connection)
        connection.sendall(nats.publication(nats.SUBJECT, bytes(100)))
        if b'"seq"' not in connection.recv(1 << 16):
            raise RuntimeError("NATS refused the first message")
