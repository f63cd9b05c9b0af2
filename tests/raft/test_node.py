"""A node's responses to wrong, late or damaged requests."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from tests.raft.faults import key_of
from tests.raft.memory_log import MemoryLog

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.config import RaftConfig
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    LogRange,
    Message,
    Request,
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from ottla.raft.node import RaftNode
from ottla.raft.quorum import Identity
from ottla.raft.quorum_state import QuorumState
from ottla.raft.ready import Ready
from ottla.raft.states import Role
from ottla.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.records.batch import assign
from ottla.records.builder import Record, build_batch

CONFIG = RaftConfig(election_timeout_ms=500, fetch_timeout_ms=1000)


class Node:
    """Node 1, whose log is in memory and always synced."""

    def __init__(
        self, *voters: int, state: QuorumState | None = None, committed: Sequence[bytes] = ()
    ) -> None:
        self.log = MemoryLog()
        for each in committed:
            self.log.append(bytearray(each))
        voter_set = VoterSet.of(Voter(key_of(number)) for number in voters)
        self.node = RaftNode(
            identity=Identity(cluster_id="c", key=key_of(1)),
            config=CONFIG,
            log=self.log,
            voters=self.log.voters(voter_set),
            quorum_state=state or QuorumState(),
            random=lambda bound: 0,
            now_ms=0,
            committed_offset=len(committed),
        )

    def act(self) -> Ready:
        ready = self.node.take_ready()
        if ready.truncate_to is not None:
            self.log.truncate_to(ready.truncate_to)
        for batch in ready.appends:
            self.log.append(batch)
        if ready.appends:
            self.node.on_synced(self.log.end_offset)
            ready.messages += self.act().messages
        return ready

    def tick(self, now_ms: int) -> Ready:
        self.node.tick(now_ms)
        return self.act()

    def step(self, body: Request | Response, correlation_id: int = 7) -> Ready:
        self.node.step(Message(2, 1, correlation_id, body))
        return self.act()

    def ask(self, request: Request) -> Response:
        (answer,) = [
            message.body
            for message in self.step(request, correlation_id=70).messages
            if message.correlation_id == 70
        ]
        assert not isinstance(answer, Request)
        return answer


def leader() -> Node:
    node = Node(1)
    node.tick(1_000)
    assert node.node.state.role is Role.LEADER
    return node


def following_two() -> tuple[Node, int]:
    """A follower of node 2 in epoch 1, and the correlation id of its fetch."""
    node = Node(1, 2, state=QuorumState(1, 2))
    (fetch,) = node.tick(1).messages
    return node, fetch.correlation_id


def vote(epoch: int = 3, *, voter: ReplicaKey | None = None, cluster: str = "c") -> VoteRequest:
    return VoteRequest(
        cluster_id=cluster,
        voter=voter or key_of(1),
        replica=key_of(2),
        replica_epoch=epoch,
        last_offset_epoch=0,
        last_offset=0,
        pre_vote=False,
    )


def fetch(epoch: int = 1, offset: int = 0, high_watermark: int = 0) -> FetchRequest:
    return FetchRequest(
        cluster_id="c",
        replica=key_of(2),
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch if offset else 0,
        high_watermark=high_watermark,
        max_wait_ms=500,
        max_bytes=1_000,
    )


def fetched(records: bytes, **rest: object) -> FetchResponse:
    fields = {"leader_id": 2, "leader_epoch": 1, "high_watermark": 0} | rest
    return FetchResponse(error_code=ErrorCode.none, records=records, **fields)  # type: ignore[arg-type]


def batch(offset: int, epoch: int) -> bytes:
    data = build_batch([Record(timestamp=0, value=b"x")])
    assign(data, 0, offset, epoch)
    return bytes(data)


def test_another_cluster_is_refused() -> None:
    node = Node(1, 2)

    assert node.ask(vote(cluster="d")).error_code is ErrorCode.inconsistent_cluster_id
    assert node.node.state.epoch == 0


def test_a_vote_that_is_meant_for_another_disk_is_refused() -> None:
    node = Node(1, 2)

    answer = node.ask(vote(voter=ReplicaKey(1, UUID(int=77))))

    assert answer.error_code is ErrorCode.invalid_voter_key


def test_an_old_epoch_is_fenced() -> None:
    node = Node(1, 2, state=QuorumState(5))

    assert node.ask(vote(epoch=4)).error_code is ErrorCode.fenced_leader_epoch
    begin = BeginQuorumEpochRequest(
        cluster_id="c", voter=key_of(1), leader_id=2, leader_epoch=4, leader_endpoints=()
    )
    assert node.ask(begin).error_code is ErrorCode.fenced_leader_epoch


def test_only_the_leader_of_the_epoch_answers_a_fetch() -> None:
    node = leader()

    assert node.ask(fetch(epoch=0)).error_code is ErrorCode.fenced_leader_epoch
    assert node.ask(fetch(epoch=2)).error_code is ErrorCode.unknown_leader_epoch
    follower, _ = following_two()
    answer = follower.ask(fetch())
    assert isinstance(answer, FetchResponse)
    assert answer.error_code is ErrorCode.not_leader_or_follower
    assert answer.leader_id == 2


def test_a_fetch_waits_until_there_is_something() -> None:
    node = leader()
    end_offset = node.log.end_offset
    request = fetch(offset=end_offset, high_watermark=end_offset)
    assert not node.step(request)

    node.node.append(build_batch([Record(timestamp=0, value=b"x")]))

    (answer,) = node.act().messages
    assert isinstance(answer.body, FetchResponse)
    assert answer.body.records == LogRange(end_offset, end_offset + 1, request.max_bytes)


def test_a_fetch_is_told_of_a_higher_high_watermark_at_once() -> None:
    node = leader()

    answer = node.ask(fetch(offset=node.log.end_offset, high_watermark=0))

    assert isinstance(answer, FetchResponse)
    assert answer.high_watermark == node.log.end_offset


def test_a_fetch_is_answered_with_nothing_when_it_has_waited() -> None:
    node = leader()
    node.step(fetch(offset=node.log.end_offset, high_watermark=node.log.end_offset))

    assert not node.tick(1_499).messages
    (answer,) = node.tick(1_500).messages
    assert isinstance(answer.body, FetchResponse)
    assert answer.body.records == b""


def test_every_fetch_is_answered_also_one_that_a_later_one_overtook() -> None:
    node = leader()
    request = fetch(offset=node.log.end_offset, high_watermark=node.log.end_offset)
    node.step(request, correlation_id=8)

    (answer,) = node.step(request, correlation_id=9).messages

    assert answer.correlation_id == 8


def test_a_follower_cannot_append() -> None:
    node, _ = following_two()

    with pytest.raises(ApiError) as refused:
        node.node.append(build_batch([Record(timestamp=0, value=b"x")]))
    assert refused.value.code is ErrorCode.not_leader_or_follower


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    node, correlation_id = following_two()

    assert not node.step(fetched(batch(0, 1)), correlation_id=correlation_id + 1)
    assert node.step(fetched(batch(0, 1)), correlation_id=correlation_id).appends
    assert not node.step(fetched(batch(0, 1)), correlation_id=correlation_id).appends


@pytest.mark.parametrize(
    "records",
    [
        batch(0, 1)[:-1] + b"?",
        batch(1, 1),
        batch(0, 2),
        batch(0, 1)[:-1],
        b"\0" * 100,
    ],
    ids=["checksum", "a gap", "an epoch to come", "a torn batch", "no batch"],
)
def test_records_that_do_not_continue_the_log_are_left(records: bytes) -> None:
    node, correlation_id = following_two()

    node.step(fetched(records, high_watermark=9), correlation_id=correlation_id)

    assert node.log.end_offset == 0
    assert node.node.high_watermark == 0


def test_the_batches_before_a_damaged_one_are_taken() -> None:
    node, correlation_id = following_two()

    node.step(fetched(batch(0, 1) + batch(1, 1)[:-1] + b"?"), correlation_id=correlation_id)

    assert node.log.end_offset == 1


def test_a_snapshot_that_is_gone_or_shorter_is_refused() -> None:
    node = leader()
    node.node.append(build_batch([Record(timestamp=0, value=b"x")]))
    node.act()
    node.log.take_snapshot(node.log.end_offset, node.node.voters.latest)
    snapshot_id = node.log.latest_snapshot_id
    assert snapshot_id is not None

    def ask(snapshot_id: OffsetAndEpoch, position: int) -> ErrorCode:
        request = FetchSnapshotRequest(
            cluster_id="c",
            replica=key_of(2),
            current_leader_epoch=1,
            snapshot_id=snapshot_id,
            position=position,
            max_bytes=10,
        )
        return node.ask(request).error_code

    assert ask(snapshot_id, 0) is ErrorCode.none
    assert ask(snapshot_id, 1_000_000) is ErrorCode.position_out_of_range
    assert ask(snapshot_id, -1) is ErrorCode.position_out_of_range
    assert ask(OffsetAndEpoch(1, 1), 0) is ErrorCode.snapshot_not_found


def test_a_voter_updates_its_endpoints() -> None:
    node = leader()
    endpoint = Endpoint("CONTROLLER", "elsewhere", 9)

    def update(epoch: int, maximum: int) -> ErrorCode:
        request = UpdateRaftVoterRequest(
            cluster_id="c",
            current_leader_epoch=epoch,
            voter=key_of(1),
            listeners=(endpoint,),
            min_supported_version=0,
            max_supported_version=maximum,
        )
        return node.ask(request).error_code

    assert update(0, 1) is ErrorCode.fenced_leader_epoch
    assert update(1, 0) is ErrorCode.invalid_request
    assert update(1, 1) is ErrorCode.none
    voter = node.node.voters.latest.voter(1)
    assert voter is not None
    assert voter.endpoints == (endpoint,)


def test_a_request_that_failed_is_tried_again_soon() -> None:
    node, correlation_id = following_two()

    node.node.on_request_failed(2, correlation_id)
    assert not node.act().messages
    (again,) = node.tick(1 + CONFIG.retry_backoff_ms).messages

    assert isinstance(again.body, FetchRequest)


def test_a_ready_must_be_acted_on() -> None:
    node = Node(1)
    node.node.tick(1_000)
    node.node.take_ready()

    with pytest.raises(AssertionError, match="not acted on"):
        node.node.tick(1_001)


def test_what_was_known_to_be_committed_stays_so_when_the_core_begins_again() -> None:
    node = Node(1, 2, state=QuorumState(1, 2), committed=[batch(0, 1), batch(1, 1)])
    (asked,) = node.tick(1).messages
    told_less = node.step(fetched(b"", high_watermark=1), asked.correlation_id)
    assert told_less.high_watermark is None
    (asked,) = told_less.messages
    told_more = node.step(fetched(batch(2, 1), high_watermark=3), asked.correlation_id)
    assert told_more.high_watermark == 3
