"""In a new cluster, the first FindCoordinator returns a coordinator that serves."""

from typing import Any

import pytest
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.types import GroupId
from tests.clients.requests import metadata
from tests.clients.wire import Wire
from tests.cluster.clients import GROUP
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until

from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import CONSUMER_OFFSETS_TOPIC

pytestmark = pytest.mark.process

FEW_COORDINATORS = ("--set", "offsets.topic.num.partitions=3")
GROUPS = tuple(f"group-{number}" for number in range(30))


def find(cluster: ClusterProcesses, node_id: int, *groups: str) -> dict[str, Any]:
    request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=groups)
    with Wire(cluster.bootstrap_of(node_id)) as wire:
        return {found.key: found for found in wire.call(request).coordinators}


def refusal(cluster: ClusterProcesses, node_id: int, group: str) -> ErrorCode:
    request = DescribeGroupsRequest(groups=(GroupId(group),), include_authorized_operations=False)
    with Wire(cluster.bootstrap_of(node_id)) as wire:
        code: ErrorCode = wire.call(request).groups[0].error_code
    return code


def leaders(cluster: ClusterProcesses, node_id: int) -> set[int]:
    with Wire(cluster.bootstrap_of(node_id)) as wire:
        (topic,) = wire.call(metadata(CONSUMER_OFFSETS_TOPIC)).topics
    return {int(partition.leader_id) for partition in topic.partitions}


def test_a_node_that_has_not_heard_of_it_is_not_named(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *PATIENT, *FEW_COORDINATORS)
    cluster.wait_for_voters(1, 2, 3)
    asked, slow = 1, 3
    cluster.pause(slow)
    found: dict[str, Any] = {}

    def is_created() -> bool:
        found.update(find(cluster, asked, *GROUPS))
        return any(coordinator.error_code is ErrorCode.none for coordinator in found.values())

    wait_until(is_created, "a coordinator of some group")
    assert leaders(cluster, asked) == {1, 2, 3}
    found = find(cluster, asked, *GROUPS)
    assert slow not in {coordinator.node_id for coordinator in found.values()}
    waiting = {
        key for key, coordinator in found.items() if coordinator.error_code is not ErrorCode.none
    }
    assert {found[key].error_code for key in waiting} == {ErrorCode.coordinator_not_available}

    cluster.resume(slow)
    while waiting:
        for key, coordinator in find(cluster, asked, *waiting).items():
            if coordinator.error_code is ErrorCode.none:
                waiting.discard(key)
                assert refusal(cluster, coordinator.node_id, key) is not ErrorCode.not_coordinator
