"""Removal of offsets: OffsetDelete, DeleteGroups, deleted topics, expiry."""

import pytest
from kio.schema.delete_groups.v2.response import DeletableGroupResult
from kio.schema.types import GroupId
from tests.groups.kit import ALL_GROUPS, CALLER, Coordinator, subscription
from tests.groups.offsets.kit import delete_offsets, end_transaction, transactional_commit

from ottla.groups.classic.records import group_tombstone
from ottla.groups.offsets import removal
from ottla.groups.offsets.records import offset_tombstone
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition

DAY_MS = 24 * 60 * 60 * 1000


def test_delete_offsets() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("t", 1): 2})

    response = delete_offsets(coordinator, "t", 0).value

    assert [*coordinator.last_records] == [offset_tombstone("g", TopicPartition("t", 0))]
    assert response.error_code is ErrorCode.none
    assert response.topics[0].partitions[0].error_code is ErrorCode.none
    assert coordinator.offsets() == {("t", 1): 2}
    delete_offsets(coordinator, "t", 3)
    assert coordinator.last_records == ()


def test_delete_offsets_is_refused() -> None:
    coordinator = Coordinator()

    assert coordinator.refusal(lambda: delete_offsets(coordinator, "t", 0)) is (
        ErrorCode.group_id_not_found
    )
    (member,) = coordinator.stable_group(1)
    coordinator.commit({("t", 0): 1, ("u", 0): 2}, member_id=member, generation=1)
    subscribed = delete_offsets(coordinator, "t", 0).value.topics[0].partitions[0]
    assert subscribed.error_code is ErrorCode.group_subscribed_to_topic
    other = delete_offsets(coordinator, "u", 0).value.topics[0].partitions[0]
    assert other.error_code is ErrorCode.none
    unknown = delete_offsets(coordinator, "nope", 0).value.topics[0].partitions[0]
    assert unknown.error_code is ErrorCode.unknown_topic_or_partition
    assert coordinator.offsets() == {("t", 0): 1}


def test_offsets_of_a_group_that_is_not_one_of_consumers_are_not_deleted_under_it() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1, protocol_type="connect")

    assert coordinator.refusal(lambda: delete_offsets(coordinator, "t", 0)) is (
        ErrorCode.non_empty_group
    )


def test_delete_groups() -> None:
    coordinator = Coordinator()
    coordinator.stable_group(1, group="busy")
    coordinator.commit({("t", 1): 1, ("t", 0): 1})
    transactional_commit(coordinator, 2, 9)

    results = coordinator.run(
        lambda _: coordinator.machine.delete_groups(["g", "busy", "none", ""])
    ).value

    assert results == (
        DeletableGroupResult(group_id=GroupId("g"), error_code=ErrorCode.none),
        DeletableGroupResult(group_id=GroupId("busy"), error_code=ErrorCode.non_empty_group),
        DeletableGroupResult(group_id=GroupId("none"), error_code=ErrorCode.group_id_not_found),
        DeletableGroupResult(group_id=GroupId(""), error_code=ErrorCode.group_id_not_found),
    )
    assert coordinator.last_records == (
        offset_tombstone("g", TopicPartition("t", 0)),
        offset_tombstone("g", TopicPartition("t", 1)),
        offset_tombstone("g", TopicPartition("t", 2)),
        group_tombstone("g"),
    )
    end_transaction(coordinator, committed=True)
    assert coordinator.offsets() == {}


def test_offsets_go_with_their_topic() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("u", 0): 2})
    coordinator.commit({("t", 1): 1}, group="h")

    coordinator.run(lambda now_ms: coordinator.machine.remove_topics(["t"], now_ms))

    assert coordinator.last_records == (
        offset_tombstone("g", TopicPartition("t", 0)),
        offset_tombstone("h", TopicPartition("t", 1)),
    )
    assert coordinator.offsets() == {("u", 0): 2}


@pytest.fixture
def two_groups(monkeypatch: pytest.MonkeyPatch) -> Coordinator:
    """More offsets than one batch can remove."""
    monkeypatch.setattr(removal, "BATCH_RECORDS_MAX", 3)
    coordinator = Coordinator()
    for group in ("g", "h"):
        coordinator.commit({("t", partition): 1 for partition in range(4)}, group=group)
    return coordinator


def test_what_does_not_fit_one_batch_is_removed_in_several(two_groups: Coordinator) -> None:
    coordinator = two_groups
    for group in ("g", "h"):
        coordinator.commit({("u", 0): 1}, group=group)

    coordinator.run(lambda now_ms: coordinator.machine.remove_topics(["t"], now_ms))
    assert len(coordinator.last_records) == 3
    assert len(coordinator.advance(0)) == 5
    assert coordinator.offsets() == coordinator.offsets(group="h") == {("u", 0): 1}


def test_what_expires_at_once_is_removed_in_several_batches(two_groups: Coordinator) -> None:
    two_groups.advance(8 * DAY_MS)
    assert two_groups.run(lambda _: two_groups.machine.list_groups(ALL_GROUPS)).value == ()


# Expiry (KIP-211).


def test_offsets_of_a_group_without_members_expire_by_commit_time() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1})
    coordinator.advance(DAY_MS)
    coordinator.commit({("t", 1): 2})

    records = coordinator.advance(6 * DAY_MS)
    assert records == [offset_tombstone("g", TopicPartition("t", 0))]
    assert coordinator.offsets() == {("t", 1): 2}

    records = coordinator.advance(DAY_MS)
    assert records == [offset_tombstone("g", TopicPartition("t", 1)), group_tombstone("g")]
    assert (
        coordinator.run(lambda _: coordinator.machine.describe_groups(["g"], CALLER))
        .value[0]
        .group_state
        == "Dead"
    )


def test_offsets_of_a_group_expire_from_when_its_last_member_left() -> None:
    coordinator = Coordinator()
    (member,) = coordinator.stable_group(1, session_ms=60_000)
    coordinator.commit({("t", 0): 1}, member_id=member, generation=1)
    for _ in range(8 * 24 * 60):
        coordinator.advance(60_000 - 1)
        coordinator.heartbeat(member, 1)
    assert coordinator.offsets() == {("t", 0): 1}

    coordinator.leave((member, None))
    assert coordinator.advance(7 * DAY_MS - 3_600_000) == []
    records = coordinator.advance(7_200_000)

    assert records == [offset_tombstone("g", TopicPartition("t", 0)), group_tombstone("g")]


def test_offsets_of_topics_that_a_stable_group_no_longer_reads_expire() -> None:
    coordinator = Coordinator(max_session_timeout_ms=30 * DAY_MS)
    (member,) = coordinator.stable_group(
        1, protocols={"range": subscription("t")}, session_ms=20 * DAY_MS
    )
    coordinator.commit({("t", 0): 1, ("u", 0): 1}, member_id=member, generation=1)

    records = coordinator.advance(8 * DAY_MS)

    assert records == [offset_tombstone("g", TopicPartition("u", 0))]


def test_pending_offsets_keep_the_group_and_the_offset() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1})
    transactional_commit(coordinator, 0, 9)

    assert coordinator.advance(8 * DAY_MS) == []


def test_an_explicit_expiry_of_an_old_client_is_kept() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 5}, retention_ms=DAY_MS, version=4)
    coordinator.reload()

    assert coordinator.advance(DAY_MS - 600_000) == []
    assert coordinator.advance(600_000) == [
        offset_tombstone("g", TopicPartition("t", 0)),
        group_tombstone("g"),
    ]


def test_a_snapshot_gives_the_same_offsets() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("u", 0): 2})
    transactional_commit(coordinator, 0, 9)
    coordinator.commit({("t", 0): 3})
    coordinator.log = list(coordinator.machine.snapshot())
    coordinator.reload()

    assert coordinator.offsets() == {("t", 0): 3, ("u", 0): 2}
    end_transaction(coordinator, committed=True)
    assert coordinator.offsets() == {("t", 0): 3, ("u", 0): 2}
