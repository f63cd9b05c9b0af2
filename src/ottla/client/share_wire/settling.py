"""Acknowledgements in the names of members, to the leaders of their partitions.

What many consumers say at the same time travels together: one request at a time is on its way to
each broker, and takes with it whatever gathered meanwhile. Neighbouring records of which the same
is said are one range; a range that the broker refuses is sent again record by record, because it
is refused as a whole.
"""

import asyncio
import random
from asyncio import AbstractEventLoop, Future, Task
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.types import GroupId
from kio.static.primitive import i8, i16, i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.share_session import SessionKey
from ottla.client.wire.cluster import NO_LEADER
from ottla.client.wire.errors import BrokerError, WireError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    POLICY_DELAY,
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    Delivery,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeType,
)

_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 1.0
_RANGES_MAX: Final = 5_000  # In one request.


class Verdict(NamedTuple):
    """What is to become of a delivery."""

    type: DeliveryAcknowledgeType
    delay_ms: int = POLICY_DELAY  # Of a release.
    lock_ms: int = 0  # Of a renewal.


ACCEPT: Final = Verdict(DeliveryAcknowledgeType.ACCEPT)
REJECT: Final = Verdict(DeliveryAcknowledgeType.REJECT)  # It becomes a dead letter.
PUT_BACK: Final = Verdict(DeliveryAcknowledgeType.PUT_BACK)  # Does not count as a delivery.


class Claim(NamedTuple):
    """A delivery, and what is said about it."""

    key: SessionKey  # Whose session it was fetched in.
    partition: int
    delivery_count: int
    verdict: Verdict
    offset: int


@dataclass(slots=True)
class _Call:
    """What one caller waits for."""

    codes: list[ErrorCode]
    missing: int
    done: "Future[None]"


@dataclass(eq=False, slots=True)
class _Range:
    """Claims of one call that differ in nothing but their offsets, which follow each other."""

    call: _Call
    claim: Claim  # The first.
    indexes: list[int]  # Of the claims, among those of the call.
    deadline_s: float
    pause_s: float = _PAUSE_S
    is_answered: bool = False

    def finish(self, code: ErrorCode) -> None:
        call = self.call
        for index in self.indexes:
            call.codes[index] = code
        call.missing -= len(self.indexes)
        if not call.missing and not call.done.done():
            call.done.set_result(None)


_ByPartition = dict[str, dict[UUID, dict[int, list[_Range]]]]


class Settler:
    def __init__(
        self, cluster: Cluster, loop: AbstractEventLoop, *, timeout_s: float = 20.0
    ) -> None:
        self._cluster = cluster
        self._loop = loop
        self._timeout_s = timeout_s
        self._waiting: dict[int, list[_Range]] = {}  # By the node that leads.
        self._senders: dict[int, Task[None]] = {}
        self._retries: set[Task[None]] = set()

    async def settle(self, claims: Sequence[Claim]) -> list[ErrorCode]:
        """For each claim: `none` is written down; what is retriable is not known, or not done."""
        if not claims:
            return []
        size = len(claims)
        call = _Call([ErrorCode.none] * size, size, self._loop.create_future())
        deadline_s = self._loop.time() + self._timeout_s
        for range_ in _ranges(claims, call, deadline_s):
            await self._route(range_)
        await call.done
        return call.codes

    async def close(self) -> None:
        tasks = [*self._senders.values(), *self._retries]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # To the leader.

    async def _route(self, range_: _Range) -> None:
        claim = range_.claim
        try:
            topic = await self._cluster.topic(claim.key.topic)
        except WireError as error:
            self._on_error(range_, _code(error))
            return
        if topic.id != claim.key.topic_id:
            range_.finish(ErrorCode.unknown_topic_id)  # Deleted, and made again since.
            return
        node_id = topic.leaders.get(claim.partition, NO_LEADER)
        if node_id == NO_LEADER:
            self._on_error(range_, ErrorCode.leader_not_available)
            return
        self._waiting.setdefault(node_id, []).append(range_)
        if node_id not in self._senders:
            self._senders[node_id] = self._loop.create_task(self._send_all(node_id))

    async def _send_all(self, node_id: int) -> None:
        await asyncio.sleep(0)  # For those that come in the same turn of the loop.
        try:
            await self._send(node_id)
        finally:
            del self._senders[node_id]

    async def _send(self, node_id: int) -> None:
        while waiting := self._waiting.pop(node_id, None):
            ranges, later = waiting[:_RANGES_MAX], waiting[_RANGES_MAX:]
            if later:
                self._waiting[node_id] = later
            by_partition = _by_partition(ranges)
            is_sent = False
            try:
                connection = await self._cluster.node(node_id)
                is_sent = True
                response = await connection.call(_request(by_partition))
                self._on_answer(by_partition, response)
                if not all(range_.is_answered for range_ in ranges):
                    raise LookupError("an answer that leaves some out")
            except (WireError, LookupError, ValueError) as error:
                # Also for an answer that does not fit: nobody may wait for ever.
                for range_ in ranges:
                    if range_.is_answered:
                        continue
                    if is_sent and range_.claim.verdict.type is DeliveryAcknowledgeType.PUT_BACK:
                        # If it was done, the next delivery has the same holder and count: said
                        # again, it would take the record from whoever has it by now.
                        range_.finish(_code(error))
                    else:
                        self._on_error(range_, _code(error))

    def _on_answer(self, by_partition: _ByPartition, response: Any) -> None:
        for group in response.groups:
            for topic in group.topics:
                for partition in topic.partitions:
                    ranges = by_partition[group.group_id][topic.topic_id][partition.partition_index]
                    if partition.error_code is not ErrorCode.none:
                        for range_ in ranges:
                            range_.is_answered = True
                            self._on_error(range_, partition.error_code)
                        continue
                    for range_, result in zip(ranges, partition.deliveries, strict=True):
                        self._on_result(range_, result.error_code)

    def _on_result(self, range_: _Range, code: ErrorCode) -> None:
        range_.is_answered = True
        if code is ErrorCode.none or len(range_.indexes) == 1:
            range_.finish(code)
        else:
            self._spawn(self._one_by_one(range_))

    async def _one_by_one(self, range_: _Range) -> None:
        claim = range_.claim
        for offset, index in enumerate(range_.indexes, claim.offset):
            single = claim._replace(offset=offset)
            await self._route(_Range(range_.call, single, [index], range_.deadline_s))

    # Again.

    def _on_error(self, range_: _Range, code: ErrorCode) -> None:
        may_pass = code.retriable or code is ErrorCode.unknown_topic_or_partition
        if not may_pass or self._loop.time() + range_.pause_s > range_.deadline_s:
            range_.finish(code)
        else:
            self._spawn(self._retry(range_))

    async def _retry(self, range_: _Range) -> None:
        await asyncio.sleep(range_.pause_s * random.uniform(0.5, 1.5))
        range_.pause_s = min(2 * range_.pause_s, _PAUSE_S_MAX)
        range_.is_answered = False
        self._cluster.forget_metadata()
        await self._route(range_)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._retries.add(task)
        task.add_done_callback(self._retries.discard)


def _ranges(claims: Sequence[Claim], call: _Call, deadline_s: float) -> list[_Range]:
    found: list[_Range] = []
    for index in sorted(range(len(claims)), key=claims.__getitem__):
        claim = claims[index]
        if found and _continues(found[-1], claim):
            found[-1].indexes.append(index)
        else:
            found.append(_Range(call, claim, [index], deadline_s))
    return found


def _continues(range_: _Range, claim: Claim) -> bool:
    first = range_.claim
    return first.offset + len(range_.indexes) == claim.offset and first[:-1] == claim[:-1]


def _by_partition(ranges: Iterable[_Range]) -> _ByPartition:
    found: _ByPartition = {}
    for range_ in ranges:
        claim = range_.claim
        topics = found.setdefault(claim.key.group, {})
        partitions = topics.setdefault(claim.key.topic_id, {})
        partitions.setdefault(claim.partition, []).append(range_)
    return found


def _request(by_partition: _ByPartition) -> DeliveryAcknowledgeRequest:
    return DeliveryAcknowledgeRequest(
        groups=tuple(
            AcknowledgedGroup(
                group_id=GroupId(group),
                topics=tuple(
                    AcknowledgedTopic(
                        topic_id=topic_id,
                        partitions=tuple(
                            AcknowledgedPartition(
                                partition_index=i32(partition),
                                deliveries=tuple(map(_delivery, ranges)),
                            )
                            for partition, ranges in partitions.items()
                        ),
                    )
                    for topic_id, partitions in topics.items()
                ),
            )
            for group, topics in by_partition.items()
        )
    )


def _delivery(range_: _Range) -> Delivery:
    claim = range_.claim
    return Delivery(
        first_offset=i64(claim.offset),
        last_offset=i64(claim.offset + len(range_.indexes) - 1),
        holder=claim.key.member_id,
        delivery_count=i16(claim.delivery_count),
        type=i8(claim.verdict.type),
        delay_ms=i64(claim.verdict.delay_ms),
        lock_ms=i64(claim.verdict.lock_ms),
    )


def _code(error: Exception) -> ErrorCode:
    return error.code if isinstance(error, BrokerError) else ErrorCode.network_exception
