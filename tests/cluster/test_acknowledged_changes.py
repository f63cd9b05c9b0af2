"""Acknowledged metadata changes stay, whatever happens to the nodes meanwhile."""

import random
import threading

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.clients import TIMEOUT_S
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import ClusterProcesses, hasty, wait_until
from tests.cluster.test_quorum import EAGER_SNAPSHOTS, topics

pytestmark = pytest.mark.process

ROUNDS = 4


class TopicCreator(threading.Thread):
    """Creates one topic after another until stopped."""

    def __init__(self, cluster: ClusterProcesses) -> None:
        super().__init__(daemon=True)
        self.acknowledged: set[str] = set()
        self._cluster = cluster
        self._stopping = threading.Event()

    def run(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
        number = 0
        while not self._stopping.is_set():
            name = f"topic-{number}"
            number += 1
            try:
                admin.create_topics([NewTopic(name, 1, 1)])[name].result(TIMEOUT_S)
            except KafkaException as error:
                # The node that handled the first attempt may have died before it could answer.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
            self.acknowledged.add(name)

    def end(self) -> set[str]:
        self._stopping.set()
        self.join()
        return self.acknowledged


def disturb(cluster: ClusterProcesses, chance: random.Random) -> None:
    victim = chance.choice([cluster.leader(), *cluster.ids])
    if chance.random() < 0.3:
        with cluster.paused(victim):
            wait_until(lambda: cluster.leader() != victim)
    else:
        cluster.kill(victim)
        wait_until(lambda: cluster.leader() != victim)
        cluster.restart(victim)


def test_no_acknowledged_topic_is_lost(start_cluster: StartCluster) -> None:
    cluster = start_cluster(4, *EAGER_SNAPSHOTS, *hasty())
    wait_until(lambda: len(cluster.voters()) == 3)
    creator = TopicCreator(cluster)
    creator.start()
    try:
        chance = random.Random(3)
        for _ in range(ROUNDS):
            disturb(cluster, chance)
            count = len(creator.acknowledged)
            wait_until(lambda count=count: len(creator.acknowledged) > count, "another topic")
    finally:
        acknowledged = creator.end()
    for node_id in cluster.ids:
        wait_until(
            lambda node_id=node_id: acknowledged <= topics(cluster, node_id),
            f"all topics on node {node_id}",
        )
