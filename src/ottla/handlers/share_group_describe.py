"""ShareGroupDescribe (77): v1.

The members of share groups and what they fetch (KIP-932).
"""

from kio.schema.share_group_describe.v1.response import ShareGroupDescribeResponse

from ottla.groups.coordinator import GroupMachine
from ottla.groups.share.describe import describe_missing
from ottla.handlers.group_descriptions import DescribeApi, assigned_topics

_API = DescribeApi(
    ShareGroupDescribeResponse,
    GroupMachine.describe_share_groups,
    describe_missing,
    assigned_topics,
)
handle, error_response = _API.handle, _API.error_response
