"""The whole machine: where groups live, loading, describing, listing."""

import pytest
from kio.schema.describe_groups.v6.response import DescribedGroup, DescribedGroupMember
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.list_groups.v5.response import ListedGroup
from kio.schema.types import GroupId
from tests.groups.kit import ALL_GROUPS, CALLER, Coordinator, subscription

from ottla.groups.caller import Caller
from ottla.groups.classic.records import GroupMetadataValue, group_metadata
from ottla.machine.record import UnknownRecord
from ottla.protocol.errors import ErrorCode


def test_a_coordinator_that_takes_over_goes_on_with_the_generation() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.commit({("t", 0): 1}, member_id=first, generation=1)

    coordinator.reload()

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none
    assert coordinator.sync(second, 1).value.assignment == second.encode()
    assert coordinator.offsets() == {("t", 0): 1}
    coordinator.advance(9_999)
    coordinator.heartbeat(first, 1)
    coordinator.advance(1)
    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.rebalance_in_progress


def test_a_rebalance_that_was_under_way_is_forgotten_by_a_change_of_coordinator() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.join(first)
    coordinator.join(second)

    coordinator.reload()

    refused = coordinator.refusal(lambda: coordinator.heartbeat(first, 2))
    assert refused is ErrorCode.illegal_generation
    assert coordinator.join(first).waits
    assert coordinator.join(second).value.generation_id == 2


def test_a_loaded_group_that_is_too_large_rebalances() -> None:
    coordinator = Coordinator()
    first, *_ = coordinator.stable_group(3)
    log = coordinator.log

    small = Coordinator(max_size=2)
    small.log = log
    small.reload()

    assert small.heartbeat(first, 1).error_code is ErrorCode.rebalance_in_progress


def test_a_snapshot_gives_the_same_groups() -> None:
    coordinator = Coordinator()
    first, _ = coordinator.stable_group()
    coordinator.log = list(coordinator.machine.snapshot())

    coordinator.reload()

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none


def test_records_of_unknown_families_are_passed_over() -> None:
    coordinator = Coordinator()
    coordinator.log.append(UnknownRecord(99))

    coordinator.reload()

    with pytest.raises(AssertionError):
        coordinator.machine.replay("nonsense", 0)


def test_describe_a_stable_group() -> None:
    coordinator = Coordinator()
    (member_id,) = coordinator.stable_group(1)

    described = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER))

    assert described.value == (
        DescribedGroup(
            error_code=ErrorCode.none,
            group_id=GroupId("g"),
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=(
                DescribedGroupMember(
                    member_id=member_id,
                    group_instance_id=None,
                    client_id="client",
                    client_host="/host",
                    member_metadata=subscription("t"),
                    member_assignment=member_id.encode(),
                ),
            ),
        ),
    )


def test_describe_hides_metadata_while_a_group_rebalances() -> None:
    coordinator = Coordinator()
    first, _ = coordinator.stable_group()
    coordinator.join(first)

    (described,) = coordinator.run(
        lambda _: coordinator.machine.describe_groups(["g"], CALLER)
    ).value

    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [item.member_metadata for item in described.members] == [b"", b""]
    assert [item.member_assignment for item in described.members] == [b"client-1", b"client-2"]


def test_describe_forgets_an_assignment_that_was_overtaken() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.join(first)
    coordinator.join(second)
    coordinator.join(version=3)

    (described,) = coordinator.run(
        lambda _: coordinator.machine.describe_groups(["g"], CALLER)
    ).value

    assert described.group_state == "PreparingRebalance"
    assert [item.member_assignment for item in described.members] == [b"", b"", b""]


def test_describe_a_group_that_does_not_exist() -> None:
    coordinator = Coordinator()

    def describe(version: int) -> DescribedGroup:
        caller = Caller(version, "client", "/host")
        reply = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], caller))
        (described,) = reply.value
        assert isinstance(described, DescribedGroup)
        return described

    assert (describe(5).error_code, describe(5).group_state) == (ErrorCode.none, "Dead")
    assert describe(6).error_code is ErrorCode.group_id_not_found
    assert describe(6).error_message == "Group g not found."


def test_list_groups() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1, group="busy")
    coordinator.commit({("t", 0): 1}, group="simple")

    def listed(**filters: tuple[str, ...]) -> list[str]:
        request = ListGroupsRequest(**filters)
        return [
            group.group_id
            for group in coordinator.run(lambda _: coordinator.machine.list_groups(request)).value
        ]

    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == (
        ListedGroup(
            group_id=GroupId("busy"),
            protocol_type="consumer",
            group_state="Stable",
            group_type="classic",
        ),
        ListedGroup(
            group_id=GroupId("simple"),
            protocol_type="",
            group_state="Empty",
            group_type="classic",
        ),
    )
    assert listed(states_filter=("STABLE", "Dead")) == ["busy"]
    assert listed(types_filter=("classic",)) == ["busy", "simple"]
    assert listed(types_filter=("share",)) == []


def test_a_group_without_a_protocol_type_in_its_record_is_a_simple_one() -> None:
    coordinator = Coordinator()
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, members=()
    )
    coordinator.log.append(group_metadata("g", value))
    coordinator.reload()

    coordinator.commit({("t", 0): 1})

    assert coordinator.offsets() == {("t", 0): 1}
