"""The share APIs byte by byte: sessions, acquire modes, renewals, offsets (KIP-932)."""

import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_share_group_offsets.v0 import request as alter
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_share_group_offsets.v0 import request as delete
from kio.schema.describe_share_group_offsets.v1 import request as describe
from kio.schema.describe_topic_partitions.v0.request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.share_acknowledge.v1 import request as acknowledge_v1
from kio.schema.share_acknowledge.v2 import request as acknowledge_v2
from kio.schema.share_fetch.v2.request import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64
from tests.clients.conftest import CreateTopic
from tests.clients.test_share_groups import configured_group, produce
from tests.clients.wire import Wire

ACCEPT, RELEASE, RENEW = 1, 2, 4
NOWHERE = -1
BATCH_OPTIMIZED, RECORD_LIMIT = i8(0), i8(1)
MEMBER = "member"
LONG_WAIT_MS = 60_000


class Member:
    """One share group member on its own connection."""

    def __init__(self, wire: Wire, group: str, topic: str, name: str = MEMBER) -> None:
        self.wire = wire
        self.group = group
        self.topic = topic
        self.name = name
        self.epoch = 0
        self.topic_id = self._topic_id()

    def _topic_id(self) -> UUID:
        request = DescribeTopicPartitionsRequest(
            topics=(TopicRequest(name=TopicName(self.topic)),),
            response_partition_limit=i32(10),
            cursor=None,
        )
        found = self.wire.call(request).topics[0].topic_id
        assert isinstance(found, UUID)
        return found

    def heartbeat(self, epoch: int = 0) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=GroupId(self.group),
            member_id=self.name,
            member_epoch=i32(epoch),
            subscribed_topic_names=(TopicName(self.topic),) if epoch == 0 else None,
        )
        return self.wire.call(request)

    def fetch(
        self,
        *acknowledged: tuple[int, int, int],
        epoch: int | None = None,
        records_max: int = 500,
        batch_size: int = 500,
        mode: i8 = RECORD_LIMIT,
        wait_ms: int = 0,
        renew: bool = False,
        waits: bool = True,
    ) -> Any:
        """Without `waits`, the response is left for later."""
        batches = tuple(
            AcknowledgementBatch(
                first_offset=i64(first), last_offset=i64(last), acknowledge_types=(i8(kind),)
            )
            for first, last, kind in acknowledged
        )
        request = ShareFetchRequest(
            group_id=GroupId(self.group),
            member_id=self.name,
            share_session_epoch=i32(self.epoch if epoch is None else epoch),
            max_wait=i32Timedelta.parse(timedelta(milliseconds=wait_ms)),
            min_bytes=i32(0 if renew else 1),
            max_bytes=i32(0 if renew else 1 << 20),
            max_records=i32(0 if renew else records_max),
            batch_size=i32(0 if renew else batch_size),
            share_acquire_mode=mode,
            is_renew_ack=renew,
            topics=(
                FetchTopic(
                    topic_id=self.topic_id,
                    partitions=(
                        FetchPartition(partition_index=i32(0), acknowledgement_batches=batches),
                    ),
                ),
            ),
            forgotten_topics_data=(),
        )
        if epoch is None:
            self.epoch += 1
        self.wire.send(request)
        return self.wire.receive(request) if waits else None

    def acquire(
        self, *acknowledged: tuple[int, int, int], wait_ms: int = LONG_WAIT_MS, **terms: Any
    ) -> list[tuple[int, ...]]:
        """First offset, last offset and delivery count of the acquired ranges."""
        response = self.fetch(*acknowledged, wait_ms=wait_ms, **terms)
        assert response.error_code is ErrorCode.none, response
        return [
            (found.first_offset, found.last_offset, found.delivery_count)
            for topic in response.responses
            for partition in topic.partitions
            for found in partition.acquired_records
        ]

    def acknowledge(self, module: Any, first: int, last: int, kind: int, **more: Any) -> Any:
        batch = module.AcknowledgementBatch(
            first_offset=i64(first), last_offset=i64(last), acknowledge_types=(i8(kind),)
        )
        partition = module.AcknowledgePartition(
            partition_index=i32(0), acknowledgement_batches=(batch,)
        )
        request = module.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=i32(self.epoch),
            topics=(module.AcknowledgeTopic(topic_id=self.topic_id, partitions=(partition,)),),
            **more,
        )
        self.epoch += 1
        return self.wire.call(request)


@pytest.fixture
def member(
    bootstrap: str, wire: Wire, create_topic: CreateTopic, new_name: Callable[[], str]
) -> Member:
    """A member of a group that starts at the beginning of a topic with five records."""
    topic = create_topic()
    produce(bootstrap, topic, *"abcde")
    member = Member(wire, configured_group(bootstrap, new_name()), topic)
    join(member)
    return member


def await_coordinator(member: Member) -> None:
    find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(member.group,))
    while member.wire.call(find).coordinators[0].error_code is not ErrorCode.none:
        pass
    while offsets_error(member) is not ErrorCode.none:
        pass  # The coordinator is loading.


def offsets_error(member: Member) -> ErrorCode:
    asked = describe.DescribeShareGroupOffsetsRequestGroup(
        group_id=GroupId(member.group), topics=None
    )
    response = member.wire.call(describe.DescribeShareGroupOffsetsRequest(groups=(asked,)))
    return ErrorCode(response.groups[0].error_code)


def join(member: Member) -> None:
    """Waits until its partition is assigned."""
    await_coordinator(member)
    joined = member.heartbeat()
    while joined.error_code is not ErrorCode.none or not joined.assignment.topic_partitions:
        assert joined.error_code in {ErrorCode.none, ErrorCode.coordinator_load_in_progress}
        joined = member.heartbeat()  # Kafka assigns partitions once their state is initialized.
    (assigned,) = joined.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (member.topic_id, (0,))


def test_a_heartbeat_without_news_assigns_nothing(member: Member) -> None:
    response = member.heartbeat(member.heartbeat().member_epoch)

    assert response.error_code is ErrorCode.none
    assert response.assignment is None


@pytest.mark.usefixtures("own_broker")  # Kafka releases after fetching.
def test_a_record_limit_cuts_and_acknowledging_goes_on(member: Member) -> None:
    assert member.acquire(records_max=2) == [(0, 1, 1)]
    assert member.acquire((0, 0, ACCEPT), (1, 1, RELEASE), records_max=2) == [(1, 1, 2), (2, 2, 1)]


@pytest.mark.parametrize(
    ("mode", "batch_size", "acquired"),
    [
        (BATCH_OPTIMIZED, 1, [(offset, offset, 1) for offset in range(5)]),
        (BATCH_OPTIMIZED, 2, [(0, 1, 1), (2, 3, 1), (4, 4, 1)]),
        (BATCH_OPTIMIZED, 9, [(0, 4, 1)]),
        (RECORD_LIMIT, 2, [(0, 4, 1)]),
    ],
)
def test_ranges_have_about_the_batch_size(
    member: Member, mode: i8, batch_size: int, acquired: list[tuple[int, ...]]
) -> None:
    assert member.acquire(mode=mode, batch_size=batch_size) == acquired


@pytest.mark.usefixtures("own_broker")  # Kafka returns UNKNOWN_SERVER_ERROR.
def test_an_acquire_mode_that_nobody_knows_is_refused(member: Member) -> None:
    assert member.fetch(mode=i8(7)).error_code is ErrorCode.invalid_request


def test_batches_are_sent_whole_and_only_those_that_were_acquired(member: Member) -> None:
    response = member.fetch(records_max=2, wait_ms=LONG_WAIT_MS)

    (partition,) = response.responses[0].partitions
    content = partition.records
    base_offsets, position = [], 0
    while position < len(content):
        base_offset, size = struct.unpack_from(">qi", content, position)
        base_offsets.append(base_offset)
        position += 12 + size
    assert base_offsets == [0, 1]
    assert response.acquisition_lock_timeout == timedelta(seconds=30)


def test_two_members_have_different_records(bootstrap: str, member: Member) -> None:
    with Wire(bootstrap) as wire:
        other = Member(wire, member.group, member.topic, "other")
        other.heartbeat()
        assert member.acquire(records_max=2) == [(0, 1, 1)]
        assert other.acquire(records_max=2) == [(2, 3, 1)]
    # The other's connection has ended, so its records are free.
    assert member.acquire() in ([(2, 3, 2), (4, 4, 1)], [(4, 4, 1)])


def test_renewing_keeps_the_records_and_fetches_nothing(member: Member) -> None:
    assert member.acquire(records_max=2) == [(0, 1, 1)]
    assert member.acquire((0, 1, RENEW), renew=True, wait_ms=0) == []
    response = member.acknowledge(acknowledge_v2, 0, 1, RENEW, is_renew_ack=True)
    assert response.responses[0].partitions[0].error_code is ErrorCode.none


def test_a_group_can_do_without_renewals(bootstrap: str, member: Member) -> None:
    configured_group(bootstrap, member.group, **{"share.renew.acknowledge.enable": "false"})
    assert member.acquire(records_max=2) == [(0, 1, 1)]

    response = member.acknowledge(acknowledge_v2, 0, 1, RENEW, is_renew_ack=True)

    assert response.responses[0].partitions[0].error_code is ErrorCode.invalid_record_state


@pytest.mark.parametrize(
    ("module", "more"), [(acknowledge_v1, {}), (acknowledge_v2, {"is_renew_ack": False})]
)
def test_a_request_that_renews_has_to_say_so(
    member: Member, module: Any, more: dict[str, bool]
) -> None:
    assert member.acquire(records_max=2) == [(0, 1, 1)]

    response = member.acknowledge(module, 0, 1, RENEW, **more)

    assert response.error_code is ErrorCode.none
    assert response.responses[0].partitions[0].error_code is ErrorCode.invalid_request
    fetched = member.fetch((0, 1, RENEW), wait_ms=LONG_WAIT_MS).responses[0].partitions[0]
    assert fetched.acknowledge_error_code == ErrorCode.invalid_request.value
    assert fetched.acquired_records[0].first_offset == 2


def test_acknowledging_alone(member: Member) -> None:
    member.acquire(records_max=2)
    for offset, expected in (
        (0, ErrorCode.none),
        (0, ErrorCode.none),  # Before the start offset everything is done.
        (4, ErrorCode.invalid_request),
    ):
        response = member.acknowledge(acknowledge_v1, offset, offset, ACCEPT)
        assert response.responses[0].partitions[0].error_code is expected


@pytest.mark.usefixtures("own_broker")  # Kafka releases after fetching.
def test_sessions(member: Member) -> None:
    assert member.fetch(epoch=3).error_code is ErrorCode.share_session_not_found
    member.acquire(records_max=2)
    assert member.fetch(epoch=7).error_code is ErrorCode.invalid_share_session_epoch
    assert member.fetch((0, 0, ACCEPT), epoch=0).error_code is ErrorCode.invalid_request
    closed = member.fetch((0, 0, ACCEPT), epoch=-1)
    assert closed.error_code is ErrorCode.none
    assert closed.responses[0].partitions[0].acknowledge_error_code == 0
    member.epoch = 0
    # The rest was released when its session was closed.
    assert member.acquire(records_max=2) == [(1, 1, 2), (2, 2, 1)]


@pytest.mark.usefixtures("own_broker")  # Kafka moves the start later.
def test_describing_setting_and_deleting_offsets(member: Member) -> None:
    member.acquire(records_max=3)
    member.acquire((0, 1, ACCEPT), records_max=1)
    assert described(member) == (2, 3)
    assert altered(member, 1) is ErrorCode.non_empty_group

    member.fetch(epoch=-1)
    member.heartbeat(-1)
    assert altered(member, 1) is ErrorCode.none
    assert described(member) == (1, 4)

    request = delete.DeleteShareGroupOffsetsRequest(
        group_id=GroupId(member.group),
        topics=(delete.DeleteShareGroupOffsetsRequestTopic(topic_name=TopicName(member.topic)),),
    )
    assert member.wire.call(request).responses[0].error_code is ErrorCode.none
    again = member.wire.call(request).responses[0]
    assert again.error_code is ErrorCode.unknown_topic_or_partition


def test_offsets_of_a_group_that_does_not_exist_yet(member: Member, wire: Wire) -> None:
    newcomer = Member(wire, f"{member.group}-2", member.topic)
    assert described(newcomer)[0] == NOWHERE
    assert altered(newcomer, 3) is ErrorCode.none
    assert described(newcomer) == (3, 2)
    assert altered(newcomer, -1) is ErrorCode.none
    assert described(newcomer)[0] == NOWHERE


@pytest.mark.usefixtures("own_broker")  # In Kafka the leader goes on with what it has.
def test_altered_offsets_hold(member: Member) -> None:
    member.acquire(records_max=3)
    member.acquire((0, 2, ACCEPT), records_max=1)
    member.fetch(epoch=-1)
    member.heartbeat(-1)
    altered(member, 1)

    member.heartbeat()
    member.epoch = 0
    assert member.acquire(records_max=10) == [(1, 4, 1)]


@pytest.mark.usefixtures("own_broker")  # In Kafka the leader goes on with what it has.
def test_a_deleted_group_begins_anew(member: Member) -> None:
    member.acquire(records_max=3)
    member.acquire((0, 2, ACCEPT), records_max=1)
    member.fetch(epoch=-1)
    request = DeleteGroupsRequest(groups_names=(GroupId(member.group),))
    assert member.wire.call(request).results[0].error_code is ErrorCode.non_empty_group
    member.heartbeat(-1)
    assert member.wire.call(request).results[0].error_code is ErrorCode.none

    member.heartbeat()
    member.epoch = 0
    assert member.acquire(records_max=10) == [(0, 4, 1)]


def test_groups_are_listed_and_described(member: Member) -> None:
    listed = member.wire.call(ListGroupsRequest(states_filter=(), types_filter=("share",)))
    found = {group.group_id: (group.group_type, group.group_state) for group in listed.groups}
    assert found[member.group] == ("share", "Stable")

    request = ShareGroupDescribeRequest(
        group_ids=(GroupId(member.group), GroupId("no-such-group")),
        include_authorized_operations=False,
    )
    described = {group.group_id: group for group in member.wire.call(request).groups}
    assert [each.member_id for each in described[member.group].members] == [MEMBER]
    assert described["no-such-group"].error_code is ErrorCode.group_id_not_found


def test_the_coordinator_of_a_share_partition(member: Member) -> None:
    keys = (f"{member.group}:AAAAAAAAAAAAAAAAAAAAAQ:0",)
    request = FindCoordinatorRequest(key_type=i8(2), coordinator_keys=keys)
    (found,) = member.wire.call(request).coordinators
    assert found.error_code is ErrorCode.none
    malformed = FindCoordinatorRequest(key_type=i8(2), coordinator_keys=("group",))
    (refused,) = member.wire.call(malformed).coordinators
    assert refused.error_code is ErrorCode.invalid_request


def described(member: Member) -> tuple[int, int]:
    """Start offset and lag."""
    asked = describe.DescribeShareGroupOffsetsRequestGroup(
        group_id=GroupId(member.group), topics=None
    )
    request = describe.DescribeShareGroupOffsetsRequest(groups=(asked,))
    (group,) = member.wire.call(request).groups
    assert group.error_code is ErrorCode.none
    if not group.topics:
        return NOWHERE, NOWHERE
    (partition,) = group.topics[0].partitions
    return partition.start_offset, partition.lag


def altered(member: Member, offset: int) -> ErrorCode:
    partition = alter.AlterShareGroupOffsetsRequestPartition(
        partition_index=i32(0), start_offset=i64(offset)
    )
    topic = alter.AlterShareGroupOffsetsRequestTopic(
        topic_name=TopicName(member.topic), partitions=(partition,)
    )
    response = member.wire.call(
        alter.AlterShareGroupOffsetsRequest(group_id=GroupId(member.group), topics=(topic,))
    )
    if response.error_code is not ErrorCode.none:
        return ErrorCode(response.error_code)
    return ErrorCode(response.responses[0].partitions[0].error_code)


@pytest.mark.usefixtures("own_broker")  # Kafka moves the start later.
def test_a_fetch_that_waits_acquires_nothing_for_a_consumer_that_is_gone(
    bootstrap: str, member: Member
) -> None:
    assert member.acquire() == [(0, 4, 1)]
    member.fetch((0, 4, ACCEPT), wait_ms=LONG_WAIT_MS, waits=False)
    with Wire(bootstrap) as wire:
        other = Member(wire, member.group, member.topic, "other")
        while described(other)[0] != 5:
            pass  # Its acknowledgements are stored before it waits.
        member.wire.close_half()
        produce(bootstrap, member.topic, "f")  # Sent by a producer that connects first.
        other.heartbeat()
        assert other.acquire() == [(5, 5, 1)]
