"""ConsumerGroupHeartbeat: records, responses, fencing, static members, expressions."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.consumer_group_describe.v1.response import DescribedGroup
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kio.static.primitive import i32
from tests.groups.kit import ALL_GROUPS, CALLER, START_MS, Catalog, Coordinator

from ottla.groups.consumer import records
from ottla.groups.duration import NO_THROTTLE, of_ms
from ottla.groups.modern import records as modern
from ottla.groups.modern.subscription import metadata_hash
from ottla.groups.record import Record
from ottla.protocol.errors import ErrorCode

T_ID = UUID(int=1)
T_HASH = metadata_hash({T_ID: 4})
ALL_OF_T = {("t", 0), ("t", 1), ("t", 2), ("t", 3)}


def describe(coordinator: Coordinator, group: str = "g") -> DescribedGroup:
    (described,) = coordinator.run(
        lambda _: coordinator.machine.describe_consumer_groups([group])
    ).value
    assert isinstance(described, DescribedGroup)
    return described


def epoch_record(epoch: int, topics_hash: int = T_HASH) -> Record:
    return Record(
        records.ConsumerGroupMetadataKey(group_id="g"),
        records.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=topics_hash),
    )


def assignment_epoch_record(epoch: int) -> Record:
    return Record(
        records.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        modern.TargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=START_MS),
    )


def member_record(member_id: str, **changes: Any) -> Record:
    values: dict[str, Any] = {
        "client_id": "client",
        "client_host": "/host",
        "subscribed_topic_names": ("t",),
        "rebalance_timeout_ms": 60_000,
    }
    return Record(
        records.ConsumerGroupMemberMetadataKey(group_id="g", member_id=member_id),
        records.ConsumerGroupMemberMetadataValue(**(values | changes)),
    )


def topic(partitions: Iterable[int]) -> tuple[modern.TopicPartitions, ...]:
    found = tuple(sorted(partitions))
    return (modern.TopicPartitions(topic_id=T_ID, partitions=found),) if found else ()


def current(
    partitions: Iterable[int], since: Iterable[int] = ()
) -> tuple[records.CurrentTopicPartitions, ...]:
    found, epochs = tuple(sorted(partitions)), tuple(since)
    described = records.CurrentTopicPartitions(
        topic_id=T_ID, partitions=found, assignment_epochs=epochs
    )
    return (described,) if found else ()


def target_record(member_id: str, *partitions: int) -> Record:
    return Record(
        records.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id=member_id),
        modern.TargetAssignmentMemberValue(topic_partitions=topic(partitions)),
    )


def current_record(
    member_id: str,
    epoch: int,
    previous: int,
    assigned: Iterable[int],
    *,
    state: int = 0,
    revoking: Iterable[int] = (),
    since: Iterable[int] = (),
) -> Record:
    return Record(
        records.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id),
        records.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=previous,
            state=state,
            assigned_partitions=current(assigned, since),
            partitions_pending_revocation=current(revoking),
        ),
    )


def tombstones(member_id: str) -> tuple[Record, ...]:
    return tuple(
        Record(key(group_id="g", member_id=member_id), None)
        for key in (
            records.ConsumerGroupCurrentMemberAssignmentKey,
            records.ConsumerGroupTargetAssignmentMemberKey,
            records.ConsumerGroupMemberMetadataKey,
        )
    )


# Joining and reconciling.


def test_the_first_member_gets_everything() -> None:
    coordinator = Coordinator()

    response = coordinator.beat("m")

    assert coordinator.last_records == (
        member_record("m"),
        epoch_record(1),
        target_record("m", 0, 1, 2, 3),
        assignment_epoch_record(1),
        current_record("m", 1, 0, range(4)),
    )
    assert response == ConsumerGroupHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        member_id="m",
        member_epoch=i32(1),
        heartbeat_interval=of_ms(200),
        assignment=Assignment(
            topic_partitions=(TopicPartitions(topic_id=T_ID, partitions=tuple(map(i32, range(4)))),)
        ),
    )
    assert describe(coordinator).group_state == "Stable"


def test_a_heartbeat_without_news_writes_and_tells_nothing() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 1)

    assert coordinator.last_records == ()
    assert (response.member_epoch, response.assignment) == (1, None)


def test_a_partition_changes_hands_in_two_steps() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    joined = coordinator.beat("n")
    assert coordinator.last_records == (
        member_record("n"),
        epoch_record(2),
        target_record("m", 0, 1),
        target_record("n", 2, 3),
        assignment_epoch_record(2),
        current_record("n", 2, 0, (), state=2),
    )
    assert (joined.member_epoch, coordinator.assigned(joined)) == (2, set())
    assert describe(coordinator).group_state == "Reconciling"

    told = coordinator.beat("m", 1)
    assert coordinator.last_records == (
        current_record("m", 1, 1, (0, 1), state=1, revoking=(2, 3)),
    )
    assert (told.member_epoch, coordinator.assigned(told)) == (1, {("t", 0), ("t", 1)})

    coordinator.beat("n", 2)
    assert coordinator.last_records == ()

    described = describe(coordinator).members[0]
    assert described.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
    assert described.target_assignment.topic_partitions[0].partitions == (0, 1)
    revoked = coordinator.beat("m", 1, owned={("t", 0), ("t", 1)})
    assert coordinator.last_records == (current_record("m", 2, 1, (0, 1), since=(1, 1)),)
    assert (revoked.member_epoch, revoked.assignment) == (2, None)

    given = coordinator.beat("n", 2)
    assert coordinator.last_records == (current_record("n", 2, 2, (2, 3)),)
    assert coordinator.assigned(given) == {("t", 2), ("t", 3)}
    assert describe(coordinator).group_state == "Stable"


def test_a_member_that_leaves_frees_its_partitions() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")

    response = coordinator.beat("m", -1)

    assert coordinator.last_records == (*tombstones("m"), epoch_record(3))
    assert (response.member_id, response.member_epoch) == ("m", -1)
    assert describe(coordinator).group_state == "Assigning"
    given = coordinator.beat("n", 2)
    assert (given.member_epoch, coordinator.assigned(given)) == (3, ALL_OF_T)


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    coordinator.beat("m", -1)

    assert coordinator.last_records == (*tombstones("m"), epoch_record(2, 0))
    assert describe(coordinator).group_state == "Empty"
    assert coordinator.timers.names() == {"offsets/expire"}
    assert coordinator.beat("n").member_epoch == 3


def test_a_change_of_subscription_makes_a_new_target() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 1, topics=("t", "u"))

    assert response.member_epoch == 2
    assert coordinator.assigned(response) == ALL_OF_T | {("u", 0), ("u", 1)}


def test_new_partitions_are_found_by_the_next_heartbeat() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    topic_id, _ = coordinator.catalog.topics["t"]
    coordinator.catalog.topics["t"] = (topic_id, 5)
    coordinator.catalog.topics_version += 1

    response = coordinator.beat("m", 1)

    assert response.member_epoch == 2
    assert coordinator.assigned(response) == ALL_OF_T | {("t", 4)}


def test_a_topic_that_does_not_exist_yet_is_taken_up_when_it_does() -> None:
    coordinator = Coordinator()
    nothing = coordinator.beat("m", topics=("later",))
    assert (nothing.member_epoch, coordinator.assigned(nothing)) == (1, set())

    coordinator.catalog.create("other", 1)
    assert coordinator.beat("m", 1).member_epoch == 1
    coordinator.catalog.create("later", 1)

    assert coordinator.assigned(coordinator.beat("m", 1)) == {("later", 0)}


def test_deleted_topics_are_taken_away() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", topics=("t", "u"))
    del coordinator.catalog.topics["u"]
    coordinator.catalog.topics_version += 1

    told = coordinator.beat("m", 1)

    assert coordinator.assigned(told) == ALL_OF_T
    done = coordinator.beat("m", 1, owned=ALL_OF_T)
    assert done.member_epoch == 2


def test_a_full_heartbeat_is_told_its_assignment() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    response = coordinator.beat("m", 1, topics=("t",), owned=ALL_OF_T, rebalance_ms=60_000)

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
    assert coordinator.beat("m", 1).error_code is ErrorCode.none


# Fencing.


def test_wrong_epochs_and_strangers_are_fenced() -> None:
    coordinator = Coordinator()

    def beat(member_id: str, epoch: int, **arguments: Any) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.beat(member_id, epoch, **arguments))

    assert beat("m", 1) is ErrorCode.group_id_not_found
    assert beat("m", -1) is ErrorCode.group_id_not_found
    coordinator.beat("m")
    assert beat("n", 1) is ErrorCode.unknown_member_id
    assert beat("n", -1) is ErrorCode.unknown_member_id
    assert beat("m", 2) is ErrorCode.fenced_member_epoch
    assert beat("m", 1, instance="i") is ErrorCode.unknown_member_id


def test_the_previous_epoch_is_good_after_a_lost_response() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("m", 1, topics=("t", "u"))

    def beat(owned: set[tuple[str, int]] | None) -> ErrorCode:
        return coordinator.refusal(lambda: coordinator.beat("m", 1, owned=owned))

    assert beat(None) is ErrorCode.fenced_member_epoch
    assert coordinator.beat("m", 1, owned=ALL_OF_T).member_epoch == 2
    coordinator.beat("m", 2, topics=("t",))
    assert beat(ALL_OF_T | {("u", 0)}) is ErrorCode.fenced_member_epoch


def test_a_fenced_member_joins_again_with_nothing() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 1)

    rejoined = coordinator.beat("m")

    assert rejoined.member_epoch == 2
    assert coordinator.assigned(rejoined) == {("t", 0), ("t", 1)}
    assert coordinator.assigned(coordinator.beat("n", 2)) == {("t", 2), ("t", 3)}


def test_a_member_without_heartbeats_is_removed() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.advance(44_999)
    coordinator.beat("n", 2)

    (*removed, bumped) = coordinator.advance(1)

    assert (tuple(removed), bumped) == (tombstones("m"), epoch_record(3))
    assert coordinator.refusal(lambda: coordinator.beat("m", 1)) is ErrorCode.unknown_member_id


def test_a_member_that_does_not_give_up_its_partitions_is_removed() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 1)
    coordinator.advance(20_000)
    coordinator.beat("m", 1)
    coordinator.beat("n", 2)

    coordinator.advance(10_000)

    assert coordinator.refusal(lambda: coordinator.beat("m", 1)) is ErrorCode.unknown_member_id
    assert coordinator.assigned(coordinator.beat("n", 2)) == ALL_OF_T


def test_a_member_that_gave_them_up_in_time_stays() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 1)
    coordinator.advance(20_000)
    coordinator.beat("m", 1, owned=())

    coordinator.advance(10_000)

    assert coordinator.beat("m", 2).error_code is ErrorCode.none


def test_a_coordinator_that_takes_over_goes_on() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", rebalance_ms=30_000)
    coordinator.beat("n")
    coordinator.beat("m", 1)

    coordinator.reload()

    assert coordinator.timers.names() == {
        "offsets/expire",
        "consumer/session/g/m",
        "consumer/session/g/n",
        "consumer/rebalance/g/m",
    }
    coordinator.beat("m", 1, owned=())
    assert coordinator.assigned(coordinator.beat("n", 2)) == {("t", 2), ("t", 3)}
    coordinator.log = list(coordinator.machine.snapshot())
    before = describe(coordinator)
    coordinator.reload()
    assert describe(coordinator) == before


# Static members.


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
        current_record("n", 1, 0, range(4)),
    )
    assert (back.member_epoch, coordinator.assigned(back)) == (1, ALL_OF_T)


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

    assert coordinator.refusal(lambda: coordinator.beat("m", 1, instance="i")) is (
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


# Expressions.


def test_a_subscribed_expression_follows_the_topics() -> None:
    coordinator = Coordinator(Catalog(**{"orders-eu": 1, "payments": 1, "__consumer_offsets": 1}))

    joined = coordinator.beat("m", regex="orders-.*|__.*")

    assert coordinator.assigned(joined) == {("orders-eu", 0)}
    assert coordinator.last_records[1] == Record(
        records.ConsumerGroupRegularExpressionKey(
            group_id="g", regular_expression="orders-.*|__.*"
        ),
        records.ConsumerGroupRegularExpressionValue(
            topics=("orders-eu",), version=3, timestamp=START_MS
        ),
    )
    coordinator.catalog.create("orders-us", 1)
    assert coordinator.assigned(coordinator.beat("m", 1)) == {("orders-eu", 0), ("orders-us", 0)}


def test_an_empty_expression_means_none() -> None:
    coordinator = Coordinator()

    joined = coordinator.beat("m", topics=("u",), regex="")

    assert coordinator.assigned(joined) == {("u", 0), ("u", 1)}
    assert describe(coordinator).members[0].subscribed_topic_regex == ""


def test_an_expression_can_be_given_up() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", topics=("u",), regex="t")

    coordinator.beat("m", 1, regex="")
    response = coordinator.beat("m", 1, owned={("u", 0), ("u", 1)})

    assert response.member_epoch == 2
    assert {("u", 0), ("u", 1)} == {
        (topic.topic_name, partition)
        for topic in describe(coordinator).members[0].assignment.topic_partitions
        for partition in topic.partitions
    }


def test_a_bad_expression_is_refused() -> None:
    coordinator = Coordinator()

    assert coordinator.refusal(lambda: coordinator.beat("m", regex="(")) is (
        ErrorCode.invalid_regular_expression
    )


# Offsets and the group as a whole.


def test_members_commit_and_fetch_with_their_epoch() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    def commit(member_id: str, epoch: int, version: int = 9) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.commit(
                {("t", 0): 1}, member_id=member_id, generation=epoch, version=version
            )
        )

    assert commit("m", 2) is ErrorCode.stale_member_epoch
    assert commit("m", 1, version=8) is ErrorCode.unsupported_version
    assert commit("n", 1) is ErrorCode.unknown_member_id
    assert commit("", -1) is ErrorCode.unknown_member_id
    coordinator.commit({("t", 0): 7}, member_id="m", generation=1)
    assert coordinator.offsets() == {("t", 0): 7}
    stale = coordinator.fetch(("t", 0), member_id="m", member_epoch=0)
    assert stale.error_code is ErrorCode.stale_member_epoch
    assert coordinator.fetch(("t", 0), member_id="n", member_epoch=1).error_code is (
        ErrorCode.unknown_member_id
    )
    good = coordinator.fetch(("t", 0), member_id="m", member_epoch=1)
    assert good.topics[0].partitions[0].committed_offset == 7


def test_a_commit_that_the_next_epoch_has_overtaken_counts_for_what_was_kept() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 1)
    coordinator.beat("m", 1, owned={("t", 0), ("t", 1)})
    coordinator.beat("n", 2)

    def refusal(member_id: str, epoch: int, *partitions: int) -> ErrorCode:
        offsets = {("t", partition): 1 for partition in partitions}
        return coordinator.refusal(
            lambda: coordinator.commit(offsets, member_id=member_id, generation=epoch)
        )

    coordinator.commit({("t", 0): 7, ("t", 1): 8}, member_id="m", generation=1)
    assert coordinator.offsets() == {("t", 0): 7, ("t", 1): 8}
    assert refusal("m", 1, 0, 2) is ErrorCode.stale_member_epoch
    assert refusal("m", 0, 0) is ErrorCode.stale_member_epoch
    assert refusal("m", 3, 0) is ErrorCode.stale_member_epoch
    assert refusal("n", 1, 2) is ErrorCode.stale_member_epoch


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.commit({("t", 0): 7}, member_id="m", generation=1)

    def delete() -> ErrorCode:
        results = coordinator.run(lambda _: coordinator.machine.delete_groups(["g"])).value
        code: ErrorCode = results[0].error_code
        return code

    assert delete() is ErrorCode.non_empty_group
    coordinator.beat("m", -1)
    assert delete() is ErrorCode.none
    assert describe(coordinator).error_code is ErrorCode.group_id_not_found
    assert coordinator.offsets() == {}
    coordinator.reload()
    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


def test_offsets_of_subscribed_topics_do_not_expire() -> None:
    coordinator = Coordinator(offsets_retention_ms=1_000, offsets_retention_check_interval_ms=500)
    coordinator.beat("m")
    coordinator.commit({("t", 0): 7, ("u", 0): 8}, member_id="m", generation=1)

    coordinator.advance(5_000)

    assert coordinator.offsets() == {("t", 0): 7}


def test_how_a_consumer_group_is_shown() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")

    (listed,) = coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value
    assert (listed.group_type, listed.group_state, listed.protocol_type) == (
        "consumer",
        "Stable",
        "consumer",
    )
    (classic,) = coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER)).value
    assert (classic.error_code, classic.error_message) == (
        ErrorCode.group_id_not_found,
        "Group g is not a classic group.",
    )
    member = describe(coordinator).members[0]
    assert (member.member_epoch, member.member_type, member.client_host) == (1, 1, "/host")
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].topic_name == "t"
