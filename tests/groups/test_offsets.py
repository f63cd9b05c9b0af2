"""Offsets: OffsetCommit, OffsetFetch, OffsetDelete, transactions, expiry."""

from uuid import UUID

import pytest
from kio.schema.delete_groups.v2.response import DeletableGroupResult
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i16, i32, i64
from tests.groups.kit import ALL_GROUPS, CALLER, START_MS, Coordinator, Reply, subscription

from ottla.groups.classic.records import group_tombstone
from ottla.groups.offsets import removal
from ottla.groups.offsets.records import (
    OffsetCommitRecord,
    OffsetCommitValue,
    offset_tombstone,
)
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ErrorCode
from ottla.protocol.hot_offset_commit import TopicResult
from ottla.protocol.messages.offset_fetch import OffsetFetchResponseGroup, OffsetFetchResponseTopics
from ottla.protocol.topics import TopicPartition

DAY_MS = 24 * 60 * 60 * 1000


def value(offset: int, *, topic_id: int = 1, at_ms: int = START_MS) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=offset,
        leader_epoch=7,
        metadata="",
        commit_timestamp=at_ms,
        topic_id=UUID(int=topic_id),
    )


def error_of(response: list[TopicResult]) -> ErrorCode:
    return response[0].partitions[0][1]


def transactional_commit(
    coordinator: Coordinator,
    partition: int,
    offset: int,
    *,
    producer_id: int = 5,
    epoch: int = 1,
    generation: int = -1,
    member_id: str = "",
) -> Reply:
    request = TxnOffsetCommitRequest(
        transactional_id=TransactionalId("x"),
        group_id=GroupId("g"),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(epoch),
        generation_id=i32(generation),
        member_id=member_id,
        topics=(
            TxnOffsetCommitRequestTopic(
                name=TopicName("t"),
                partitions=(
                    TxnOffsetCommitRequestPartition(
                        partition_index=i32(partition),
                        committed_offset=i64(offset),
                        committed_leader_epoch=i32(7),
                        committed_metadata=None,
                    ),
                ),
            ),
        ),
    )
    return coordinator.run(
        lambda now_ms: coordinator.machine.commit_transactional_offsets(request, 5, now_ms)
    )


def end_transaction(coordinator: Coordinator, *, committed: bool, producer_id: int = 5) -> None:
    marker = TransactionMarker(producer_id, 1, 0, committed)
    coordinator.run(lambda _: coordinator.machine.complete_transaction(marker))


def delete_offsets(coordinator: Coordinator, topic: str, partition: int) -> Reply:
    request = OffsetDeleteRequest(
        group_id=GroupId("g"),
        topics=(
            OffsetDeleteRequestTopic(
                name=TopicName(topic),
                partitions=(OffsetDeleteRequestPartition(partition_index=i32(partition)),),
            ),
        ),
    )
    return coordinator.run(lambda _: coordinator.machine.delete_offsets(request))


# Committing.


def test_a_commit_without_a_group_stores_the_offset() -> None:
    coordinator = Coordinator()

    response = coordinator.commit({("t", 0): 42})

    assert coordinator.last_records == (OffsetCommitRecord("g", TopicPartition("t", 0), value(42)),)
    assert response == [TopicResult("t", None, [(0, ErrorCode.none)])]
    assert coordinator.offsets() == {("t", 0): 42}


def test_an_unknown_topic_or_partition_is_refused_beside_others() -> None:
    coordinator = Coordinator()

    response = coordinator.commit({("t", 0): 1, ("t", 4): 2, ("nope", 0): 3, ("t", -1): 4})

    assert [topic.partitions for topic in response] == [
        [(0, ErrorCode.none)],
        [(4, ErrorCode.unknown_topic_or_partition)],
        [(0, ErrorCode.unknown_topic_or_partition)],
        [(-1, ErrorCode.unknown_topic_or_partition)],
    ]
    assert coordinator.offsets() == {("t", 0): 1}


def test_metadata_is_kept_up_to_its_limit() -> None:
    coordinator = Coordinator(offset_metadata_max_bytes=3)

    assert error_of(coordinator.commit({("t", 0): 1}, metadata="abc")) is ErrorCode.none
    too_large = coordinator.commit({("t", 0): 2}, metadata="abcd")

    assert error_of(too_large) is ErrorCode.offset_metadata_too_large
    fetched = coordinator.fetch(("t", 0)).topics[0].partitions[0]
    assert (fetched.committed_offset, fetched.metadata) == (1, "abc")


def test_null_metadata_is_stored_as_empty() -> None:
    coordinator = Coordinator()

    coordinator.commit({("t", 0): 1}, metadata=None)

    assert coordinator.fetch(("t", 0)).topics[0].partitions[0].metadata == ""


def test_a_generation_of_a_group_that_does_not_exist() -> None:
    coordinator = Coordinator()

    def commit(version: int) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.commit({("t", 0): 1}, generation=1, version=version)
        )

    assert commit(9) is ErrorCode.group_id_not_found
    assert commit(8) is ErrorCode.illegal_generation


def test_members_commit_in_their_generation_only() -> None:
    coordinator = Coordinator()
    first, _ = coordinator.stable_group()

    def commit(member_id: str, generation: int, instance: str | None = None) -> ErrorCode:
        return coordinator.refusal(
            lambda: coordinator.commit(
                {("t", 0): 1}, member_id=member_id, generation=generation, instance=instance
            )
        )

    assert commit(first, 2) is ErrorCode.illegal_generation
    assert commit("stranger", 1) is ErrorCode.unknown_member_id
    assert commit("", -1) is ErrorCode.unknown_member_id
    assert commit(first, 1, "instance") is ErrorCode.unknown_member_id
    coordinator.commit({("t", 0): 5}, member_id=first, generation=1)
    assert coordinator.offsets() == {("t", 0): 5}


def test_a_commit_is_a_sign_of_life() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()

    coordinator.advance(9_000)
    coordinator.heartbeat(second, 1)
    coordinator.commit({("t", 0): 5}, member_id=first, generation=1)
    coordinator.advance(9_000)

    assert coordinator.heartbeat(first, 1).error_code is ErrorCode.none


def test_no_commits_while_the_assignment_is_being_made() -> None:
    coordinator = Coordinator()
    member_id = coordinator.join().value.member_id
    coordinator.join(member_id)
    coordinator.advance(3_000)

    refused = coordinator.refusal(
        lambda: coordinator.commit({("t", 0): 1}, member_id=member_id, generation=1)
    )

    assert refused is ErrorCode.rebalance_in_progress


def test_members_may_commit_while_others_rejoin() -> None:
    coordinator = Coordinator()
    first, second = coordinator.stable_group()
    coordinator.join(first)

    coordinator.commit({("t", 0): 8}, member_id=second, generation=1)

    assert coordinator.offsets() == {("t", 0): 8}


# Fetching.


def test_fetch_by_partition() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 1): 42}, metadata="here")

    assert coordinator.fetch(("t", 1), ("t", 2)) == OffsetFetchResponseGroup(
        group_id=GroupId("g"),
        topics=(
            OffsetFetchResponseTopics(
                name="t",
                topic_id=None,
                partitions=(
                    OffsetFetchResponsePartitions(
                        partition_index=i32(1),
                        committed_offset=i64(42),
                        committed_leader_epoch=i32(7),
                        metadata="here",
                        error_code=ErrorCode.none,
                    ),
                    OffsetFetchResponsePartitions(
                        partition_index=i32(2),
                        committed_offset=i64(-1),
                        committed_leader_epoch=i32(-1),
                        metadata="",
                        error_code=ErrorCode.none,
                    ),
                ),
            ),
        ),
        error_code=ErrorCode.none,
    )


def test_fetch_of_an_unknown_group_has_no_offsets() -> None:
    coordinator = Coordinator()

    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}
    assert coordinator.offsets() == {}


def test_a_group_without_a_name_keeps_offsets_as_well() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 7}, group="")

    (topic,) = coordinator.fetch(("t", 0), group="").topics
    assert topic.partitions[0].committed_offset == 7
    results = coordinator.run(lambda _: coordinator.machine.delete_groups([""])).value
    assert results[0].error_code is ErrorCode.none


def test_fetch_of_everything_is_in_order() -> None:
    coordinator = Coordinator()
    coordinator.commit({("u", 1): 1, ("t", 3): 2, ("t", 0): 3})

    assert list(coordinator.offsets().items()) == [(("t", 0), 3), (("t", 3), 2), (("u", 1), 1)]


def test_offsets_of_an_earlier_topic_of_the_same_name_do_not_count() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 42})

    coordinator.catalog.create("t", 4)

    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}
    assert coordinator.offsets() == {}


def test_topics_by_id() -> None:
    coordinator = Coordinator()

    committed = coordinator.commit({("t", 0): 1, ("nope", 0): 2}, topic_ids=True, version=10)
    fetched = coordinator.fetch(("t", 0), ("nope", 0), topic_ids=True)

    assert committed == [
        TopicResult("t", UUID(int=1), [(0, ErrorCode.none)]),
        TopicResult("", None, [(0, ErrorCode.unknown_topic_id)]),
    ]
    assert [
        (topic.topic_id, topic.partitions[0].committed_offset, topic.partitions[0].error_code)
        for topic in fetched.topics
    ] == [(UUID(int=1), 1, ErrorCode.none), (None, -1, ErrorCode.unknown_topic_id)]
    assert coordinator.fetch(everything=True).topics[0].topic_id == UUID(int=1)


# Transactions.


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1})

    transactional_commit(coordinator, 0, 9)

    record = OffsetCommitRecord("g", TopicPartition("t", 0), value(9))
    assert coordinator.last_records == (Transactional(5, 1, record),)
    assert coordinator.offsets(("t", 0)) == {("t", 0): 1}
    end_transaction(coordinator, committed=True)
    assert coordinator.last_records == (TransactionMarker(5, 1, 0, True),)
    assert coordinator.offsets(("t", 0)) == {("t", 0): 9}


def test_offsets_of_an_aborted_transaction_are_gone() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)

    end_transaction(coordinator, committed=False)

    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}
    end_transaction(coordinator, committed=True)
    assert coordinator.offsets(("t", 0)) == {("t", 0): -1}


def test_a_later_plain_commit_stands_against_the_marker() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)
    coordinator.commit({("t", 0): 10})

    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 10}


def test_unstable_offsets_are_not_told_to_those_who_ask_for_stable_ones() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("t", 1): 2})
    transactional_commit(coordinator, 0, 9)

    fetched = coordinator.fetch(("t", 0), ("t", 1), require_stable=True).topics[0].partitions

    assert [(item.committed_offset, item.error_code) for item in fetched] == [
        (-1, ErrorCode.unstable_offset_commit),
        (2, ErrorCode.none),
    ]
    end_transaction(coordinator, committed=False)
    stable = coordinator.fetch(("t", 0), require_stable=True).topics[0].partitions[0]
    assert (stable.committed_offset, stable.error_code) == (1, ErrorCode.none)


def test_pending_offsets_survive_a_change_of_coordinator() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9)
    coordinator.reload()

    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 9}


def test_a_transaction_is_fenced_by_producer_epoch_and_generation() -> None:
    coordinator = Coordinator()
    transactional_commit(coordinator, 0, 9, epoch=2)

    assert coordinator.refusal(lambda: transactional_commit(coordinator, 0, 1, epoch=1)) is (
        ErrorCode.invalid_producer_epoch
    )
    assert coordinator.refusal(
        lambda: transactional_commit(coordinator, 0, 1, epoch=2, generation=3, member_id="m")
    ) is (ErrorCode.unknown_member_id)


def test_a_transaction_of_an_earlier_epoch_may_commit_what_its_member_kept() -> None:
    coordinator = Coordinator()
    coordinator.beat("m")
    coordinator.beat("n")
    coordinator.beat("m", 1)
    coordinator.beat("m", 1, owned={("t", 0), ("t", 1)})

    def commit(partition: int) -> Reply:
        return transactional_commit(coordinator, partition, 9, generation=1, member_id="m")

    assert commit(0).value.topics[0].partitions[0].error_code is ErrorCode.none
    assert coordinator.refusal(lambda: commit(2)) is ErrorCode.illegal_generation


def test_a_transaction_needs_a_generation_that_exists() -> None:
    coordinator = Coordinator()

    assert coordinator.refusal(lambda: transactional_commit(coordinator, 0, 1, generation=3)) is (
        ErrorCode.illegal_generation
    )


def test_a_transaction_of_an_anonymous_producer_may_commit_for_a_group_with_members() -> None:
    coordinator = Coordinator()
    coordinator.stable_group()

    transactional_commit(coordinator, 0, 3)
    end_transaction(coordinator, committed=True)

    assert coordinator.offsets(("t", 0)) == {("t", 0): 3}


# Removal.


def test_delete_offsets() -> None:
    coordinator = Coordinator()
    coordinator.commit({("t", 0): 1, ("t", 1): 2})

    response = delete_offsets(coordinator, "t", 0).value

    assert coordinator.last_records == (offset_tombstone("g", TopicPartition("t", 0)),)
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


def test_what_does_not_fit_one_batch_is_removed_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "BATCH_RECORDS_MAX", 3)
    coordinator = Coordinator()
    for group in ("g", "h"):
        coordinator.commit({("t", partition): 1 for partition in range(4)}, group=group)
        coordinator.commit({("u", 0): 1}, group=group)

    coordinator.run(lambda now_ms: coordinator.machine.remove_topics(["t"], now_ms))
    assert len(coordinator.last_records) == 3
    assert len(coordinator.advance(0)) == 5
    assert coordinator.offsets() == coordinator.offsets(group="h") == {("u", 0): 1}


def test_what_expires_at_once_is_removed_in_several_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "BATCH_RECORDS_MAX", 3)
    coordinator = Coordinator()
    for group in ("g", "h"):
        coordinator.commit({("t", partition): 1 for partition in range(4)}, group=group)

    coordinator.advance(8 * DAY_MS)

    assert coordinator.run(lambda _: coordinator.machine.list_groups(ALL_GROUPS)).value == ()


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
