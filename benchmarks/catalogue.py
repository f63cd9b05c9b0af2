"""The scenarios by name, in the order in which they run, and the suites they belong to.

A suite is run and written as a whole, so that its figures are from one day and one machine.
"""

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.scenarios.client import facade, fixture
from benchmarks.scenarios.cluster_failover import cluster_failover, cluster_partitions
from benchmarks.scenarios.cluster_produce import cluster_produce
from benchmarks.scenarios.cluster_start import cluster_start
from benchmarks.scenarios.consume import consume, consume_raw
from benchmarks.scenarios.coordinators import commits, many_members, rebalance, transactions
from benchmarks.scenarios.gateway_idle import gateway_idle
from benchmarks.scenarios.gateway_publish import gateway_publish
from benchmarks.scenarios.gateway_push import gateway_push
from benchmarks.scenarios.gateway_queues import gateway_queues
from benchmarks.scenarios.gateway_sqs import gateway_sqs
from benchmarks.scenarios.guests import guests
from benchmarks.scenarios.latency import latency
from benchmarks.scenarios.loading import loading
from benchmarks.scenarios.memory import idle_connections, memory
from benchmarks.scenarios.produce import produce, produce_raw
from benchmarks.scenarios.requests import requests
from benchmarks.scenarios.scale import large_partition, many_topics
from benchmarks.scenarios.share_groups import share_groups
from benchmarks.scenarios.startup import startup
from benchmarks.scenarios.tls import tls

Scenario = Callable[[Bench], None]

SUITES: dict[str, dict[str, Scenario]] = {
    "broker": {
        "startup": startup,
        "memory": memory,
        "idle-connections": idle_connections,
        "requests": requests,
        "guests": guests,
        "latency": latency,
        "produce": produce,
        "produce-raw": produce_raw,
        "consume": consume,
        "consume-raw": consume_raw,
        "many-topics": many_topics,
        "large-partition": large_partition,
    },
    "coordinators": {
        "commits": commits,
        "rebalance": rebalance,
        "many-members": many_members,
        "transactions": transactions,
        "share-groups": share_groups,
        "loading": loading,
    },
    "cluster": {
        "cluster-start": cluster_start,
        "cluster-produce": cluster_produce,
        "cluster-failover": cluster_failover,
        "cluster-partitions": cluster_partitions,
    },
    "http": {
        "gateway-idle": gateway_idle,
        "gateway-publish": gateway_publish,
        "gateway-queues": gateway_queues,
        "gateway-push": gateway_push,
        "gateway-sqs": gateway_sqs,
    },
    "client": {
        "facade": facade,
        "fixture": fixture,
    },
    "security": {
        "tls": tls,
    },
}

# The rows that most changes touch, so that a quick run ends in a few minutes.
ESSENTIAL = (
    *("startup", "memory", "requests", "latency"),
    *("produce", "produce-raw", "consume", "consume-raw"),
    *("commits", "transactions", "share-groups"),
)
