"""Three nodes: write, kill the leader, keep writing; no acknowledged record is lost."""

from ottla.client import Producer
from ottla.testing import EmbeddedCluster

COUNT = 300

with EmbeddedCluster(nodes=3) as cluster:
    topic = cluster.topic("orders", replication_factor=3, config={"min.insync.replicas": "2"})
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        deliveries = []
        for number in range(COUNT):
            deliveries.append(producer.send(topic, str(number)))
            if number == COUNT // 2:
                leader = cluster.leader(topic)
                cluster.kill_node(leader)
                print(f"killed node {leader}, which led the topic")
        acknowledged = [delivery.result() for delivery in deliveries]
    print(f"node {cluster.leader(topic)} leads it now")
    values = [message.value for message in cluster.records(topic)]
    print(f"{len(acknowledged)} records acknowledged, {len(values)} there, each once and in order:")
    print(values == [b"%d" % number for number in range(COUNT)])
