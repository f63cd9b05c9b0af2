"""Members of one consumer group over bare sockets, until each has its share of the partitions.

Every member has its own connection. In each round all members send a heartbeat, then all responses
are read; a member takes over and gives up partitions at once. Rounds follow without a pause, so
that the coordinator is the limit, not the heartbeat interval.
"""

import datetime as dt
import socket
import time
import uuid
from dataclasses import dataclass

import cyclopts
from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.consumer_group_heartbeat.v1.response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32, i32Timedelta

from benchmarks import processes
from benchmarks.loads import exchange, frames
from benchmarks.loads.outcome import report

SECONDS_MAX = 240.0
JOIN, LEAVE = i32(0), i32(-1)
REBALANCE_TIMEOUT = i32Timedelta.parse(dt.timedelta(minutes=5))


@dataclass
class Member:
    connection: socket.socket
    group: GroupId
    topic: TopicName
    id: str
    epoch: i32 = JOIN
    owned: tuple[TopicPartitions, ...] = ()
    changed: bool = True  # Whether the owned partitions still have to be reported.

    def send_heartbeat(self) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=self.epoch,
            rebalance_timeout=REBALANCE_TIMEOUT,
            subscribed_topic_names=(self.topic,) if self.epoch == JOIN else None,
            topic_partitions=self.owned if self.changed else None,
        )
        self.connection.sendall(exchange.encode(request))

    def receive_answer(self) -> None:
        answer = frames.receive_response(self.connection)
        response = exchange.decode(answer, ConsumerGroupHeartbeatResponse)
        if response.error_code in exchange.NOT_READY:
            return
        if response.error_code is not ErrorCode.none:
            raise frames.LoadError(
                f"a heartbeat was refused with error {response.error_code.value}:"
                f" {response.error_message}"
            )
        self.epoch, self.changed = response.member_epoch, False
        if response.assignment is not None:
            self._take(response.assignment)

    def _take(self, assignment: Assignment) -> None:
        self.owned = tuple(
            TopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
            for topic in assignment.topic_partitions
        )
        self.changed = True

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.owned)


def main(*, address: str, topic: str, partitions: int = 1_000, members: int = 1_000) -> None:
    processes.raise_open_files_limit()
    group = f"many-{uuid.uuid4()}"
    with frames.connect(address) as connection:
        exchange.wait_for_coordinator(connection, group)
    joining = [
        Member(frames.connect(address), GroupId(group), TopicName(topic), str(uuid.uuid4()))
        for _ in range(members)
    ]
    start = time.perf_counter()
    rounds, joined = _beat_until_assigned(joining, partitions, start + SECONDS_MAX)
    elapsed = time.perf_counter() - start
    _leave(joining)
    report(
        seconds=elapsed,
        join_seconds=joined - start,
        members=members,
        heartbeats=rounds * members,
        heartbeats_per_second=rounds * members / elapsed,
    )


def _beat_until_assigned(
    members: list[Member], partitions: int, deadline: float
) -> tuple[int, float]:
    """The number of rounds, and when all had joined."""
    rounds, joined = 0, 0.0
    while not _is_assigned(members, partitions):
        if time.perf_counter() > deadline:
            waiting = sum(not member.owned for member in members)
            raise frames.LoadError(f"{waiting} members have no partition")
        _beat(members)
        rounds += 1
        if not joined and all(member.epoch > 0 for member in members):
            joined = time.perf_counter()
    return rounds, joined


def _beat(members: list[Member]) -> None:
    for member in members:
        member.send_heartbeat()
    for member in members:
        member.receive_answer()


def _is_assigned(members: list[Member], partitions: int) -> bool:
    counts = [member.partitions for member in members]
    return min(counts) > 0 and sum(counts) == partitions


def _leave(members: list[Member]) -> None:
    for member in members:
        member.epoch, member.changed = LEAVE, False
    _beat(members)


if __name__ == "__main__":
    cyclopts.run(main)
