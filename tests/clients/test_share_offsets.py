"""DescribeShareGroupOffsets for a partition, from before a group reads it to its end."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from kio.schema.describe_share_group_offsets.v1 import request as describe
from kio.schema.errors import ErrorCode
from kio.schema.share_acknowledge.v1 import request as acknowledge_v1
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32
from tests.clients.conftest import CreateTopic
from tests.clients.test_share_groups import configured_group, produce
from tests.clients.test_share_wire import Member, altered, await_coordinator, join
from tests.clients.wire import Wire

GAP, ACCEPT, RELEASE = range(3)


class Described(NamedTuple):
    start_offset: int
    leader_epoch: int
    lag: int


NOTHING = Described(-1, 0, -1)


@pytest.fixture
def member(
    bootstrap: str, wire: Wire, create_topic: CreateTopic, new_name: Callable[[], str]
) -> Member:
    """A member that has not joined, with an empty topic."""
    member = Member(wire, configured_group(bootstrap, new_name()), create_topic())
    await_coordinator(member)
    return member


def describe_partition(member: Member, topic: str = "", partition: int = 0) -> Described:
    """Describes one requested partition."""
    asked = describe.DescribeShareGroupOffsetsRequestTopic(
        topic_name=TopicName(topic or member.topic), partitions=(i32(partition),)
    )
    group = describe.DescribeShareGroupOffsetsRequestGroup(
        group_id=GroupId(member.group), topics=(asked,)
    )
    answer = member.wire.call(describe.DescribeShareGroupOffsetsRequest(groups=(group,)))
    ((found,),) = (each.partitions for each in answer.groups[0].topics)
    assert answer.groups[0].error_code is ErrorCode.none
    assert (found.error_code, found.error_message) == (ErrorCode.none, None)
    return Described(found.start_offset, found.leader_epoch, found.lag)


def listed(member: Member) -> list[tuple[str, int]]:
    """The partitions in a response to a request for all."""
    group = describe.DescribeShareGroupOffsetsRequestGroup(
        group_id=GroupId(member.group), topics=None
    )
    answer = member.wire.call(describe.DescribeShareGroupOffsetsRequest(groups=(group,)))
    assert answer.groups[0].error_code is ErrorCode.none
    return [
        (topic.topic_name, partition.partition_index)
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    ]


def test_before_a_group_reads(bootstrap: str, member: Member) -> None:
    assert describe_partition(member) == NOTHING
    assert listed(member) == []
    join(member)
    assert describe_partition(member) == NOTHING
    assert listed(member) == [(member.topic, 0)]
    produce(bootstrap, member.topic, *"abc")
    assert describe_partition(member) == NOTHING


def test_what_does_not_exist(member: Member) -> None:
    join(member)
    assert describe_partition(member, "no-such-topic") == NOTHING
    assert describe_partition(member, partition=7) == NOTHING


@pytest.mark.usefixtures("own_broker")  # Kafka lists it from the first acknowledgement on.
def test_an_empty_partition_that_was_fetched(member: Member) -> None:
    join(member)
    assert member.acquire(wait_ms=0) == []
    assert describe_partition(member) == Described(0, 0, 0)


def acknowledged(bootstrap: str, member: Member) -> Iterator[Described]:
    """The description after each acknowledgement, of six records, then eight."""
    join(member)
    produce(bootstrap, member.topic, *"abcdef")
    assert member.acquire(records_max=4) == [(0, 3, 1)]
    for offset, kind in ((2, ACCEPT), (0, ACCEPT), (1, GAP), (3, RELEASE)):
        assert acknowledge(member, offset, kind) is ErrorCode.none
        yield describe_partition(member)
    produce(bootstrap, member.topic, *"gh")
    yield describe_partition(member)


def acknowledge(member: Member, offset: int, kind: int) -> ErrorCode:
    response = member.acknowledge(acknowledge_v1, offset, offset, kind)
    return ErrorCode(response.responses[0].partitions[0].error_code)


def test_the_lag_as_records_are_acknowledged(bootstrap: str, member: Member) -> None:
    found = [
        (partition.leader_epoch, partition.lag) for partition in acknowledged(bootstrap, member)
    ]
    assert found == [(0, 5), (0, 4), (0, 3), (0, 3), (0, 5)]


@pytest.mark.usefixtures("own_broker")  # Kafka moves the start with the next acknowledgement.
def test_the_start_as_records_are_acknowledged(bootstrap: str, member: Member) -> None:
    found = [partition.start_offset for partition in acknowledged(bootstrap, member)]
    assert found == [0, 1, 3, 3, 3]


def test_a_partition_that_was_read_to_its_end(bootstrap: str, member: Member) -> None:
    join(member)
    produce(bootstrap, member.topic, "a")
    assert member.acquire() == [(0, 0, 1)]
    assert acknowledge(member, 0, ACCEPT) is ErrorCode.none
    assert describe_partition(member).lag == 0


def test_an_offset_that_was_set(bootstrap: str, member: Member) -> None:
    produce(bootstrap, member.topic, *"abc")
    assert altered(member, 1) is ErrorCode.none
    assert describe_partition(member) == Described(1, 0, 2)
    assert listed(member) == [(member.topic, 0)]
