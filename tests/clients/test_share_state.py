"""The APIs that brokers use to store share-partition state at the share coordinator."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.delete_share_group_state.v0 import request as delete
from kio.schema.describe_topic_partitions.v0.request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.initialize_share_group_state.v0 import request as initialize
from kio.schema.read_share_group_state.v0 import request as read
from kio.schema.read_share_group_state_summary.v0 import request as summary_v0
from kio.schema.read_share_group_state_summary.v1 import request as summary
from kio.schema.types import TopicName
from kio.schema.write_share_group_state.v0 import request as write_v0
from kio.schema.write_share_group_state.v1 import request as write
from kio.static.primitive import i8, i16, i32, i64
from tests.clients.conftest import CreateTopic
from tests.clients.wire import Wire

from ottla.groups.share.state_coordinator import SharePartitionKey

AVAILABLE, ACKNOWLEDGED, ARCHIVED = i8(0), i8(2), i8(4)
NO_TOPIC = UUID(int=0)
ELSEWHERE = UUID(int=7)  # The id of a topic that does not exist.
SHARE = i8(2)

Batch = tuple[int, int, i8, int]  # First and last offset, delivery state and count.


class Coordinator:
    """Each call is for one share-partition and returns its part of the response."""

    def __init__(self, wire: Wire, group: str, topic: str) -> None:
        self._wire = wire
        self.group = group
        self.topic_id = self._topic_id(topic)

    def _topic_id(self, topic: str) -> UUID:
        request = DescribeTopicPartitionsRequest(
            topics=(TopicRequest(name=TopicName(topic)),),
            response_partition_limit=i32(10),
            cursor=None,
        )
        found = self._wire.call(request).topics[0].topic_id
        assert isinstance(found, UUID)
        return found

    def wait_until_ready(self) -> None:
        """The first request creates the state topic."""
        key = SharePartitionKey(self.group, self.topic_id, 0).coordinator_key
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=(key,))
        while self._wire.call(request).coordinators[0].error_code is not ErrorCode.none:
            pass
        while self.summary().error_code is not ErrorCode.none:
            pass

    def _call(
        self,
        schema: Any,
        name: str,
        topic_id: UUID | None,
        partition: int,
        batches: tuple[Batch, ...] | None = None,
        **values: Any,
    ) -> Any:
        data: Any = {"partition": i32(partition), **values}
        if batches is not None:
            data["state_batches"] = tuple(
                schema.StateBatch(
                    first_offset=i64(first),
                    last_offset=i64(last),
                    delivery_state=state,
                    delivery_count=i16(count),
                )
                for first, last, state, count in batches
            )
        partition_key = self.topic_id if topic_id is None else topic_id
        topic_type = next(
            getattr(schema, each)
            for each in vars(schema)
            if each.endswith(("StateData", "SummaryData"))
        )
        topic = topic_type(topic_id=partition_key, partitions=(schema.PartitionData(**data),))
        request_type = getattr(schema, f"{name}Request")
        response = self._wire.call(request_type(group_id=self.group, topics=(topic,)))
        if not response.results:
            return None
        (result,) = response.results
        assert result.topic_id in {partition_key, None}
        (answer,) = result.partitions
        assert answer.partition == partition
        return answer

    def initialize(
        self, state_epoch: int, start_offset: int, topic_id: UUID | None = None, partition: int = 0
    ) -> ErrorCode:
        answer = self._call(
            initialize,
            "InitializeShareGroupState",
            topic_id,
            partition,
            state_epoch=i32(state_epoch),
            start_offset=i64(start_offset),
        )
        code: ErrorCode = answer.error_code
        return code

    def read(self, leader_epoch: int, topic_id: UUID | None = None, partition: int = 0) -> Any:
        return self._call(
            read, "ReadShareGroupState", topic_id, partition, leader_epoch=i32(leader_epoch)
        )

    def summary(
        self, leader_epoch: int = 0, topic_id: UUID | None = None, partition: int = 0
    ) -> Any:
        name = "ReadShareGroupStateSummary"
        epoch = i32(leader_epoch)
        return self._call(summary, name, topic_id, partition, leader_epoch=epoch)

    def write(
        self,
        *batches: Batch,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        start_offset: int = -1,
        done_count: int = 0,
        topic_id: UUID | None = None,
        partition: int = 0,
    ) -> ErrorCode:
        answer = self._call(
            write,
            "WriteShareGroupState",
            topic_id,
            partition,
            batches,
            state_epoch=i32(state_epoch),
            leader_epoch=i32(leader_epoch),
            start_offset=i64(start_offset),
            delivery_complete_count=i32(done_count),
        )
        code: ErrorCode = answer.error_code
        return code

    def delete(self, topic_id: UUID | None = None, partition: int = 0) -> ErrorCode:
        code: ErrorCode = self._call(
            delete, "DeleteShareGroupState", topic_id, partition
        ).error_code
        return code


@pytest.fixture
def coordinator(wire: Wire, create_topic: CreateTopic, new_name: Callable[[], str]) -> Coordinator:
    coordinator = Coordinator(wire, new_name(), create_topic())
    coordinator.wait_until_ready()
    return coordinator


def batches_of(answer: Any) -> list[Batch]:
    return [
        (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in answer.state_batches
    ]


def test_what_a_leader_writes_the_next_one_reads(coordinator: Coordinator) -> None:
    assert coordinator.initialize(1, 5) is ErrorCode.none
    assert coordinator.write((5, 9, ACKNOWLEDGED, 1), (10, 12, AVAILABLE, 2)) is ErrorCode.none
    assert coordinator.write((10, 10, ARCHIVED, 3), start_offset=7) is ErrorCode.none

    answer = coordinator.read(1)

    assert (answer.error_code, answer.state_epoch, answer.start_offset) == (ErrorCode.none, 1, 7)
    assert batches_of(answer) == [
        (7, 9, ACKNOWLEDGED, 1),
        (10, 10, ARCHIVED, 3),
        (11, 12, AVAILABLE, 2),
    ]


def test_a_summary_says_how_far_the_group_is(coordinator: Coordinator) -> None:
    coordinator.initialize(1, 0)
    coordinator.write((0, 4, ACKNOWLEDGED, 1), leader_epoch=2, start_offset=5, done_count=3)

    answer = coordinator.summary(2)

    assert answer.error_code is ErrorCode.none
    assert (answer.state_epoch, answer.start_offset) == (1, 5)
    assert answer.delivery_complete_count == 3


def test_the_first_versions(coordinator: Coordinator, wire: Wire) -> None:
    coordinator.initialize(1, 0)
    old_write = write_v0.WriteShareGroupStateRequest(
        group_id=coordinator.group,
        topics=(
            write_v0.WriteStateData(
                topic_id=coordinator.topic_id,
                partitions=(
                    write_v0.PartitionData(
                        partition=i32(0),
                        state_epoch=i32(1),
                        leader_epoch=i32(3),
                        start_offset=i64(8),
                        state_batches=(),
                    ),
                ),
            ),
        ),
    )
    assert wire.call(old_write).results[0].partitions[0].error_code is ErrorCode.none
    old_summary = summary_v0.ReadShareGroupStateSummaryRequest(
        group_id=coordinator.group,
        topics=(
            summary_v0.ReadStateSummaryData(
                topic_id=coordinator.topic_id,
                partitions=(summary_v0.PartitionData(partition=i32(0), leader_epoch=i32(3)),),
            ),
        ),
    )
    assert wire.call(old_summary).results[0].partitions[0].start_offset == 8


def test_epochs_fence_those_that_were_overtaken(coordinator: Coordinator) -> None:
    coordinator.initialize(2, 0)
    assert coordinator.read(5).error_code is ErrorCode.none

    assert coordinator.read(4).error_code is ErrorCode.fenced_leader_epoch
    assert coordinator.write(state_epoch=2, leader_epoch=4) is ErrorCode.fenced_leader_epoch
    assert coordinator.write(state_epoch=1, leader_epoch=5) is ErrorCode.fenced_state_epoch
    assert coordinator.write(state_epoch=1, leader_epoch=4) is ErrorCode.fenced_leader_epoch
    assert coordinator.initialize(1, 0) is ErrorCode.fenced_state_epoch
    assert coordinator.write(state_epoch=2, leader_epoch=5) is ErrorCode.none


def test_state_that_is_made_anew_begins_anew(coordinator: Coordinator) -> None:
    coordinator.initialize(1, 0)
    coordinator.write((0, 4, ACKNOWLEDGED, 1), start_offset=5)

    assert coordinator.initialize(2, 3) is ErrorCode.none

    answer = coordinator.read(0)
    assert (answer.state_epoch, answer.start_offset, batches_of(answer)) == (2, 3, [])


def test_without_state_there_is_nothing_to_read_or_write(coordinator: Coordinator) -> None:
    assert coordinator.read(0).error_code is ErrorCode.invalid_request
    assert coordinator.write() is ErrorCode.invalid_request
    answer = coordinator.summary()
    assert (answer.error_code, answer.start_offset) == (ErrorCode.none, -1)
    assert (answer.state_epoch, answer.leader_epoch) == (0, 0)
    assert answer.delivery_complete_count == -1


def test_deleted_state_is_gone(coordinator: Coordinator) -> None:
    assert coordinator.delete() is ErrorCode.none
    coordinator.initialize(1, 0)

    assert coordinator.delete() is ErrorCode.none

    assert coordinator.read(0).error_code is ErrorCode.invalid_request
    assert coordinator.initialize(0, 0) is ErrorCode.none


@pytest.mark.parametrize(
    ("topic_id", "partition", "code"),
    [
        (NO_TOPIC, 0, ErrorCode.unknown_topic_or_partition),
        (None, -1, ErrorCode.invalid_request),
        (None, 99, ErrorCode.unknown_topic_or_partition),
        (ELSEWHERE, 0, ErrorCode.unknown_topic_or_partition),
    ],
    ids=["no topic", "negative partition", "no such partition", "no such topic"],
)
def test_places_that_are_not_there(
    coordinator: Coordinator, topic_id: UUID | None, partition: int, code: ErrorCode
) -> None:
    partition_key: Any = {"topic_id": topic_id, "partition": partition}
    assert coordinator.initialize(1, 0, **partition_key) is code
    assert coordinator.summary(**partition_key).error_code is code
    assert coordinator.delete(**partition_key) is code
    assert coordinator.read(0, **partition_key).error_code is ErrorCode.invalid_request
    assert coordinator.write(**partition_key) is ErrorCode.invalid_request


def test_a_request_without_a_group_or_topics_gets_no_results(
    coordinator: Coordinator, wire: Wire
) -> None:
    topic = delete.DeleteStateData(topic_id=coordinator.topic_id, partitions=())
    for group, topics in (("", (topic,)), (coordinator.group, ())):
        request = delete.DeleteShareGroupStateRequest(group_id=group, topics=topics)
        assert wire.call(request).results == ()


def test_batches_of_one_write_may_overlap(coordinator: Coordinator) -> None:
    coordinator.initialize(1, 0)

    assert coordinator.write((0, 9, ACKNOWLEDGED, 1), (7, 12, ARCHIVED, 2)) is ErrorCode.none

    assert batches_of(coordinator.read(0)) == [(0, 6, ACKNOWLEDGED, 1), (7, 12, ARCHIVED, 2)]


@pytest.mark.usefixtures("own_broker")  # Kafka accepts them, and may fail to read them.
@pytest.mark.parametrize(
    "batch",
    [(9, 5, ACKNOWLEDGED, 1), (5, 9, i8(77), 1), (-5, -2, ACKNOWLEDGED, 1), (5, 9, AVAILABLE, -1)],
    ids=["ends before it begins", "unknown state", "negative offsets", "negative count"],
)
def test_batches_that_make_no_sense_are_refused(coordinator: Coordinator, batch: Batch) -> None:
    coordinator.initialize(1, 0)

    assert coordinator.write((0, 1, ACKNOWLEDGED, 1), batch) is ErrorCode.invalid_request
    assert batches_of(coordinator.read(0)) == []
