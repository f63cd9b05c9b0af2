"""Locks of a member on brokers that hold none: Apache Kafka, and Ottla before it learned to.

There a lock lasts as long as the group is configured to and ends with the member's session. So the
gateway that delivered a record has to do what became of it, renews the lock while the consumer may
have it, and releases the record when the consumer's time or the delay of a release is over.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Future, Task
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.client.share_wire.acquired import Acquired, Gap
from ottla.client.share_wire.settling import Claim
from ottla.client.share_wire.share_session import Acknowledgement, AcknowledgeType, ShareSession
from ottla.client.wire.errors import WireError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import DeliveryAcknowledgeType

logger = logging.getLogger(__name__)

_TYPES: Final = {
    DeliveryAcknowledgeType.ACCEPT: AcknowledgeType.ACCEPT,
    DeliveryAcknowledgeType.RELEASE: AcknowledgeType.RELEASE,
    DeliveryAcknowledgeType.REJECT: AcknowledgeType.REJECT,
    DeliveryAcknowledgeType.PUT_BACK: AcknowledgeType.RELEASE,
}
_RENEWALS_IN_A_LOCK: Final = 3
_TICK_S: Final = 0.1


@dataclass(slots=True)
class _Lock:
    session: ShareSession
    generation: int  # Of the session.
    delivery_count: int
    until_s: float  # When the record goes back.
    renew_s: float
    parked: bool = False  # The consumer released it, with a delay.

    @property
    def is_lost(self) -> bool:
        """The session ended and the broker released the record."""
        return self.generation != self.session.generation


class SessionLocks:
    def __init__(self, loop: AbstractEventLoop, broker_lock_ms: Callable[[], int]) -> None:
        self._loop = loop
        self._broker_lock_ms = broker_lock_ms
        self._locks: dict[tuple[int, int], _Lock] = {}  # By partition and offset.
        self._outgoing: dict[ShareSession, list[tuple[Acknowledgement, Future[ErrorCode]]]] = {}
        self._senders: dict[ShareSession, Task[None]] = {}
        self._keeper = loop.create_task(self._keep(), name="locks of a share-group member")

    def __len__(self) -> int:
        return len(self._locks)

    def take(
        self,
        session: ShareSession,
        acquired: Iterable[Acquired],
        gaps: Iterable[Gap],
        lock_ms: int,
    ) -> None:
        now_s = self._loop.time()
        until_s, renew_s = now_s + lock_ms / 1000, self._next_renewal_s(now_s)
        taken = [(partition, record.offset, count) for partition, count, record in acquired]
        for partition, first, last, count, _ in gaps:
            taken += [(partition, offset, count) for offset in range(first, last + 1)]
        generation = session.generation
        for partition, offset, count in taken:
            lock = _Lock(session, generation, count, until_s, renew_s)
            self._locks[partition, offset] = lock

    async def settle(self, claims: Sequence[Claim]) -> list[ErrorCode]:
        answers = [self._settle(claim) for claim in claims]
        return [answer if isinstance(answer, ErrorCode) else await answer for answer in answers]

    async def close(self) -> None:
        self._keeper.cancel()
        tasks = [self._keeper, *self._senders.values()]
        await asyncio.gather(*tasks, return_exceptions=True)

    def _settle(self, claim: Claim) -> "ErrorCode | Future[ErrorCode]":
        partition, offset = claim.partition, claim.offset
        lock = self._locks.get((partition, offset))
        if lock is None or lock.parked or lock.delivery_count != claim.delivery_count:
            return ErrorCode.invalid_record_state
        if lock.is_lost:
            del self._locks[partition, offset]
            return ErrorCode.invalid_record_state
        verdict = claim.verdict
        now_s = self._loop.time()
        if verdict.type is DeliveryAcknowledgeType.RENEW:
            lock.until_s = now_s + verdict.lock_ms / 1000
            return ErrorCode.none
        if verdict.type is DeliveryAcknowledgeType.RELEASE and verdict.delay_ms > 0:
            lock.until_s = now_s + verdict.delay_ms / 1000
            lock.parked = True
            return ErrorCode.none
        del self._locks[partition, offset]
        return self._send(partition, offset, lock.session, _TYPES[verdict.type])

    # To the broker.

    def _send(
        self, partition: int, offset: int, session: ShareSession, kind: AcknowledgeType
    ) -> "Future[ErrorCode]":
        answer: Future[ErrorCode] = self._loop.create_future()
        acknowledgement = Acknowledgement(partition, offset, kind)
        self._outgoing.setdefault(session, []).append((acknowledgement, answer))
        if session not in self._senders:
            self._senders[session] = self._loop.create_task(self._send_all(session))
        return answer

    async def _send_all(self, session: ShareSession) -> None:
        try:
            while outgoing := self._outgoing.pop(session, None):
                await self._acknowledge(session, outgoing)
        finally:
            del self._senders[session]

    async def _acknowledge(
        self, session: ShareSession, outgoing: list[tuple[Acknowledgement, "Future[ErrorCode]"]]
    ) -> None:
        """A partition is refused as a whole, so its records are said again one by one."""
        refused = await self._try([acknowledgement for acknowledgement, _ in outgoing], session)
        for acknowledgement, answer in outgoing:
            code = refused.get(acknowledgement.partition, ErrorCode.none)
            if code is ErrorCode.invalid_record_state and len(outgoing) > 1:
                single = await self._try([acknowledgement], session)
                code = single.get(acknowledgement.partition, ErrorCode.none)
            if not answer.done():
                answer.set_result(code)

    async def _try(
        self, acknowledgements: list[Acknowledgement], session: ShareSession
    ) -> dict[int, ErrorCode]:
        try:
            return await session.acknowledge(acknowledgements)
        except WireError as error:
            logger.debug("acknowledgements at node %d: %s", session.node_id, error)
            return {each.partition: ErrorCode.invalid_record_state for each in acknowledgements}

    # Keeping.

    def _next_renewal_s(self, now_s: float) -> float:
        return now_s + self._broker_lock_ms() / 1000 / _RENEWALS_IN_A_LOCK

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now_s = self._loop.time()
            renewed: dict[ShareSession, list[Acknowledgement]] = {}
            for (partition, offset), lock in list(self._locks.items()):
                if lock.is_lost:
                    del self._locks[partition, offset]
                elif lock.until_s <= now_s:
                    del self._locks[partition, offset]
                    self._send(partition, offset, lock.session, AcknowledgeType.RELEASE)
                elif lock.renew_s <= now_s:
                    lock.renew_s = self._next_renewal_s(now_s)
                    renewal = Acknowledgement(partition, offset, AcknowledgeType.RENEW)
                    renewed.setdefault(lock.session, []).append(renewal)
            for session, renewals in renewed.items():
                await self._try(renewals, session)
