"""From process start to the first acknowledged record.

A new, empty data directory each time; Kafka's is formatted before the clock starts. The probe
connects as soon as the port listens, creates a topic and produces one record, all over one bare
socket, and retries while the broker is not ready.
"""

import socket
import struct
import time

from benchmarks.bench import Bench
from benchmarks.loads import frames
from benchmarks.peers.peer import Flush, Peer, Server, spawn_server
from benchmarks.results import Better, Requirement, Row

TOPIC = "startup"
CREATE_TOPICS, CREATE_TOPICS_VERSION = 19, 7
TOPIC_ALREADY_EXISTS = 36
READY_SECONDS_MAX = 60.0
FIRST_RECORD = Row(
    "start",
    "process start to first acknowledged record",
    "s",
    Better.LOWER,
    Requirement(ratio_min=8.0, value_max=0.5),
)


def startup(bench: Bench) -> None:
    for peer in bench.peers:  # The first start reads the program from disk; it does not count.
        first_record_seconds(bench, peer)
    for peer in bench.in_turn(bench.effort.rounds):
        bench.results.record(FIRST_RECORD, peer.name, first_record_seconds(bench, peer))
    bench.say(f"start: {FIRST_RECORD.label}")


def first_record_seconds(bench: Bench, peer: Peer) -> float:
    directory = bench.new_directory(peer)
    directory.mkdir()
    peer.format(directory, 0)
    start = time.perf_counter()
    server = spawn_server(peer, directory, Flush.OS)
    try:
        wait_for_first_record(server, TOPIC)
        return time.perf_counter() - start
    finally:
        server.stop()


def wait_for_first_record(server: Server, topic: str) -> None:
    """Returns when the broker has acknowledged a record to partition 0 of the topic."""
    server.wait_until_listening()
    deadline = time.perf_counter() + READY_SECONDS_MAX
    while time.perf_counter() < deadline:
        try:
            if _first_record(server, topic, deadline):
                return
        except (OSError, frames.LoadError):
            time.sleep(0.002)
    raise TimeoutError(f"{server.peer.name} acknowledged nothing")


def _first_record(server: Server, topic: str, deadline: float) -> bool:
    create = create_topic_frame(topic)
    create_position = create_error_position(topic)
    produce = frames.produce_frame(topic, 0, frames.build_batch(1, 100), acks=-1)
    error_position = frames.produce_response_error_position(topic) - 4
    with frames.connect(server.address) as connection:
        while time.perf_counter() < deadline:
            if ask(connection, create, create_position) in (0, TOPIC_ALREADY_EXISTS):
                break
            time.sleep(0.002)
        while time.perf_counter() < deadline:
            if ask(connection, produce, error_position) == 0:
                return True
            time.sleep(0.002)
    return False


def ask(connection: socket.socket, request: bytes, error_position: int) -> int:
    connection.sendall(request)
    code: int = struct.unpack_from(">h", frames.receive_response(connection), error_position)[0]
    return code


def create_topic_frame(topic: str, replicas: int = 1) -> bytes:
    named = bytes([len(topic) + 1]) + topic.encode() + struct.pack(">ih", 1, replicas)
    no_assignments_nor_configs = b"\x01\x01\x00"
    body = b"\x02" + named + no_assignments_nor_configs + struct.pack(">ib", 30_000, 0) + b"\x00"
    return frames.frame(CREATE_TOPICS, CREATE_TOPICS_VERSION, body)


def create_error_position(topic: str) -> int:
    correlation, tags, throttle, count, topic_id = 4, 1, 4, 1, 16
    return correlation + tags + throttle + count + 1 + len(topic) + topic_id
