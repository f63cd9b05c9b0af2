"""Ask for the nodes of a cluster, and for the quorum of its metadata."""

from typing import Final

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC

QUORUM_REQUEST: Final = DescribeQuorumRequest(
    topics=(
        TopicData(
            topic_name=TopicName(CLUSTER_METADATA_TOPIC),
            partitions=(PartitionData(partition_index=i32(0)),),
        ),
    )
)


def nodes_request(*, fenced: bool = False) -> DescribeClusterRequest:
    """With `fenced`, for those that are down or cut off as well."""
    return DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=fenced
    )
