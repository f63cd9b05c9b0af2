"""Delivers the records of one subscription to its URL, a few at a time.

A record is acknowledged only once the receiver has answered 2xx. A failed one waits in the broker
for its retry, so nothing is stored here, and another gateway continues where this one ends.

What was received and never sent goes back without counting as a delivery: when this ends, and when
this gateway must not call the address, which says nothing about the receiver.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ottla.client.wire.errors import WireError
from ottla.gateway.core.queues import Delivery, Queues, Settled, SettleError
from ottla.gateway.core.record_json import encode_record
from ottla.gateway.core.subscriptions import Retry, Settle, Subscription, after_call
from ottla.gateway.core.webhook_calls import (
    TIMEOUT_S,
    AddressRefused,
    Caller,
    CallFailed,
    WebhookAnswer,
    parse_url,
)
from ottla.gateway.core.webhook_signatures import parse_secret, sign

WAIT_MS: Final = 20_000
LOCK_MS: Final = int(TIMEOUT_S * 1000) + 15_000  # For a call, and to settle it.
SETTLE_TRIES: Final = 5

_EMPTY_PAUSE_S: Final = 0.1  # A stopping gateway does not wait for records.
_FIRST_PAUSE_S: Final = 0.5
_PAUSE_S_MAX: Final = 30.0
_CONCLUDE_S: Final = 5.0  # To settle what the receiver has answered, at the end.

logger = logging.getLogger("ottla.gateway")

Disable = Callable[[Subscription, str], Awaitable[None]]


class Deliveries:
    """Starts when created, ends with `close`."""

    def __init__(
        self, subscription: Subscription, queues: Queues, caller: Caller, disable: Disable
    ) -> None:
        self.subscription = subscription
        self._queues = queues
        self._caller = caller
        self._disable = disable
        self._url = parse_url(subscription.url)
        self._secret = parse_secret(subscription.secret)
        self._calls: set[asyncio.Task[None]] = set()
        # Received, and not answered by the receiver: put back if no answer comes.
        self._unanswered: dict[asyncio.Task[None], Delivery] = {}
        self.is_over = False  # Delivers no more: the receiver is gone, or must not be called.
        self._running = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        self._running.cancel()
        for task in list(self._unanswered):
            task.cancel()
        if concluding := self._calls - self._unanswered.keys():
            _, late = await asyncio.wait(concluding, timeout=_CONCLUDE_S)
            for task in late:
                task.cancel()
        await asyncio.gather(self._running, *self._calls, return_exceptions=True)

    async def _run(self) -> None:
        await self._wait_until_allowed()
        pause_s = _FIRST_PAUSE_S
        while not self.is_over:
            room = self.subscription.concurrency - len(self._calls)
            if not room:
                await asyncio.wait(self._calls, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                found = await self._queues.receive(
                    self.subscription.topic,
                    self.subscription.group,
                    count=room,
                    wait_ms=WAIT_MS,
                    lock_ms=LOCK_MS,
                )
            except WireError as error:
                logger.debug("webhook %s receives nothing: %s", self.subscription.id, error)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1))
                pause_s = min(2 * pause_s, _PAUSE_S_MAX)
                continue
            pause_s = _FIRST_PAUSE_S
            for delivery in found:
                task = asyncio.ensure_future(self._deliver(delivery))
                self._calls.add(task)
                self._unanswered[task] = delivery
                task.add_done_callback(self._on_delivered)
            if not found:
                await asyncio.sleep(_EMPTY_PAUSE_S)

    async def _wait_until_allowed(self) -> None:
        """Receive no records while all of the URL's addresses are forbidden to this gateway."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                await self._caller.addresses(self._url)
                return
            except AddressRefused as error:
                if pause_s == _FIRST_PAUSE_S:
                    logger.warning("webhook %s is not served here: %s", self.subscription.id, error)
            except CallFailed:
                return  # Counts as a delivery, like a receiver that does not answer.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def _on_delivered(self, task: asyncio.Task[None]) -> None:
        """A callback, because a task cancelled before its first step never runs."""
        self._calls.discard(task)
        delivery = self._unanswered.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("webhook %s has failed: %s", self.subscription.id, error, exc_info=error)
        elif delivery is not None:
            self._queues.put_back([delivery])

    async def _deliver(self, delivery: Delivery) -> None:
        if self.is_over:
            return  # Stays unanswered, so it is put back.
        if not self.subscription.filter.matches(delivery.opened.partition, delivery.record):
            self._on_answered()
            await self._settle(lambda: self._queues.acknowledge([delivery.handle]))
            return
        try:
            answer = await self._call(delivery)
        except AddressRefused as error:
            logger.warning("webhook %s stops delivering here: %s", self.subscription.id, error)
            self.is_over = True  # Its replacement waits until it may call.
            return
        self._on_answered()
        await self._conclude(delivery, answer)

    def _on_answered(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        del self._unanswered[task]

    async def _call(self, delivery: Delivery) -> WebhookAnswer | None:
        opened = delivery.opened
        body = encode_record(opened.topic, opened.partition, delivery.record)
        number = self.subscription.message_id(opened.partition, opened.offset)
        headers = {
            "content-type": "application/json",
            "ottla-delivery-count": str(opened.delivery_count),
            **sign(self._secret, number, int(time.time()), body),
        }
        try:
            return await self._caller.post(self._url, headers, body)
        except AddressRefused:
            raise
        except CallFailed as error:
            logger.info("webhook %s got no answer: %s", self.subscription.id, error)
            return None

    async def _conclude(self, delivery: Delivery, answer: WebhookAnswer | None) -> None:
        handles = [delivery.handle]
        verdict = after_call(self.subscription, answer, delivery.opened.delivery_count)
        match verdict:
            case Retry(delay_ms):
                await self._settle(lambda: self._queues.release(handles, delay_ms=delay_ms))
            case Settle.ACKNOWLEDGE:
                await self._settle(lambda: self._queues.acknowledge(handles))
            case Settle.REJECT:
                await self._settle(lambda: self._queues.reject(handles))
            case Settle.DISABLE:
                self.is_over = True
                self._queues.put_back([delivery])
                await self._disable(self.subscription, "the receiver answered 410 Gone")

    async def _settle(self, settle: Callable[[], Awaitable[list[Settled]]]) -> None:
        """What cannot be settled is redelivered when its lock expires."""
        pause_s = _FIRST_PAUSE_S
        for _ in range(SETTLE_TRIES):
            (settled,) = await settle()
            if settled.error is not SettleError.UNAVAILABLE:
                return
            await asyncio.sleep(pause_s)
            pause_s *= 2
