"""Share-group members, one for all consumers that a queue (a topic and a group) has here.

A member fetches what waiting consumers want, from every leader of the topic's partitions, and
leaves when nobody has wanted anything for a while.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop, Task
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.acquired import Acquired, Gap
from ottla.client.share_wire.fetcher import (
    FETCH_WAIT_MS_MAX,
    FETCH_WAIT_MS_WITH_LOCKS,
    RECORDS_MAX,
    ShareFetcher,
)
from ottla.client.share_wire.membership import Membership
from ottla.client.share_wire.session_locks import SessionLocks
from ottla.client.share_wire.settling import ACCEPT, PUT_BACK, Claim, Verdict
from ottla.client.share_wire.share_session import (
    FetchedShares,
    FetchTerms,
    SessionKey,
    ShareSession,
)
from ottla.client.share_wire.waiting import Waiter, WaitingLine
from ottla.client.wire.cluster import NO_LEADER, Topic
from ottla.client.wire.errors import BrokerError, Unreachable, WireError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import API_KEY

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
SWEEP_S: Final = 10.0
PATIENCE_S: Final = 10.0  # Beyond what a consumer wants to wait, for a broker that is slow or away.


class Taken(NamedTuple):
    """A record that the member has for one consumer."""

    key: SessionKey
    acquired: Acquired
    lock_ms: int  # What it is locked for.

    def claim(self, verdict: Verdict) -> Claim:
        partition, delivery_count, record = self.acquired
        return Claim(self.key, partition, delivery_count, verdict, record.offset)


class Untaken(NamedTuple):
    """What was fetched and nobody wants, or is not there to be had."""

    key: SessionKey
    acquired: Sequence[Acquired]
    gaps: Sequence[Gap]

    def claims(self) -> list[Claim]:
        """What to tell the broker, so that nobody waits for them."""
        claims = [Taken(self.key, acquired, 0).claim(PUT_BACK) for acquired in self.acquired]
        for gap in self.gaps:
            verdict = ACCEPT if gap.is_known else PUT_BACK
            claims += [
                Claim(self.key, gap.partition, gap.delivery_count, verdict, offset)
                for offset in range(gap.first_offset, gap.last_offset + 1)
            ]
        return claims


class ShareMember:
    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str,
        loop: AbstractEventLoop,
        return_untaken: Callable[[Untaken], None],
        *,
        holds: bool,
    ) -> None:
        """`holds`: the brokers hold locks, so that this member need not."""
        self.member_id = _new_member_id()
        self.idle_since_s = loop.time()
        self._cluster = cluster
        self._topic = topic
        self._group = group
        self._loop = loop
        self._return_untaken = return_untaken
        self._membership = Membership(cluster, topic, group, self.member_id)
        self.locks = None if holds else SessionLocks(loop, lambda: self._membership.lock_ms)
        self._line: WaitingLine[Taken] = WaitingLine()
        self._claimed = 0  # Of the demand, by fetchers that do not wait.
        self._fetchers: dict[int, ShareFetcher] = {}  # By node.
        self._key: SessionKey | None = None
        self._overdue: dict[Waiter[Taken], None] = {}
        self._trouble: Exception = Unreachable(f"no leader of {topic} answers")
        self._refreshing = asyncio.Lock()
        self._closing: set[Task[None]] = set()

    # For consumers.

    @property
    def is_idle(self) -> bool:
        return not len(self._line) and not self.locks

    async def receive(self, count: int, wait_ms: int, lock_ms: int | None) -> list[Taken]:
        """Nothing when the time has passed. What was taken for one that is cancelled goes back."""
        now_s = self._loop.time()
        waiter: Waiter[Taken] = Waiter(
            count,
            self._membership.lock_ms if lock_ms is None else lock_ms,
            now_s,
            now_s + wait_ms / 1000,
            self._loop.create_future(),
        )
        self._line.join(waiter)
        self._wake()
        timer = self._loop.call_at(waiter.deadline_s, self._on_deadline, waiter)
        try:
            return await waiter.future
        except asyncio.CancelledError:
            future = waiter.future
            if future.done() and not future.cancelled() and future.exception() is None:
                self._put_back(future.result())
            raise
        finally:
            timer.cancel()
            self._line.leave(waiter)
            self._overdue.pop(waiter, None)
            self.idle_since_s = self._loop.time()

    def stop_waiting(self) -> None:
        for waiter in self._line:
            if not waiter.future.done():
                waiter.future.set_result([])

    def _on_deadline(self, waiter: Waiter[Taken]) -> None:
        self._overdue[waiter] = None
        self.on_looked()
        if waiter in self._overdue:
            self._loop.call_later(PATIENCE_S, self._on_patience_over, waiter)

    def _on_patience_over(self, waiter: Waiter[Taken]) -> None:
        if waiter.future.done():
            return
        if any(fetcher.was_empty(waiter.arrived_s) for fetcher in self._fetchers.values()):
            waiter.future.set_result([])  # As far as can be told: some leaders are away.
        else:
            waiter.future.set_exception(self._trouble.with_traceback(None))

    def _wake(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.wake()

    # For its fetchers.

    def claim(self) -> int:
        free = self._line.demand - self._claimed
        if free <= 0:
            return 0
        hot = sum(not fetcher.is_cold for fetcher in self._fetchers.values())
        count = min(free, self._part(hot))
        self._claimed += count
        return count

    def give_up_claim(self, count: int) -> None:
        self._claimed -= count
        if self._line.demand > self._claimed:
            self._wake()

    def part_of_demand(self) -> int:
        return self._part(len(self._fetchers))

    def _part(self, fetchers: int) -> int:
        """Of the demand, for each of so many."""
        return min(-(-self._line.demand // max(1, fetchers)), RECORDS_MAX)

    def terms(self, count: int, *, waits: bool) -> FetchTerms:
        first = self._line.first()
        lock_ms = self._membership.lock_ms if first is None else first.lock_ms
        wait_ms = 0
        if waits:
            left_ms = (self._line.last_deadline_s - self._loop.time()) * 1000
            wait_ms = max(1, min(int(left_ms), self._fetch_wait_ms_max()))
        return FetchTerms(count, wait_ms, lock_ms, holds=self.locks is None)

    def _fetch_wait_ms_max(self) -> int:
        """What is said of locks in the session has to wait for the fetch before it."""
        return FETCH_WAIT_MS_MAX if not self.locks else FETCH_WAIT_MS_WITH_LOCKS

    def on_fetched(self, session: ShareSession, fetched: FetchedShares, terms: FetchTerms) -> None:
        if fetched.lock_ms:
            self._membership.lock_ms = fetched.lock_ms
        if self.locks is not None:
            self.locks.take(session, fetched.acquired, fetched.gaps, terms.lock_ms)
        key, lock_ms = session.key, terms.lock_ms
        taken = [Taken(key, acquired, lock_ms) for acquired in fetched.acquired]
        unwanted = self._line.deal(taken, more_follows=len(taken) >= terms.records_max)
        if unwanted or fetched.gaps:
            records = [each.acquired for each in unwanted]
            self._return_untaken(Untaken(key, records, fetched.gaps))

    def on_looked(self) -> None:
        """Tell those whose time is over that there is nothing."""
        fetchers = self._fetchers.values()
        for waiter in list(self._overdue):
            if fetchers and all(fetcher.was_empty(waiter.arrived_s) for fetcher in fetchers):
                self._overdue.pop(waiter)
                if not waiter.future.done():
                    waiter.future.set_result([])

    async def on_trouble(self, error: Exception) -> None:
        self._trouble = error
        self._cluster.forget_metadata()
        try:
            await self._refresh()
        except WireError as missing:
            self._trouble = missing

    def _put_back(self, taken: Sequence[Taken]) -> None:
        if taken:
            self._return_untaken(Untaken(taken[0].key, [each.acquired for each in taken], ()))

    # Coming and going.

    async def start(self) -> None:
        """WireError if there is no such topic, or the member may not join."""
        await self._cluster.topic(self._topic)
        await self._cluster.retry(self._membership.join, timeout_s=PATIENCE_S)
        await self._refresh()

    async def stop(self) -> None:
        for fetcher in self._fetchers.values():
            self._close(fetcher)
        self._fetchers.clear()
        await asyncio.gather(*self._closing)
        if self.locks is not None:
            await self.locks.close()
        await self._membership.leave()
        self.stop_waiting()

    async def refresh(self) -> None:
        """Take up new partitions and leaders."""
        self._cluster.forget_metadata()
        try:
            await self._refresh()
        except WireError as error:
            logger.debug("the leaders of %s: %s", self._topic, error)

    async def _refresh(self) -> None:
        async with self._refreshing:
            topic = await self._cluster.topic(self._topic)
            key = SessionKey(self._topic, _topic_id(topic), self._group, self.member_id)
            led: dict[int, set[int]] = {}
            for partition, node_id in topic.leaders.items():
                if node_id != NO_LEADER:
                    led.setdefault(node_id, set()).add(partition)
            for node_id in list(self._fetchers):
                if node_id not in led or key != self._key:
                    self._close(self._fetchers.pop(node_id))
            self._key = key
            for node_id, partitions in led.items():
                if node_id not in self._fetchers:
                    session = ShareSession(self._cluster, key, node_id)
                    self._fetchers[node_id] = ShareFetcher(session, self, self._loop)
                self._fetchers[node_id].partitions = partitions

    def _close(self, fetcher: ShareFetcher) -> None:
        """Not awaited: it may be the fetcher itself that noticed the change."""
        task = self._loop.create_task(fetcher.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _new_member_id() -> str:
    """As Kafka's clients make them; short, as handles carry it."""
    return urlsafe_b64encode(uuid4().bytes).rstrip(b"=").decode("ascii")


def _topic_id(topic: Topic) -> UUID:
    if topic.id is None:
        raise BrokerError(ErrorCode.unsupported_version, "topics of this cluster have no ids")
    return topic.id


class ShareMembers:
    """The members of this process. They come with demand and leave when they are idle."""

    def __init__(
        self,
        cluster: Cluster,
        loop: AbstractEventLoop,
        return_untaken: Callable[[Untaken], None],
        *,
        members_max: int = 1_000,
    ) -> None:
        self._cluster = cluster
        self._loop = loop
        self._return_untaken = return_untaken
        self._members_max = members_max
        self._hold = False
        self._members: dict[tuple[str, str], Task[ShareMember]] = {}
        self._sweeper = loop.create_task(self._sweep(), name="idle share-group members")

    def __len__(self) -> int:
        return len(self._members)

    async def get(self, topic: str, group: str) -> ShareMember:
        """WireError if there is no such topic, or no member may join the group."""
        joined = self._members.get((topic, group))
        if joined is None:
            if len(self._members) >= self._members_max:
                raise Unreachable(f"this process serves {self._members_max} queues already")
            joined = self._loop.create_task(self._start(topic, group))
            self._members[topic, group] = joined
        return joined.result() if joined.done() else await asyncio.shield(joined)

    def holder(self, key: SessionKey) -> ShareMember | None:
        """The member of that session, if it is one of this process's and still there."""
        joined = self._members.get((key.topic, key.group))
        if joined is None or not joined.done():
            return None
        member = joined.result()
        return member if member.member_id == key.member_id else None

    def stop_waiting(self) -> None:
        for joined in self._members.values():
            if joined.done() and not joined.cancelled() and joined.exception() is None:
                joined.result().stop_waiting()

    async def hold(self) -> bool:
        """Whether the brokers hold locks for whoever shows a handle."""
        if not self._hold:  # Once they can, they can.
            self._hold = (await self._cluster.any_broker()).supports(API_KEY) is not None
        return self._hold

    async def close(self) -> None:
        self._sweeper.cancel()
        await asyncio.gather(self._sweeper, return_exceptions=True)
        await asyncio.gather(*(self._stop(key) for key in list(self._members)))

    async def _start(self, topic: str, group: str) -> ShareMember:
        member = ShareMember(
            self._cluster,
            topic,
            group,
            self._loop,
            self._return_untaken,
            holds=await self.hold(),
        )
        try:
            await member.start()
        except BaseException:
            del self._members[topic, group]
            await member.stop()
            raise
        return member

    async def _stop(self, key: tuple[str, str]) -> None:
        joined = self._members.pop(key)
        if joined.done():
            await joined.result().stop()
        else:
            joined.cancel()
            await asyncio.gather(joined, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            now_s = self._loop.time()
            for key, joined in list(self._members.items()):
                if not joined.done():
                    continue
                member = joined.result()
                if member.is_idle and now_s - member.idle_since_s > IDLE_S:
                    await self._stop(key)
                elif not member.is_idle:
                    await member.refresh()
