"""From the start of three processes to the first record that is on all three nodes.

New, empty data directories each time; Kafka's are formatted before the clock starts. The probe
creates a topic and produces one record with acks=all over bare sockets, retrying each node in turn
until one accepts it. A topic can have three replicas only once there are three brokers.
"""

import contextlib
import time

from benchmarks.bench import Bench
from benchmarks.cluster import CLUSTER_NODES, Cluster
from benchmarks.loads import frames
from benchmarks.peers.peer import Flush, Peer
from benchmarks.results import Better, Requirement, Row
from benchmarks.scenarios.startup import ask, create_error_position, create_topic_frame

TOPIC = "startup"
TOPIC_ALREADY_EXISTS = 36
READY_SECONDS_MAX = 60.0
PAUSE_SECONDS = 0.005
FIRST_RECORD = Row(
    "cluster, start",
    "3 processes to the first record acknowledged by all",
    "s",
    Better.LOWER,
    Requirement(value_max=3.0),
)


def cluster_start(bench: Bench) -> None:
    for peer in bench.peers:  # The first start reads the program from disk; it does not count.
        _first_record_seconds(bench, peer)
    for peer in bench.in_turn(bench.effort.rounds):
        bench.results.record(FIRST_RECORD, peer.name, _first_record_seconds(bench, peer))
    bench.say(f"cluster, start: {FIRST_RECORD.label}")


def _first_record_seconds(bench: Bench, peer: Peer) -> float:
    cluster = Cluster(peer, bench.new_directory(peer), Flush.OS, {})
    start = time.perf_counter()
    try:
        cluster.start()
        wait_for_first_record(cluster)
        return time.perf_counter() - start
    finally:
        cluster.stop()


def wait_for_first_record(cluster: Cluster) -> None:
    create = create_topic_frame(TOPIC, CLUSTER_NODES)
    batch = frames.build_batch(1, 100)
    produce = frames.produce_frame(TOPIC, 0, batch, acks=-1)
    produce_error_position = frames.produce_response_error_position(TOPIC) - 4
    _wait(cluster, create, create_error_position(TOPIC), (0, TOPIC_ALREADY_EXISTS))
    _wait(cluster, produce, produce_error_position, (0,))


def _ask(address: str, request: bytes, error_position: int) -> int:
    with frames.connect(address) as connection:
        return ask(connection, request, error_position)


def _wait(cluster: Cluster, request: bytes, error_position: int, wanted: tuple[int, ...]) -> None:
    """Retries until one node gives this answer."""
    deadline = time.perf_counter() + READY_SECONDS_MAX
    while time.perf_counter() < deadline:
        for node_id in cluster.node_ids:
            with contextlib.suppress(OSError, frames.LoadError):
                if _ask(cluster.address_of(node_id), request, error_position) in wanted:
                    return
        time.sleep(PAUSE_SECONDS)
    raise TimeoutError(f"{cluster.peer.name} acknowledged nothing")
