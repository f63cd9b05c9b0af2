"""ConsumerGroupHeartbeat: records, responses, fencing."""

from typing import Any

import pytest
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32
from tests.groups.consumer.kit import (
    ALL_OF_T,
    T_ID,
    assignment_epoch_record,
    current_record,
    describe,
    epoch_record,
    member_record,
    target_record,
    tombstones,
)
from tests.groups.kit import ALL_GROUPS, Coordinator

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE, milliseconds

# Joining and reconciling.


def test_the_first_member_gets_everything() -> None:
    coordinator = Coordinator()

    response = coordinator.beat("m")

    assert coordinator.last_records == (
        member_record("m"),
        epoch_record(2),
        target_record("m", 0, 1, 2, 3),
        assignment_epoch_record(2),
        current_record("m", 2, 0, range(4)),
    )
    assert response == ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id="m",
        member_epoch=i32(2),
        heartbeat_interval=milliseconds(200),
        assignment=Assignment(
            topic_partitions=(TopicPartitions(topic_id=T_ID, partitions=tuple(map(i32, range(4)))),)
        ),
    )
    assert describe(coordinator).group_state == "Stable"


def test_a_heartbeat_without_news_writes_and_tells_nothing() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 2)

    assert coordinator.last_records == ()
    assert (response.member_epoch, response.assignment) == (2, None)


def test_a_partition_changes_hands_in_two_steps() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    joined = coordinator.beat("n")
    assert [*coordinator.last_records] == [
        member_record("n"),
        epoch_record(3),
        target_record("m", 0, 1),
        target_record("n", 2, 3),
        assignment_epoch_record(3),
        current_record("n", 3, 0, (), state=2),
    ]
    assert (joined.member_epoch, coordinator.assigned(joined)) == (3, set())
    assert describe(coordinator).group_state == "Reconciling"

    revoking = coordinator.beat("m", 2)
    assert [*coordinator.last_records] == [
        current_record("m", 2, 2, (0, 1), state=1, revoking=(2, 3)),
    ]
    assert (revoking.member_epoch, coordinator.assigned(revoking)) == (2, {("t", 0), ("t", 1)})

    coordinator.beat("n", 3)
    assert [*coordinator.last_records] == []

    described = describe(coordinator).members[0]
    assert described.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
    assert described.target_assignment.topic_partitions[0].partitions == (0, 1)
    revoked = coordinator.beat("m", 2, owned={("t", 0), ("t", 1)})
    assert coordinator.last_records == (current_record("m", 3, 2, (0, 1), since=(2, 2)),)
    assert (revoked.member_epoch, revoked.assignment) == (3, None)

    given = coordinator.beat("n", 3)
    assert coordinator.last_records == (current_record("n", 3, 3, (2, 3)),)
    assert coordinator.assigned(given) == {("t", 2), ("t", 3)}
    assert describe(coordinator).group_state == "Stable"


def test_a_member_that_leaves_frees_its_partitions() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")

    response = coordinator.beat("m", -1)

    assert coordinator.last_records == (*tombstones("m"), epoch_record(4))
    assert (response.member_id, response.member_epoch) == ("m", -1)
    assert describe(coordinator).group_state == "Assigning"
    given = coordinator.beat("n", 3)
    assert (given.member_epoch, coordinator.assigned(given)) == (4, ALL_OF_T)


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    coordinator.beat("m", -1)

    assert coordinator.last_records == (*tombstones("m"), epoch_record(3, 0))
    assert describe(coordinator).group_state == "Empty"
    assert coordinator.timers.names() == {"offsets/expire"}
    assert coordinator.beat("n").member_epoch == 4


def test_a_change_of_subscription_makes_a_new_target() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 2, topics=("t", "u"))

    assert response.member_epoch == 3
    assert coordinator.assigned(response) == ALL_OF_T | {("u", 0), ("u", 1)}


def test_new_partitions_are_found_by_the_next_heartbeat() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    topic_id, _ = coordinator.catalog.topics["t"]
    coordinator.catalog.topics["t"] = (topic_id, 5)
    coordinator.catalog.topics_version += 1

    response = coordinator.beat("m", 2)

    assert response.member_epoch == 3
    assert coordinator.assigned(response) == ALL_OF_T | {("t", 4)}


def test_a_topic_that_does_not_exist_yet_is_taken_up_when_it_does() -> None:
    coordinator = Coordinator()
    nothing = coordinator.beat("m", topics=("later",))
    assert (nothing.member_epoch, coordinator.assigned(nothing)) == (2, set())

    coordinator.catalog.create("other", 1)
    assert coordinator.beat("m", 2).member_epoch == 2
    coordinator.catalog.create("later", 1)

    assert coordinator.assigned(coordinator.beat("m", 2)) == {("later", 0)}


def test_deleted_topics_are_taken_away() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", topics=("t", "u"))
    del coordinator.catalog.topics["u"]
    coordinator.catalog.topics_version += 1

    response = coordinator.beat("m", 2)

    assert coordinator.assigned(response) == ALL_OF_T
    done = coordinator.beat("m", 2, owned=ALL_OF_T)
    assert done.member_epoch == 3


def test_a_full_heartbeat_is_told_its_assignment() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 2, topics=("t",), owned=ALL_OF_T, rebalance_ms=60_000)

    assert coordinator.last_records == ()
    assert coordinator.assigned(response) == ALL_OF_T


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", assignor="range")

    assert describe(coordinator).assignor_name == "range"
    assert coordinator.refusal(lambda: coordinator.beat("n", assignor="mine")) is (
        ErrorCode.unsupported_assignor
    )


def test_a_version_0_member_may_be_given_its_id() -> None:
    coordinator = Coordinator()

    assert coordinator.beat("", version=0).member_id == "1"


@pytest.mark.parametrize(
    ("member_id", "epoch", "arguments"),
    [
        ("", 0, {}),
        ("", 3, {}),
        ("", -1, {}),
        ("m", -3, {}),
        ("m", -2, {}),
        ("m", 0, {"group": ""}),
        ("m", 0, {"instance": ""}),
        ("m", 0, {"rebalance_ms": -1}),
        ("m", 0, {"owned": {("t", 0)}}),
    ],
)
def test_a_malformed_heartbeat_is_refused(
    member_id: str, epoch: int, arguments: dict[str, Any]
) -> None:
    coordinator = Coordinator()

    refused = coordinator.refusal(lambda: coordinator.beat(member_id, epoch, **arguments))

    assert refused is ErrorCode.invalid_request
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_a_full_group_takes_nobody_else() -> None:
    coordinator = Coordinator(consumer_max_size=1)
    coordinator.beat("m")

    assert coordinator.refusal(lambda: coordinator.beat("n")) is ErrorCode.group_max_size_reached
    assert coordinator.beat("m", 2).error_code is ErrorCode.none


# Fencing.


def test_wrong_epochs_and_strangers_are_fenced() -> None:
    coordinator = Coordinator()

    def beat(member_id: str, epoch: int, **arguments: Any) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.beat(member_id, epoch, **arguments))

    assert beat("m", 2) is ErrorCode.group_id_not_found
    assert beat("m", -1) is ErrorCode.group_id_not_found
    coordinator.beat("m")
    assert beat("n", 2) is ErrorCode.unknown_member_id
    assert beat("n", -1) is ErrorCode.unknown_member_id
    assert beat("m", 3) is ErrorCode.fenced_member_epoch
    assert beat("m", 2, instance="i") is ErrorCode.unknown_member_id


def test_the_previous_epoch_is_good_after_a_lost_response() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("m", 2, topics=("t", "u"))

    def beat(owned: set[tuple[str, int]] | None) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.beat("m", 2, owned=owned))

    assert beat(None) is ErrorCode.fenced_member_epoch
    assert coordinator.beat("m", 2, owned=ALL_OF_T).member_epoch == 3
    coordinator.beat("m", 3, topics=("t",))
    assert beat(ALL_OF_T | {("u", 0)}) is ErrorCode.fenced_member_epoch


def test_a_fenced_member_joins_again_with_nothing() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 2)

    rejoined = coordinator.beat("m")

    assert rejoined.member_epoch == 3
    assert coordinator.assigned(rejoined) == {("t", 0), ("t", 1)}
    assert coordinator.assigned(coordinator.beat("n", 3)) == {("t", 2), ("t", 3)}


def test_a_member_without_heartbeats_is_removed() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.advance(44_999)
    coordinator.beat("n", 3)

    (*removed, bumped) = coordinator.advance(1)

    assert (tuple(removed), bumped) == (tombstones("m"), epoch_record(4))
    assert coordinator.refusal(lambda: coordinator.beat("m", 2)) is ErrorCode.unknown_member_id


def test_a_member_that_does_not_give_up_its_partitions_is_removed() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 2)
    coordinator.advance(20_000)
    coordinator.beat("m", 2)
    coordinator.beat("n", 3)

    coordinator.advance(10_000)

    assert coordinator.refusal(lambda: coordinator.beat("m", 2)) is ErrorCode.unknown_member_id
    assert coordinator.assigned(coordinator.beat("n", 3)) == ALL_OF_T


def test_a_member_that_gave_them_up_in_time_stays() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 2)
    coordinator.advance(20_000)
    coordinator.beat("m", 2, owned=())

    coordinator.advance(10_000)

    assert coordinator.beat("m", 3).error_code is ErrorCode.none


def test_a_coordinator_that_takes_over_goes_on() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 2)

    coordinator.reload()

    assert coordinator.timers.names() == {
        "absences",
        "offsets/expire",
        "consumer/session/g/m",
        "consumer/session/g/n",
        "consumer/rebalance/g/m",
    }
    coordinator.beat("m", 2, owned=())
    assert coordinator.assigned(coordinator.beat("n", 3)) == {("t", 2), ("t", 3)}
    coordinator.log = list(coordinator.machine.snapshot())
    before = describe(coordinator)
    coordinator.reload()
    assert describe(coordinator) == before
