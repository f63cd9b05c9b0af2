"""Produce throughput of three nodes; every record is on all of them before it is acknowledged."""

from benchmarks.bench import Bench, Outcome, run_measured_load
from benchmarks.cluster import CLUSTER_NODES, Cluster
from benchmarks.peers.peer import Flush
from benchmarks.results import Better, Requirement, Row

PARTITIONS = (1, 6)
VALUE_BYTES = 1024
AT_LEAST_KAFKA = Requirement(ratio_min=1.0)


def cluster_produce(bench: Bench) -> None:
    for flush in (Flush.OS, Flush.ACK):
        for peer in bench.in_turn(bench.effort.rounds):
            with bench.fresh_cluster(peer, flush) as cluster:
                _measure(bench, cluster, flush, PARTITIONS[-1], peer.warm_seconds())
                for partitions in PARTITIONS:
                    outcome = _measure(bench, cluster, flush, partitions, 2 * bench.effort.seconds)
                    _record(bench, peer.name, partitions, flush, outcome)
        bench.say(f"cluster, produce: flush {flush}")


def _measure(
    bench: Bench, cluster: Cluster, flush: Flush, partitions: int, seconds: float
) -> Outcome:
    with bench.topic(cluster, flush, partitions, CLUSTER_NODES) as topic:
        return run_measured_load(
            cluster,
            "confluent_produce",
            topic=topic,
            partitions=partitions,
            value_size=VALUE_BYTES,
            acks="all",
            seconds=seconds,
        )


def _record(bench: Bench, peer: str, partitions: int, flush: Flush, outcome: Outcome) -> None:
    plural = "s" if partitions > 1 else ""
    label = f"1 KB, {partitions} partition{plural}, {CLUSTER_NODES} replicas, flush {flush}"
    speed = Row("cluster, produce", label, "MB/s", Better.HIGHER, AT_LEAST_KAFKA)
    bench.results.record(speed, peer, outcome["megabytes_per_second"])
    cost = Row("processor of all nodes, cluster, produce", label, "s/GB", Better.LOWER)
    bench.results.record(cost, peer, outcome["processor_seconds_per_gigabyte"])
