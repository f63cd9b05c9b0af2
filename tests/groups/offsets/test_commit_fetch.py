"""OffsetCommit and OffsetFetch."""

from uuid import UUID

from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from kio.schema.types import GroupId
from kio.static.primitive import i32, i64
from tests.groups.kit import Coordinator
from tests.groups.offsets.kit import error_of, value

from ottla.groups.offsets.records import OffsetCommitRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.hot_offset_commit import TopicResult
from ottla.protocol.messages.offset_fetch import OffsetFetchResponseGroup, OffsetFetchResponseTopics
from ottla.protocol.topics import TopicPartition

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
