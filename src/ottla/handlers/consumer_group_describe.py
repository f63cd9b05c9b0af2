"""ConsumerGroupDescribe (69): v0-v1.

The state, the members and the assignments of consumer groups (KIP-848).

v1  the type of each member (KIP-1099)
"""

from kio.schema.consumer_group_describe.v1.response import ConsumerGroupDescribeResponse

from ottla.groups.consumer.describe import describe_missing
from ottla.groups.coordinator import GroupMachine
from ottla.handlers.group_descriptions import DescribeApi, assigned_topics

_API = DescribeApi(
    ConsumerGroupDescribeResponse,
    GroupMachine.describe_consumer_groups,
    describe_missing,
    assigned_topics,
)
handle, error_response = _API.handle, _API.error_response
