"""Delivers the records of subscriptions to their URLs.

Subscriptions are in partition 0 of a compacted topic, which every gateway reads. The topic's other
partitions are empty: the gateways divide the partitions among themselves as a consumer group, and
the owner of partition hash(id) serves a subscription. When a gateway dies, the others get its
partitions. While two believe they own one, the share group's locks keep a record from being
delivered by both.

Gateways that may call different addresses form different groups, so that each subscription has an
owner among those that may call its URL; the others leave it alone.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.share_wire.share_group_starts import begin_at
from ottla.client.wire.errors import WireError
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CONFIG, CompactedTable
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.filters import EVERYTHING
from ottla.gateway.core.group_member import GroupMember
from ottla.gateway.core.queues import Queues
from ottla.gateway.core.starts import parse_start, positions_at
from ottla.gateway.core.subscriptions import ACTIVE, PARTITIONS_COUNT, TOPIC, Subscription
from ottla.gateway.core.tails import Source
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.core.webhook_calls import Caller, CallFailed, parse_url
from ottla.gateway.core.webhook_deliveries import Deliveries

SUBSCRIPTIONS_MAX: Final = 10_000
REFRESH_S: Final = 2.0  # How long until another gateway's change is seen.
FIRST_REFRESH_S: Final = 10.0  # While there are no subscriptions at all.

logger = logging.getLogger("ottla.gateway")


class Webhooks:
    def __init__(self, cluster: Cluster, source: Source, queues: Queues, caller: Caller) -> None:
        self._cluster = cluster
        self._source = source
        self._queues = queues
        self._caller = caller
        self._administration = Administration(cluster)
        self._table = CompactedTable(cluster, TOPIC)
        self._owned: frozenset[int] = frozenset()
        self._group = _group(caller.rules)
        self._known: dict[str, Subscription] = {}  # As last read.
        self._served: dict[str, Deliveries] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._run())

    async def close(self) -> None:
        """Ends deliveries in progress; they are redelivered elsewhere."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._serve({})

    # Requests by users.

    async def create(self, data: object) -> Subscription:
        try:
            subscription = Subscription.create(data, time.time_ns() // 1_000_000)
            await self._caller.addresses(parse_url(subscription.url))
        except (ValueError, CallFailed) as error:
            raise Invalid(str(error)) from None
        validate_topic(subscription.topic)
        start = parse_start(subscription.start, None)
        offsets = await positions_at(self._source, subscription.topic, start, EVERYTHING)
        await ensure_topic(self._cluster, TOPIC, partitions=PARTITIONS_COUNT, config=CONFIG)
        if len(await self.all()) >= SUBSCRIPTIONS_MAX:
            raise Invalid(f"there are {SUBSCRIPTIONS_MAX} subscriptions, which is the most")
        settings = {
            "share.delivery.count.limit": str(subscription.max_deliveries),
            "share.auto.offset.reset": "earliest",  # For partitions added to the topic later.
            "share.isolation.level": "read_committed",
        }
        await self._administration.alter_configs(ResourceType.GROUP, subscription.group, settings)
        await begin_at(self._cluster, subscription.group, subscription.topic, offsets)
        await self._put(subscription)
        return subscription

    async def all(self) -> list[Subscription]:
        await self._table.refresh()
        return sorted(self._read().values(), key=lambda each: (each.created_ms, each.id))

    async def get(self, number: str) -> Subscription | None:
        await self._table.refresh()
        return self._read().get(number)

    async def delete(self, number: str) -> None:
        await self._table.put(number, None)
        self._changed.set()

    async def enable(self, subscription: Subscription) -> Subscription:
        enabled = subscription.enabled()
        await self._put(enabled)
        return enabled

    async def disable(self, subscription: Subscription, reason: str) -> None:
        logger.warning(
            "webhook %s to %s is disabled: %s", subscription.id, subscription.url, reason
        )
        await self._put(subscription.disabled(reason))

    async def _put(self, subscription: Subscription) -> None:
        await self._table.put(subscription.id, subscription.to_bytes())
        self._changed.set()

    def _read(self) -> dict[str, Subscription]:
        found = {}
        for number, data in self._table.items():
            try:
                found[number] = Subscription.from_bytes(data)
            except ValueError as error:
                logger.warning("record %s of %s: %s", number, TOPIC, error)
        return found

    # Deliveries by this gateway.

    async def _run(self) -> None:
        membership: asyncio.Task[None] | None = None  # While there are subscriptions.
        while True:
            self._changed.clear()
            try:
                await self._table.refresh()
                self._known = self._read()
            except WireError as error:
                logger.debug("reading the subscriptions: %s", error)
            if self._known and membership is None:
                member = GroupMember(self._cluster, self._group, TOPIC, self._on_owned)
                membership = self._start(member.run())
            await self._serve(self._known)
            if not self._known and membership is not None:
                membership.cancel()
                await asyncio.wait([membership])
                membership, self._owned = None, frozenset()
            with suppress(TimeoutError):
                async with asyncio.timeout(REFRESH_S if membership else FIRST_REFRESH_S):
                    await self._changed.wait()

    async def _on_owned(self, owned: frozenset[int]) -> None:
        """Returns once everything that is no longer owned is released."""
        self._owned = owned
        await self._serve({number: each.subscription for number, each in self._served.items()})
        self._changed.set()

    async def _serve(self, known: Mapping[str, Subscription]) -> None:
        wanted = {
            number: subscription
            for number, subscription in known.items()
            if subscription.state == ACTIVE and _partition(number) in self._owned
        }
        # One that is over may be wanted unchanged: disabled and re-enabled since the last look.
        ended = [
            each
            for number, each in self._served.items()
            if each.is_over or wanted.get(number) != each.subscription
        ]
        for each in ended:
            del self._served[each.subscription.id]
        await asyncio.gather(*(each.close() for each in ended))
        for number, subscription in wanted.items():
            # Ownership may have changed while deliveries ended.
            if number not in self._served and _partition(number) in self._owned:
                self._served[number] = Deliveries(
                    subscription, self._queues, self._caller, self.disable
                )

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("webhooks have failed: %s", error, exc_info=error)


def _group(rules: str) -> str:
    return f"{TOPIC}-{zlib.crc32(rules.encode()):08x}" if rules else TOPIC


def _partition(number: str) -> int:
    return zlib.crc32(number.encode()) % PARTITIONS_COUNT
