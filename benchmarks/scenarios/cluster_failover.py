"""A broker is killed (kill -9), and comes back.

How long are no records acknowledged, when do its partitions have new leaders, when is it in sync
again?

Both peers have the same session timeout, shorter than their defaults. A producer of confluent-kafka
with acks=all sends a record every few milliseconds; what counts is the longest time between two
acknowledgements.
"""

import struct
import time
from collections.abc import Callable
from itertools import pairwise

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

from benchmarks import processes
from benchmarks.bench import Bench, wait_until_ready
from benchmarks.cluster import CLUSTER_NODES, Cluster
from benchmarks.loads import frames
from benchmarks.peers.peer import Flush, Peer
from benchmarks.results import Better, Requirement, Row

SETTINGS = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}
SEND_SECONDS = 0.004
CALM_SECONDS = 1.0  # Before the broker is killed, and after records are acknowledged again.
OUTAGE_SECONDS_MAX = 60.0
DESCRIBE_QUORUM, METADATA_TOPIC = 55, "__cluster_metadata"
TOPICS, PARTITIONS = 20, 100
IDLE_SECONDS = 5.0

_OUTAGE = Requirement(ratio_min=1.0, value_max=2.0)
BY_ROLE = {
    False: Row("cluster, kill -9", "no acks, a partition's leader", "s", Better.LOWER, _OUTAGE),
    True: Row("cluster, kill -9", "no acks, also the controller", "s", Better.LOWER, _OUTAGE),
}
NOTHING_ASKED = Requirement()
THREE_SECONDS = Requirement(value_max=3.0)


def cluster_failover(bench: Bench) -> None:
    for peer in bench.in_turn(bench.effort.rounds):
        with bench.fresh_cluster(peer, Flush.OS, SETTINGS) as cluster:
            for is_controller, row in BY_ROLE.items():
                bench.results.record(row, peer.name, _outage(bench, cluster, is_controller))
    bench.say("cluster, kill -9")


def _outage(bench: Bench, cluster: Cluster, is_controller: bool) -> float:
    """The longest gap between acks when a leader is killed; the node is restarted afterwards."""
    controller = quorum_leader(cluster)
    followers = [node_id for node_id in cluster.node_ids if node_id != controller]
    victim = controller if is_controller else followers[0]
    admin = AdminClient({"bootstrap.servers": cluster.address, "log_level": 0})
    with bench.topic(cluster, Flush.OS, CLUSTER_NODES, CLUSTER_NODES) as topic:
        _wait(lambda: topic in _described(admin).topics, "topic")
        _wait(lambda: _is_in_sync(_described(admin)), "all replicas in sync")
        led = _described(admin).topics[topic].partitions.values()
        partition = next(candidate.id for candidate in led if candidate.leader == victim)
        acks = _Acks(cluster.address, topic, partition)
        acks.run_for(CALM_SECONDS)
        cluster.kill(victim)
        killed_at = time.perf_counter()
        acks.run_until_acked_after(killed_at)
        acks.run_for(CALM_SECONDS)
        acks.close()
        wait_until_ready(cluster.start_node(victim), CLUSTER_NODES)
        _wait(lambda: _is_in_sync(_described(admin)), "all replicas in sync")
    return acks.longest_gap(killed_at)


class _Acks:
    """A producer, and when its records were acknowledged."""

    def __init__(self, address: str, topic: str, partition: int) -> None:
        self._producer = Producer(
            {"bootstrap.servers": address, "acks": "all", "linger.ms": 0, "log_level": 0}
        )
        self._topic = topic
        self._partition = partition
        self._acked: list[tuple[float, float]] = []  # When it was acknowledged, when sent.

    def run_for(self, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._send()

    def run_until_acked_after(self, moment: float) -> None:
        end = moment + OUTAGE_SECONDS_MAX
        while not self._acked or self._acked[-1][1] <= moment:
            if time.perf_counter() > end:
                raise TimeoutError("no record was acknowledged any more")
            self._send()

    def _send(self) -> None:
        sent_at = time.perf_counter()
        self._producer.produce(
            self._topic,
            b"x" * 100,
            partition=self._partition,
            on_delivery=lambda error, _: self._on_delivery(error, sent_at),
        )
        self._producer.poll(SEND_SECONDS)

    def _on_delivery(self, error: KafkaError | None, sent_at: float) -> None:
        if error is None:
            self._acked.append((time.perf_counter(), sent_at))

    def close(self) -> None:
        self._producer.flush(OUTAGE_SECONDS_MAX)

    def longest_gap(self, moment: float) -> float:
        """From the last ack before the kill."""
        times = sorted(acked_at for acked_at, _ in self._acked)
        gaps = [later - earlier for earlier, later in pairwise(times) if later > moment]
        return max(gaps)


def cluster_partitions(bench: Bench) -> None:
    """One broker of three is killed and restarted; each has a replica of every partition."""
    topics = TOPICS if bench.effort.heavy else 1
    scenario = f"cluster, {topics * PARTITIONS:,} partitions"
    for peer in bench.peers:
        with bench.fresh_cluster(peer, Flush.OS, SETTINGS) as cluster:
            _kill_and_return(bench, scenario, peer, cluster, topics)
    bench.say(scenario)


def _kill_and_return(
    bench: Bench, scenario: str, peer: Peer, cluster: Cluster, topics: int
) -> None:
    def record(
        label: str, value: float, unit: str = "s", requirement: Requirement = NOTHING_ASKED
    ) -> None:
        row = Row(scenario, label, unit, Better.LOWER, requirement)
        bench.results.record(row, peer.name, value)

    victim = next(node_id for node_id in cluster.node_ids if node_id != quorum_leader(cluster))
    others = [cluster.address_of(node_id) for node_id in cluster.node_ids if node_id != victim]
    admin = AdminClient({"bootstrap.servers": ",".join(others), "log_level": 0})
    start = time.perf_counter()
    made = [NewTopic(f"many-{number}", PARTITIONS, CLUSTER_NODES) for number in range(topics)]
    for created in admin.create_topics(made, operation_timeout=60).values():
        created.result(120)
    _wait(lambda: _is_in_sync(_described(admin), topics * PARTITIONS), "all replicas in sync")
    record("create", time.perf_counter() - start)
    record("processor of all nodes when idle", _idle_share(cluster), "s/s")
    start = time.perf_counter()
    cluster.kill(victim)
    _wait(lambda: _is_led_by_others(_described(admin), victim), "leaders elsewhere")
    moved_seconds = time.perf_counter() - start
    record("kill -9 to all leaders elsewhere", moved_seconds, requirement=THREE_SECONDS)
    start = time.perf_counter()
    cluster.start_node(victim)
    _wait(lambda: _is_in_sync(_described(admin)), "all replicas in sync")
    record("process start to all replicas in sync", time.perf_counter() - start)


def _idle_share(cluster: Cluster) -> float:
    time.sleep(IDLE_SECONDS)
    before = sum(map(processes.processor_seconds, cluster.pids))
    time.sleep(IDLE_SECONDS)
    return (sum(map(processes.processor_seconds, cluster.pids)) - before) / IDLE_SECONDS


def _described(admin: AdminClient) -> ClusterMetadata:
    return admin.list_topics(timeout=30)


def _is_in_sync(cluster: ClusterMetadata, count: int = 0) -> bool:
    partitions = [
        partition for topic in cluster.topics.values() for partition in topic.partitions.values()
    ]
    return len(partitions) >= count and all(
        len(partition.isrs) == len(partition.replicas) for partition in partitions
    )


def _is_led_by_others(cluster: ClusterMetadata, node_id: int) -> bool:
    return all(
        partition.leader not in (node_id, -1)
        for topic in cluster.topics.values()
        for partition in topic.partitions.values()
    )


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.perf_counter() + OUTAGE_SECONDS_MAX
    while not condition():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"no {what} in {OUTAGE_SECONDS_MAX:g} s")
        time.sleep(0.01)


def quorum_leader(cluster: Cluster) -> int:
    """The node that is the active controller, by DescribeQuorum 0."""
    name = bytes([len(METADATA_TOPIC) + 1]) + METADATA_TOPIC.encode()
    body = b"\x02" + name + b"\x02" + struct.pack(">i", 0) + b"\x00\x00\x00"
    correlation, tags, code, count = 4, 1, 2, 1
    position = correlation + tags + code + count + len(name) + count + 4 + code
    with frames.connect(cluster.servers[0].address) as connection:
        connection.sendall(frames.frame(DESCRIBE_QUORUM, 0, body))
        response = frames.receive_response(connection)
    leader: int = struct.unpack_from(">i", response, position)[0]
    return leader
