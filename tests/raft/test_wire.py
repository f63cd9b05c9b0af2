"""Every message survives the wire: to an entity, to bytes and back."""

import types
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.types import BrokerId, TopicName
from kio.schema.vote.v2.request import PartitionData, TopicData
from kio.schema.vote.v2.request import VoteRequest as WireVoteRequest
from kio.static.primitive import i32, i64

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.reader import read_entity
from ottla.protocol.writer import write_entity
from ottla.raft import messages
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import Endpoint, ReplicaKey
from ottla.raft.wire_requests import request_from_wire, request_to_wire
from ottla.raft.wire_responses import response_from_wire, response_to_wire

LISTENER = "CONTROLLER"
SMALL = st.integers(0, 2**15 - 1)
KEYS = st.builds(
    ReplicaKey,
    SMALL,
    st.none() | st.integers(1, 2**128 - 1).map(lambda number: UUID(int=number)),
)
ENDPOINTS = st.builds(Endpoint, st.just(LISTENER), st.just("host"), st.integers(1, 65535))
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: SMALL,
    bool: st.booleans(),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=20),
    ReplicaKey: KEYS,
    OffsetAndEpoch: st.builds(OffsetAndEpoch, SMALL, SMALL),
    ErrorCode: st.sampled_from([ErrorCode.none, ErrorCode.fenced_leader_epoch]),
    type(None): st.none(),
    messages.LogRange: st.nothing(),
    messages.SnapshotRange: st.nothing(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) is tuple:
        items = ENDPOINTS if get_args(hint)[0] is Endpoint else KEYS
        return st.lists(items, max_size=1).map(tuple)
    if get_origin(hint) in (types.UnionType, Union):
        return st.one_of(*map(values, get_args(hint)))
    return VALUES[hint]


def message_of(message_type: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(message_type)
    names = message_type._fields
    return st.builds(message_type, **{name: values(hints[name]) for name in names})


def over_the_wire(entity: Any) -> Any:
    out = bytearray()
    write_entity(out, entity)
    read, position = read_entity(type(entity), bytes(out))
    assert position == len(out)
    return read


@settings(max_examples=100)
@given(message=st.one_of(*map(message_of, get_args(messages.Request))))
def test_requests(message: messages.Request) -> None:
    assert request_from_wire(over_the_wire(request_to_wire(message))) == message


@settings(max_examples=100)
@given(message=st.one_of(*map(message_of, get_args(messages.Response))))
def test_responses(message: messages.Response) -> None:
    assert response_from_wire(over_the_wire(response_to_wire(message)), LISTENER) == message


@pytest.mark.parametrize("response_type", get_args(messages.ReplicaResponse))
def test_another_cluster_is_told_at_the_top(response_type: Any) -> None:
    response = response_type(
        error_code=ErrorCode.inconsistent_cluster_id, leader_id=1, leader_epoch=2
    )

    entity: Any = response_to_wire(response)

    assert entity.error_code is ErrorCode.inconsistent_cluster_id
    read: Any = response_from_wire(over_the_wire(entity), LISTENER)
    assert read.error_code is ErrorCode.inconsistent_cluster_id
    assert read.leader_id == messages.NOBODY


def test_a_request_about_another_partition_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not about one partition"):
        request_from_wire(WireVoteRequest(topics=()))
    other = TopicData(topic_name=TopicName("other"), partitions=(_partition(),))
    with pytest.raises(ProtocolError, match="not about the partition of the metadata"):
        request_from_wire(WireVoteRequest(topics=(other,)))


def _partition() -> PartitionData:
    return PartitionData(
        partition_index=i32(0),
        replica_epoch=i32(0),
        replica_id=BrokerId(1),
        replica_directory_id=None,
        voter_directory_id=None,
        last_offset_epoch=i32(0),
        last_offset=i64(0),
        pre_vote=False,
    )
