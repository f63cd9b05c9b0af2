"""Members with a group instance id (KIP-345)."""

from tests.groups.consumer.kit import (
    ALL_OF_T,
    current_record,
    describe,
    member_record,
    target_record,
    tombstones,
)
from tests.groups.kit import Coordinator

from ottla.protocol.errors import ErrorCode


def test_a_static_member_comes_back_to_what_it_had() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", instance="i")

    left = coordinator.beat("m", -2, instance="i")
    assert coordinator.last_records == (current_record("m", -2, 0, range(4)),)
    assert (left.member_id, left.member_epoch) == ("m", -2)

    back = coordinator.beat("n", instance="i")
    assert coordinator.last_records == (
        *tombstones("m"),
        member_record("n", instance_id="i"),
        target_record("n", 0, 1, 2, 3),
        current_record("n", 0, 0, range(4)),
        current_record("n", 2, 0, range(4)),
    )
    assert (back.member_epoch, coordinator.assigned(back)) == (2, ALL_OF_T)


def test_the_instance_of_a_living_member_cannot_be_taken() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", instance="i")

    assert coordinator.refusal(lambda: coordinator.beat("n", instance="i")) is (
        ErrorCode.unreleased_instance_id
    )


def test_the_old_process_of_a_static_member_is_fenced() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", instance="i")
    coordinator.beat("m", -2, instance="i")
    coordinator.beat("n", instance="i")

    assert coordinator.refusal(lambda: coordinator.beat("m", 2, instance="i")) is (
        ErrorCode.fenced_instance_id
    )
    assert coordinator.refusal(lambda: coordinator.beat("m", -1, instance="i")) is (
        ErrorCode.fenced_instance_id
    )


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", instance="i")
    coordinator.beat("m", -2, instance="i")

    coordinator.advance(45_000)

    assert describe(coordinator).group_state == "Empty"


def test_a_static_member_rejoins_under_its_own_id() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", instance="i")

    assert coordinator.assigned(coordinator.beat("m", instance="i")) == ALL_OF_T
