"""Members of one classic group over bare sockets, until each has its share of the partitions.

Every member has its own connection, joins, and syncs as soon as it has joined; the leader computes
the assignment for all. Members with an assignment send heartbeats, and rejoin when the group
rebalances.
"""

import selectors
import socket
import struct
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

import cyclopts
from kio.schema.errors import ErrorCode
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.leave_group.v5.response import LeaveGroupResponse
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.sync_group.v5.response import SyncGroupResponse
from kio.schema.types import GroupId
from kio.static.primitive import i32, i32Timedelta
from kio.static.protocol import Payload

from benchmarks import processes
from benchmarks.loads import exchange, frames
from benchmarks.loads.outcome import report

SECONDS_MAX = 240.0
HEARTBEAT_SECONDS = 0.1
SESSION_TIMEOUT = i32Timedelta.parse(timedelta(seconds=45))
REBALANCE_TIMEOUT = i32Timedelta.parse(timedelta(minutes=5))
NO_GENERATION = i32(-1)
SIZE = struct.Struct(">i")
REJOIN = (ErrorCode.rebalance_in_progress, ErrorCode.illegal_generation)


@dataclass
class Member:
    connection: socket.socket
    group: GroupId
    topic: str
    partitions: int
    assigned: Counter[int]  # Number of members by generation.
    id: str = ""
    generation: i32 = NO_GENERATION
    is_assigned: bool = False
    waits: bool = False  # For a response.
    received: bytearray = field(default_factory=bytearray)
    asked: type[Payload] = JoinGroupRequest

    def ask(self, request: Payload) -> None:
        self.asked, self.waits = type(request), True
        self.connection.sendall(exchange.encode(request))

    def join(self) -> None:
        self.assigned[self.generation] -= self.is_assigned
        self.is_assigned = False
        self.ask(
            JoinGroupRequest(
                group_id=self.group,
                session_timeout=SESSION_TIMEOUT,
                rebalance_timeout=REBALANCE_TIMEOUT,
                member_id=self.id,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=self._subscription()),),
            )
        )

    def beat(self) -> None:
        self.ask(
            HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id)
        )

    def on_readable(self) -> None:
        chunk = self.connection.recv(1 << 18)
        if not chunk:
            raise frames.LoadError("the broker closed the connection")
        self.received += chunk
        if len(self.received) < SIZE.size:
            return
        end = SIZE.size + SIZE.unpack_from(self.received)[0]
        if len(self.received) >= end:
            answer = bytes(self.received[SIZE.size : end])
            del self.received[:end]
            self.waits = False
            self._on_answer(answer)

    def _on_answer(self, answer: bytes) -> None:
        if self.asked is JoinGroupRequest:
            self._on_join(exchange.decode(answer, JoinGroupResponse))
        elif self.asked is SyncGroupRequest:
            self._on_sync(exchange.decode(answer, SyncGroupResponse))
        elif self._is_well(exchange.decode(answer, HeartbeatResponse).error_code) is False:
            self.join()

    def _on_join(self, response: JoinGroupResponse) -> None:
        if response.error_code is ErrorCode.member_id_required:
            self.id = response.member_id
            self.join()
        elif not self._is_well(response.error_code):
            self.join()
        else:
            self.generation = response.generation_id
            members = [member.member_id for member in response.members]
            self.ask(
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=tuple(self._assignments(members)),
                )
            )

    def _on_sync(self, response: SyncGroupResponse) -> None:
        if self._is_well(response.error_code):
            self.is_assigned = bool(response.assignment)
            self.assigned[self.generation] += self.is_assigned
        else:
            self.join()

    def _is_well(self, error: ErrorCode) -> bool:
        """False: the member has to join again."""
        if error is ErrorCode.none:
            return True
        if error in REJOIN or error in exchange.NOT_READY:
            return False
        raise frames.LoadError(f"a request was refused with error {error.value}")

    def _subscription(self) -> bytes:
        topic = self.topic.encode()
        return struct.pack(">hih", 0, 1, len(topic)) + topic + struct.pack(">i", -1)

    def _assignments(self, members: list[str]) -> Iterator[SyncGroupRequestAssignment]:
        topic = self.topic.encode()
        head = struct.pack(">hih", 0, 1, len(topic)) + topic
        for index, member_id in enumerate(members):
            mine = range(index, self.partitions, len(members))
            content = struct.pack(f">i{len(mine)}i", len(mine), *mine) + struct.pack(">i", -1)
            yield SyncGroupRequestAssignment(member_id=member_id, assignment=head + content)


def main(*, address: str, topic: str, partitions: int = 1_000, members: int = 1_000) -> None:
    processes.raise_open_files_limit()
    group = GroupId(f"many-{uuid.uuid4()}")
    with frames.connect(address) as connection:
        exchange.wait_for_coordinator(connection, group)
    assigned: Counter[int] = Counter()
    joining = [
        Member(frames.connect(address), group, topic, partitions, assigned) for _ in range(members)
    ]
    start = time.perf_counter()
    generations = _run_until_assigned(joining, assigned, start + SECONDS_MAX)
    elapsed = time.perf_counter() - start
    _leave(joining)
    report(seconds=elapsed, members=members, generations=generations)


def _run_until_assigned(members: list[Member], assigned: Counter[int], deadline: float) -> int:
    """How many generations it took."""
    with selectors.DefaultSelector() as selector:
        for member in members:
            selector.register(member.connection, selectors.EVENT_READ, member)
            member.join()
        next_beat = time.perf_counter() + HEARTBEAT_SECONDS
        while assigned[members[0].generation] < len(members):
            for key, _ in selector.select(timeout=HEARTBEAT_SECONDS):
                key.data.on_readable()
            now = time.perf_counter()
            if now > deadline:
                raise frames.LoadError("not every member has an assignment")
            if now > next_beat:
                next_beat = now + HEARTBEAT_SECONDS
                for member in members:
                    if member.is_assigned and not member.waits:
                        member.beat()
    return int(members[0].generation)


def _leave(members: list[Member]) -> None:
    leaver = members[0]
    for member in members:
        member.connection.setblocking(True)
    while leaver.waits:
        leaver.on_readable()
    identities = tuple(MemberIdentity(member_id=member.id) for member in members)
    exchange.ask(
        leaver.connection,
        LeaveGroupRequest(group_id=leaver.group, members=identities),
        LeaveGroupResponse,
    )


if __name__ == "__main__":
    cyclopts.run(main)
