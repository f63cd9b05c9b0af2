"""Answers DescribeQuorum: the leader, the voters, the observers, and their log ends."""

from kio.schema.describe_quorum.v2 import response as described
from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64, u16

from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.raft.node import RaftNode
from ottla.raft.states import Leader
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.raft.wire_requests import METADATA_PARTITION, METADATA_TOPIC, metadata_partition
from ottla.runtime.raft_driver import RaftDriver


def describe_quorum(
    driver: RaftDriver, core: RaftNode, state: Leader, request: DescribeQuorumRequest
) -> described.DescribeQuorumResponse:
    """As the leader sees it. ApiError for any other partition."""
    try:
        metadata_partition(request.topics)
    except ProtocolError as error:
        raise ApiError(ErrorCode.unknown_topic_or_partition, str(error)) from error
    voters = core.voters.latest
    observers = [key for key in state.progress if key not in voters]
    partition = described.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=ErrorCode.none,
        error_message=None,
        leader_id=BrokerId(state.leader_id),
        leader_epoch=i32(state.epoch),
        high_watermark=i64(core.high_watermark),
        current_voters=tuple(_replica(driver, state, voter.key) for voter in voters),
        observers=tuple(_replica(driver, state, key) for key in sorted(observers, key=str)),
    )
    return described.DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=None,
        topics=(described.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        nodes=_nodes(voters),
    )


def _replica(driver: RaftDriver, state: Leader, key: ReplicaKey) -> described.ReplicaState:
    if key.id == state.leader_id:
        end_offset = driver.log.end_offset
        fetched_ms = caught_up_ms = driver.time_of_day_ms(driver.now_ms())
    elif (progress := state.progress.get(key)) is not None:
        end_offset = progress.fetch_offset
        fetched_ms = driver.time_of_day_ms(progress.last_fetch_ms)
        caught_up_ms = fetched_ms if progress.caught_up else -1
    else:
        end_offset = fetched_ms = caught_up_ms = -1
    return described.ReplicaState(
        replica_id=BrokerId(key.id),
        replica_directory_id=key.directory_id,
        log_end_offset=i64(end_offset),
        last_fetch_timestamp=i64(fetched_ms),
        last_caught_up_timestamp=i64(caught_up_ms),
    )


def _nodes(voters: VoterSet) -> tuple[described.Node, ...]:
    return tuple(
        described.Node(
            node_id=BrokerId(voter.key.id),
            listeners=tuple(
                described.Listener(name=name, host=host, port=u16(port))
                for name, host, port in voter.endpoints
            ),
        )
        for voter in voters
    )
