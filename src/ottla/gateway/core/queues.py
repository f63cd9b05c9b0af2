"""Queues: topics whose records any number of consumers receive and settle one by one.

A queue is a topic and a share group. Receiving gives deliveries, each with a handle, which settles
the delivery at any gateway of the cluster. The lock of a delivery is held by the broker, so a
killed gateway loses nothing.
"""

import asyncio
import enum
import logging
import time
from asyncio import AbstractEventLoop, Task
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.contents import QueueCounts, clear, counts, skip
from ottla.client.share_wire.settling import ACCEPT, PUT_BACK, REJECT, Claim, Settler, Verdict
from ottla.client.share_wire.share_members import ShareMember, ShareMembers, Taken, Untaken
from ottla.client.share_wire.share_session import SessionKey
from ottla.client.wire.errors import WireError
from ottla.gateway.core.counts import Counts
from ottla.gateway.core.handles import Handle, InvalidHandle, Signer, pack_queue
from ottla.gateway.core.shared_secret import SharedSigner
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    LOCK_MS_MAX,
    POLICY_DELAY,
    DeliveryAcknowledgeType,
)
from ottla.records.builder import Record

logger = logging.getLogger(__name__)

_HANDLE_GRACE_S: Final = 3_600  # On top of the longest lock; an extended lock lasts longer.


class Delivery(NamedTuple):
    handle: str
    opened: Handle
    record: Record
    locked_until_ms: int


class SettleError(enum.StrEnum):
    INVALID = "invalid"  # Not signed by this cluster.
    OTHER_QUEUE = "other-queue"  # Belongs to another topic or group than was named.
    EXPIRED = "expired"  # The lock expired, or the delivery is already settled.
    NOT_HERE = "not-here"  # Delivered by another gateway, whose brokers have no held locks.
    FORBIDDEN = "forbidden"  # The brokers refuse this user.
    UNAVAILABLE = "unavailable"  # Unknown whether it was done; may be retried.


class Settled(NamedTuple):
    handle: str
    error: SettleError | None  # None: recorded by the broker.
    message: str = ""
    locked_until_ms: int = 0  # Of an extended lock.


_EXPIRED = "the lock ended or the delivery was settled; the record is gone or will come again"
_UNAVAILABLE = "the broker did not confirm it; send it again"
_MESSAGES: Final = {
    SettleError.EXPIRED: _EXPIRED,
    SettleError.UNAVAILABLE: _UNAVAILABLE,
    SettleError.OTHER_QUEUE: "the delivery is of another topic or group",
    SettleError.FORBIDDEN: "this user may not read the topic as this group",
    SettleError.NOT_HERE: "these brokers take it only through the gateway that delivered",
}

_FORBIDDEN: Final = {
    ErrorCode.group_authorization_failed,
    ErrorCode.topic_authorization_failed,
}
_NO_TOPIC: Final = {ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id}


class Queues:
    def __init__(
        self,
        cluster: Cluster,
        shared_signer: SharedSigner,
        loop: AbstractEventLoop,
        counts: Counts | None = None,
    ) -> None:
        self._counts = counts or Counts()
        self._cluster = cluster
        self._shared_signer = shared_signer
        self._settler = Settler(cluster, loop)
        self.members = ShareMembers(cluster, loop, self._return)
        self._loop = loop
        self._returns: set[Task[None]] = set()
        self._waits = True

    def stop_waiting(self) -> None:
        """Answer waiting callers, and stop waiting in new calls."""
        self._waits = False
        self.members.stop_waiting()

    async def close(self) -> None:
        await self.members.close()
        await asyncio.gather(*self._returns, return_exceptions=True)
        await self._settler.close()

    # Receiving.

    async def receive(
        self,
        topic: str,
        group: str,
        *,
        count: int = 1,
        wait_ms: int = 0,
        lock_ms: int | None = None,
    ) -> list[Delivery]:
        """At most `count`; empty after the timeout.

        Without `lock_ms` the group's configured lock applies.

        Raises WireError if the topic, the group or the brokers do not allow it. What a cancelled
        call received goes back to the group at once.
        """
        signer = await self._shared_signer.get()
        member = await self.members.get(topic, group)
        wait_ms = wait_ms if self._waits else 0
        taken = await member.receive(count, wait_ms, lock_ms)
        if not taken:
            return []
        if lock_ms is not None and taken[0].lock_ms != lock_ms:
            taken = await self._relock(taken, lock_ms)
        self._counts.received += len(taken)
        now_ms = time.time_ns() // 1_000_000
        return _deliveries(taken, signer, now_ms)

    def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """The consumer never saw them: available at once, and not counted. Does not wait."""
        self._settle_soon([_claim(each.opened, PUT_BACK) for each in deliveries])

    async def _relock(self, taken: Sequence[Taken], lock_ms: int) -> list[Taken]:
        """They were fetched together with those of callers who wanted another lock duration."""
        verdict = Verdict(DeliveryAcknowledgeType.RENEW, lock_ms=lock_ms)
        try:
            codes = await self._say([each.claim(verdict) for each in taken])
        except asyncio.CancelledError:
            self._settle_soon([each.claim(PUT_BACK) for each in taken])
            raise
        return [
            each._replace(lock_ms=lock_ms)
            for each, code in zip(taken, codes, strict=True)
            if code is ErrorCode.none
        ]

    def _return(self, untaken: Untaken) -> None:
        self._settle_soon(untaken.claims())

    def _settle_soon(self, claims: Sequence[Claim]) -> None:
        task = self._loop.create_task(self._settle_quietly(claims))
        self._returns.add(task)
        task.add_done_callback(self._returns.discard)

    async def _settle_quietly(self, claims: Sequence[Claim]) -> None:
        """If it fails, they are redelivered when their locks expire."""
        codes = await self._say(claims)
        failed = {code.name for code in codes if code is not ErrorCode.none}
        if failed:
            logger.debug("deliveries could not be put back: %s", ", ".join(failed))

    async def clear(self, topic: str) -> dict[int, int]:
        """Delete all current records of the topic; returns where each partition then begins."""
        return await clear(self._cluster, topic)

    async def purge(self, topic: str, group: str) -> None:
        """Skip the queue's current records; brokers without holds delete them."""
        if await self.members.hold():
            await skip(self._cluster, topic, group)
        else:
            await self.clear(topic)

    async def counts(self, topic: str, group: str) -> QueueCounts:
        return await counts(self._cluster, topic, group)

    # Settling.

    async def acknowledge(
        self, handles: Sequence[str], *, topic: str | None = None, group: str | None = None
    ) -> list[Settled]:
        return await self._settle(handles, ACCEPT, topic, group)

    async def release(
        self,
        handles: Sequence[str],
        *,
        delay_ms: int | None = None,
        topic: str | None = None,
        group: str | None = None,
    ) -> list[Settled]:
        """Redeliver after the delay; without one, as the group's back-off policy says."""
        delay = POLICY_DELAY if delay_ms is None else delay_ms
        verdict = Verdict(DeliveryAcknowledgeType.RELEASE, delay_ms=delay)
        return await self._settle(handles, verdict, topic, group)

    async def reject(
        self, handles: Sequence[str], *, topic: str | None = None, group: str | None = None
    ) -> list[Settled]:
        """Never redeliver: to the dead-letter topic if the group has one."""
        return await self._settle(handles, REJECT, topic, group)

    async def extend(
        self,
        handles: Sequence[str],
        *,
        lock_ms: int,
        topic: str | None = None,
        group: str | None = None,
    ) -> list[Settled]:
        """Lock for `lock_ms` from now; 0 releases."""
        if lock_ms <= 0:
            return await self.release(handles, delay_ms=0, topic=topic, group=group)
        verdict = Verdict(DeliveryAcknowledgeType.RENEW, lock_ms=lock_ms)
        settled = await self._settle(handles, verdict, topic, group)
        until_ms = time.time_ns() // 1_000_000 + lock_ms
        return [each if each.error else each._replace(locked_until_ms=until_ms) for each in settled]

    async def _settle(
        self, handles: Sequence[str], verdict: Verdict, topic: str | None, group: str | None
    ) -> list[Settled]:
        results: dict[int, Settled] = {}
        claims: list[Claim] = []
        try:
            opened = await self._open(handles)
        except WireError:
            return [_failed(text, SettleError.UNAVAILABLE) for text in handles]
        for index, (text, handle) in enumerate(zip(handles, opened, strict=True)):
            if isinstance(handle, InvalidHandle):
                results[index] = Settled(text, SettleError.INVALID, str(handle))
                continue
            if topic not in (None, handle.topic) or group not in (None, handle.group):
                results[index] = _failed(text, SettleError.OTHER_QUEUE)
                continue
            claims.append(_claim(handle, verdict))
        outcomes = await self._say(claims)
        self._counts.settled[verdict.type.name.lower()] += outcomes.count(ErrorCode.none)
        codes = iter(outcomes)
        return [
            results[index] if index in results else _settled(text, next(codes))
            for index, text in enumerate(handles)
        ]

    async def _open(self, handles: Sequence[str]) -> list[Handle | InvalidHandle]:
        opened = _open_all(await self._shared_signer.get(), handles)
        if any(isinstance(each, InvalidHandle) for each in opened):
            # Perhaps signed with a secret written after this gateway read them.
            newer = await self._shared_signer.get_newer()
            if newer is not None:
                return _open_all(newer, handles)
        return opened

    async def _say(self, claims: Sequence[Claim]) -> list[ErrorCode]:
        try:
            if await self.members.hold():
                return await self._settler.settle(claims)
        except WireError:
            return [ErrorCode.network_exception] * len(claims)
        return await self._say_in_sessions(claims)

    async def _say_in_sessions(self, claims: Sequence[Claim]) -> list[ErrorCode]:
        """To brokers that accept it only from the member that has the record."""
        codes = [ErrorCode.unknown_member_id] * len(claims)
        by_member: dict[ShareMember, list[int]] = {}
        for index, claim in enumerate(claims):
            member = self.members.holder(claim.key)
            if member is not None:
                by_member.setdefault(member, []).append(index)
        for member, indexes in by_member.items():
            assert member.locks is not None
            answers = await member.locks.settle([claims[index] for index in indexes])
            for index, code in zip(indexes, answers, strict=True):
                codes[index] = code
        return codes


def _open_all(signer: Signer, handles: Sequence[str]) -> list[Handle | InvalidHandle]:
    now_s = time.time()
    opened: list[Handle | InvalidHandle] = []
    for text in handles:
        try:
            opened.append(signer.open(text, now_s))
        except InvalidHandle as error:
            opened.append(error.with_traceback(None))
    return opened


def _claim(handle: Handle, verdict: Verdict) -> Claim:
    key = SessionKey(handle.topic, handle.topic_id, handle.group, handle.member_id)
    return Claim(key, handle.partition, handle.delivery_count, verdict, handle.offset)


def _deliveries(taken: Sequence[Taken], signer: Signer, now_ms: int) -> list[Delivery]:
    """All from one session."""
    topic, topic_id, group, member_id = taken[0].key
    queue = pack_queue(topic, topic_id, group, member_id)
    expires_s = (now_ms + LOCK_MS_MAX) // 1000 + _HANDLE_GRACE_S
    found = []
    for _, (partition, count, record), lock_ms in taken:
        offset = record.offset
        handle = signer.seal_delivery(queue, partition, offset, count, expires_s)
        opened = Handle(topic, topic_id, partition, offset, group, count, member_id, expires_s)
        found.append(Delivery(handle, opened, record, now_ms + lock_ms))
    return found


def _settled(handle: str, code: ErrorCode) -> Settled:
    if code is ErrorCode.none:
        return Settled(handle, None)
    if code is ErrorCode.unknown_member_id:
        return _failed(handle, SettleError.NOT_HERE)
    if code in _FORBIDDEN:
        return _failed(handle, SettleError.FORBIDDEN)
    if code.retriable and code not in _NO_TOPIC:
        return _failed(handle, SettleError.UNAVAILABLE)
    return _failed(handle, SettleError.EXPIRED)


def _failed(handle: str, error: SettleError) -> Settled:
    return Settled(handle, error, _MESSAGES[error])
