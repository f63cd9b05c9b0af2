from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32
from tests.kits.brokers import Cluster, run

from ottla.protocol.errors import ErrorCode

ASKING = DescribeProducersRequest(
    topics=(TopicRequest(name=TopicName("orders"), partition_indexes=(i32(0), i32(1))),)
)


def test_every_replica_describes_producers() -> None:
    """Kafka's followers answer, too."""

    async def test(cluster: Cluster) -> None:
        await cluster.create("orders")
        await cluster.leader("orders").produce("orders", "a")
        for broker in cluster.brokers.values():
            response = await cluster.world.peers.call(
                broker.simulated.address, ASKING, timeout_ms=60_000, purpose="describe"
            )
            codes = [partition.error_code for partition in response.topics[0].partitions]
            assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]

    run(test)
