"""Proposes ISR changes to the controller (AlterPartition, KIP-497).

All waiting changes go into one request, and one request is in flight at a time. The outcome arrives
with the metadata, so a response matters only where the metadata brings nothing: when a change was
refused or changed nothing.

A change with an unknown outcome stays pending and is sent again: it may have been made, or still
be. A refused one is proposed again if it is still wanted, with increasing delays.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.followers import Followers, IsrChange
from ottla.replication.partition import Partition
from ottla.runtime.clock import Clock
from ottla.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from kio.schema.alter_partition.v3.request import AlterPartitionRequest, PartitionData
    from kio.schema.alter_partition.v3.response import AlterPartitionResponse
    from kio.schema.alter_partition.v3.response import PartitionData as AlteredPartition

logger = logging.getLogger(__name__)

RETRY_S: Final = 0.1
REFUSED_RETRY_FIRST_S: Final = 0.2  # More than `PROPOSE_AGAIN_MS`.
REFUSED_RETRY_MAX_S: Final = 5.0
RETRY_MAX_S: Final = 1.0

# The controller reports, as final, that the change was not made.
_REFUSED: Final = frozenset({ErrorCode.ineligible_replica, ErrorCode.operation_not_attempted})

# Newer metadata exists and will arrive.
_OUTDATED: Final = frozenset(
    {
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.invalid_request,
        ErrorCode.new_leader_elected,
    }
)

AlterPartition = Callable[["AlterPartitionRequest"], Awaitable["AlterPartitionResponse"]]


class _Proposal(NamedTuple):
    partition: Partition
    followers: Followers
    change: IsrChange

    @property
    def is_pending(self) -> bool:
        """False once the leadership or newer metadata has ended it."""
        followers = self.followers
        return self.partition.followers is followers and followers.pending is self.change


_Key = tuple[UUID, int]


class IsrChanges:
    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        alter: AlterPartition,
        clock: Clock,
        supervisor: Supervisor,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._alter = alter
        self._clock = clock
        self._supervisor = supervisor
        self._waiting: dict[Partition, None] = {}  # In order of arrival.
        self._is_running = False
        self._refused: dict[Partition, None] = {}
        self._refused_retry_s = REFUSED_RETRY_FIRST_S
        self._retry_s = RETRY_S  # Grows while the controller accepts nothing.

    def submit(self, partition: Partition) -> None:
        """Queue a partition whose followers have a pending change."""
        self._waiting[partition] = None
        if not self._is_running and not self._supervisor.stopped:
            self._is_running = True
            self._supervisor.start("in-sync changes", self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                proposals = dict(self._take())
                if proposals and not await self._send(proposals):
                    await asyncio.sleep(self._retry_s)
        finally:
            self._is_running = False

    def _take(self) -> Iterator[tuple[_Key, _Proposal]]:
        waiting, self._waiting = self._waiting, {}
        for partition in waiting:
            followers, topic_id = partition.followers, partition.log.topic_id
            if followers is not None and followers.pending is not None and topic_id is not None:
                key = (topic_id, partition.log.topic_partition.partition)
                yield key, _Proposal(partition, followers, followers.pending)

    async def _send(self, proposals: dict[_Key, _Proposal]) -> bool:
        """False if something must be sent again after a delay."""
        try:
            response = await self._alter(self._request(proposals))
            if response.error_code is not ErrorCode.none:
                raise ApiError(response.error_code)
        except ApiError as error:
            if self._retry_s == RETRY_S:
                logger.info("in-sync changes are proposed until they are accepted: %s", error)
            self._retry_s = min(self._retry_s * 2, RETRY_MAX_S)
            self._waiting |= {proposal.partition: None for proposal in proposals.values()}
            return False
        self._retry_s = RETRY_S
        not_taken: dict[tuple[tuple[int, ...], ErrorCode], list[Partition]] = defaultdict(list)
        for topic in response.topics:
            for result in topic.partitions:
                if topic.topic_id is not None:
                    key = (topic.topic_id, int(result.partition_index))
                    proposal = proposals.pop(key, None)
                    if proposal is not None and not self._is_taken(proposal, result):
                        isr = tuple(proposal.change.isr)
                        not_taken[isr, result.error_code].append(proposal.partition)
        for (isr, code), partitions in not_taken.items():
            self._report_not_taken(isr, code, partitions)
        self._waiting |= {proposal.partition: None for proposal in proposals.values()}
        if not self._refused:
            self._refused_retry_s = REFUSED_RETRY_FIRST_S
        return not self._waiting

    def _is_taken(self, proposal: _Proposal, result: "AlteredPartition") -> bool:
        """Also True for a proposal that is no longer pending."""
        partition, followers, change = proposal
        leader = partition.leader
        if leader is None or not proposal.is_pending:
            return True
        code = result.error_code
        if code is ErrorCode.none and result.partition_epoch > change.partition_epoch:
            return True  # The metadata has it, or will have it.
        if code is ErrorCode.none or code in _REFUSED:
            followers.on_refused(change, self._clock.monotonic_ms())
            leader.advance_high_watermark()
            self._look_again_at(partition)
        elif code not in _OUTDATED:
            self._waiting[partition] = None
        return False

    def _report_not_taken(
        self, isr: Sequence[int], code: ErrorCode, partitions: Sequence[Partition]
    ) -> None:
        is_known = code in _OUTDATED or self._refused_retry_s > REFUSED_RETRY_FIRST_S
        logger.log(
            logging.DEBUG if is_known else logging.INFO,
            "in-sync replicas %s of %d partitions, first %s, were not accepted: %s",
            isr,
            len(partitions),
            partitions[0].log.topic_partition,
            code.name,
        )

    def _look_again_at(self, partition: Partition) -> None:
        if not self._refused and not self._supervisor.stopped:
            self._supervisor.start("refused in-sync changes", self._look_again())
        self._refused[partition] = None

    async def _look_again(self) -> None:
        await asyncio.sleep(self._refused_retry_s)
        self._refused_retry_s = min(2 * self._refused_retry_s, REFUSED_RETRY_MAX_S)
        refused, self._refused = self._refused, {}
        now_ms = self._clock.monotonic_ms()
        for partition in refused:
            followers = partition.followers
            if followers and followers.maybe_expand(partition.log.high_watermark, now_ms):
                self.submit(partition)

    def _request(self, proposals: dict[_Key, _Proposal]) -> "AlterPartitionRequest":
        from kio.schema.alter_partition.v3.request import AlterPartitionRequest, TopicData

        by_topic: dict[UUID, list[PartitionData]] = {}
        for (topic_id, index), proposal in proposals.items():
            by_topic.setdefault(topic_id, []).append(self._partition_data(index, proposal))
        return AlterPartitionRequest(
            broker_id=BrokerId(self._node_id),
            broker_epoch=i64(self._broker_epoch()),
            topics=tuple(
                TopicData(topic_id=topic_id, partitions=tuple(partitions))
                for topic_id, partitions in by_topic.items()
            ),
        )

    def _partition_data(self, index: int, proposal: _Proposal) -> "PartitionData":
        from kio.schema.alter_partition.v3.request import BrokerState, PartitionData

        partition, followers, change = proposal
        return PartitionData(
            partition_index=i32(index),
            leader_epoch=i32(partition.leader_epoch),
            new_isr_with_epochs=tuple(
                BrokerState(
                    broker_id=BrokerId(replica),
                    broker_epoch=i64(self._epoch_of(followers, replica)),
                )
                for replica in change.isr
            ),
            partition_epoch=i32(change.partition_epoch),
        )

    def _epoch_of(self, followers: Followers, replica: int) -> int:
        """-1, which is not checked, for a follower that has not fetched from this leader yet."""
        if replica == self._node_id:
            return self._broker_epoch()
        return followers.get(replica).broker_epoch
