"""StreamsGroupDescribe (89): v0.

The topology, the members and the tasks of streams groups (KIP-1071).
"""

from kio.schema.streams_group_describe.v0.response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)

from ottla.groups.coordinator import GroupMachine
from ottla.groups.streams.describe import describe_missing
from ottla.handlers.group_descriptions import DescribeApi, topology_topics


def _topics_of(group: DescribedGroup) -> set[str]:
    topology = group.topology
    return set() if topology is None else topology_topics(topology.subtopologies or ())


_API = DescribeApi(
    StreamsGroupDescribeResponse,
    GroupMachine.describe_streams_groups,
    describe_missing,
    _topics_of,
)
handle, error_response = _API.handle, _API.error_response
