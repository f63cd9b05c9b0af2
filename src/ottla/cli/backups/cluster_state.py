"""What a cluster knows besides records: groups, configs, access control, quotas, users.

Everything here is asked in Kafka's own words, so the cluster may be any that speaks them. What it
does not know, or does not let us see, is left out with a note.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_client_quotas.v1.request import DescribeClientQuotasRequest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.describe_user_scram_credentials.v0.request import (
    DescribeUserScramCredentialsRequest,
)
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.types import GroupId
from kio.static.primitive import i8

from ottla.cli.acls.resources import NO_RESOURCES
from ottla.client.wire.cluster import Cluster, CoordinatorType, expect_one
from ottla.client.wire.configs import BROKER, GROUP, TOPIC, describe_request
from ottla.client.wire.errors import BrokerError, validate_answer
from ottla.client.wire.nodes import nodes_request
from ottla.client.wire.versions import common_version
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.security.scram import ScramMechanism

T = TypeVar("T")

# Where a value comes from, of those that somebody set for this resource alone.
_SET_HERE: Final = {TOPIC: 1, BROKER: 3, GROUP: 8}
_RESOURCES_AT_ONCE: Final = 100


@dataclass(slots=True)
class ClusterState:
    """As it is written down, in JSON."""

    groups: dict[str, list[Any]] = field(default_factory=dict)  # Topic, partition, offset, note.
    share_groups: dict[str, list[Any]] = field(default_factory=dict)  # Topic, partition, offset.
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    broker_configs: dict[str, str] = field(default_factory=dict)  # Those of all brokers.
    acls: list[list[Any]] = field(default_factory=list)  # As the fields of AclCreation.
    quotas: list[dict[str, Any]] = field(default_factory=list)
    users: list[dict[str, Any]] = field(default_factory=list)  # Without what they log in with.
    notes: list[str] = field(default_factory=list)


def read_state(
    cluster: Cluster, topics: Collection[str], *, only_groups: bool = False
) -> ClusterState:
    """Groups are those that have an offset in one of the topics, with these offsets."""
    state = ClusterState()

    def attempt(what: str, read: Callable[..., T], *arguments: object) -> T | None:
        try:
            return cluster.retry(partial(read, cluster, *arguments))
        except BrokerError as error:
            if error.code is not ErrorCode.security_disabled:
                state.notes.append(f"{what}: {error}")
            return None

    def here(offsets: list[Any] | None) -> list[Any]:
        return [offset for offset in offsets or () if offset[0] in topics]

    consumers, shares = attempt("groups", _group_names) or ([], [])
    for group in consumers:
        if offsets := here(attempt(f"group {group}", _offsets, group)):
            state.groups[group] = offsets
    for group in shares:
        if offsets := here(attempt(f"group {group}", _share_offsets, group)):
            state.share_groups[group] = offsets
    if only_groups:
        return state
    state.group_configs = attempt("configs of groups", _group_configs) or {}
    brokers = attempt("configs of brokers", set_configs, BROKER, [""]) or {}
    state.broker_configs = brokers.get("", {})
    state.acls = attempt("acls", _acls) or []
    state.quotas = attempt("quotas", _quotas) or []
    state.users = attempt("users", _users) or []
    return state


def cluster_id(cluster: Cluster) -> str | None:
    def ask() -> str | None:
        if not _serves(cluster, DescribeClusterRequest):
            return None
        found: str = cluster.any_broker().call(nodes_request()).cluster_id
        return found

    return cluster.retry(ask)


def set_configs(cluster: Cluster, kind: int, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """What was set for each resource; secrets are not told."""
    wanted = list(names)
    found: dict[str, dict[str, str]] = {}
    for first in range(0, len(wanted), _RESOURCES_AT_ONCE):
        request = describe_request(kind, wanted[first : first + _RESOURCES_AT_ONCE])
        for result in cluster.any_broker().call(request).results:
            validate_answer(result.error_code, f"configs of {result.resource_name or 'brokers'}")
            found[result.resource_name] = {
                config.name: config.value
                for config in result.configs
                if config.config_source == _SET_HERE[kind] and config.value is not None
            }
    return found


def _serves(cluster: Cluster, request: Any) -> bool:
    return common_version(request.__api_key__, cluster.any_broker().versions) is not None


def _group_names(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Of consumer groups, and of share groups."""
    consumers: list[str] = []
    shares: list[str] = []
    for broker in cluster.every_broker():
        response = broker.call(ListGroupsRequest(states_filter=(), types_filter=()))
        validate_answer(response.error_code, "groups")
        for group in response.groups:
            names = shares if group.group_type.lower() == "share" else consumers
            names.append(group.group_id)
    return sorted(consumers), sorted(shares)


def _offsets(cluster: Cluster, group: str) -> list[Any]:
    wanted = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
    request = OffsetFetchRequest(groups=(wanted,), require_stable=False)
    answer = expect_one(cluster.coordinator(CoordinatorType.GROUP, group).call(request).groups)
    validate_answer(answer.error_code, f"offsets of group {group}")
    return [
        [topic.name, each.partition_index, each.committed_offset, each.metadata or ""]
        for topic in answer.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    ]


def _share_offsets(cluster: Cluster, group: str) -> list[Any]:
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group), topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=(asked,))
    answer = expect_one(cluster.coordinator(CoordinatorType.GROUP, group).call(request).groups)
    validate_answer(answer.error_code, f"offsets of share group {group}")
    return [
        [topic.topic_name, each.partition_index, each.start_offset]
        for topic in answer.topics
        for each in topic.partitions
        if each.start_offset >= 0
    ]


def _group_configs(cluster: Cluster) -> dict[str, dict[str, str]]:
    if not _serves(cluster, ListConfigResourcesRequest):
        return {}
    connection = cluster.any_broker()
    if connection.version(ListConfigResourcesRequest.__api_key__) < 1:
        return {}  # It lists metrics only.
    listed = connection.call(ListConfigResourcesRequest(resource_types=(i8(GROUP),)))
    validate_answer(listed.error_code, "resources with configs")
    return set_configs(cluster, GROUP, [each.resource_name for each in listed.config_resources])


def _acls(cluster: Cluster) -> list[list[Any]]:
    (request,) = NO_RESOURCES.filters(DescribeAclsRequest, principal=None)
    response = cluster.any_broker().call(request)
    validate_answer(response.error_code, "acls")
    return sorted(
        [
            int(found.resource_type),
            found.resource_name,
            int(found.pattern_type),
            acl.principal,
            acl.host,
            int(acl.operation),
            int(acl.permission_type),
        ]
        for found in response.resources
        for acl in found.acls
    )


def _quotas(cluster: Cluster) -> list[dict[str, Any]]:
    response = cluster.any_broker().call(DescribeClientQuotasRequest(components=(), strict=False))
    validate_answer(response.error_code, "quotas")
    return [
        {
            "entity": [[part.entity_type, part.entity_name] for part in entry.entity],
            "values": {value.key: float(value.value) for value in entry.values},
        }
        for entry in response.entries or ()
    ]


def _users(cluster: Cluster) -> list[dict[str, Any]]:
    if not _serves(cluster, DescribeUserScramCredentialsRequest):
        return []
    response = cluster.controller().call(DescribeUserScramCredentialsRequest(users=None))
    validate_answer(response.error_code, "users")
    return [
        {
            "user": result.user,
            "mechanism": ScramMechanism(int(info.mechanism)).sasl_name,
            "iterations": int(info.iterations),
        }
        for result in response.results
        for info in result.credential_infos
    ]
