"""Deliveries of a webhook that ends: what no receiver has seen is returned."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from ottla.gateway.core.handles import Handle
from ottla.gateway.core.queues import Delivery, Queues, Settled
from ottla.gateway.core.subscriptions import Subscription
from ottla.gateway.core.webhook_calls import AddressRefused, Caller, Url, WebhookAnswer
from ottla.gateway.core.webhook_deliveries import Deliveries
from ottla.records.builder import Record

DELIVERY = Delivery(
    "handle",
    Handle("t", UUID(int=1), 0, 7, "g", 1, "m", 0),
    Record(offset=7, timestamp=0, value=b"value"),
    0,
)
SUBSCRIPTION = Subscription.create({"url": "http://receiver/", "topic": "t"}, 0)

Act = Callable[[], None]


class FakeQueues:
    """Returns one delivery; `on_more` is called when more is requested, before that is sent."""

    def __init__(self, on_more: Act = lambda: None) -> None:
        self.back: list[Delivery] = []
        self.acknowledged: list[str] = []
        self.asked, self.asked_for_more, self.got_back = (asyncio.Event() for _ in range(3))
        self._on_more = on_more

    async def receive(self, *_: str, **__: int) -> list[Delivery]:
        if not self.asked.is_set():
            self.asked.set()
            return [DELIVERY]
        self.asked_for_more.set()
        self._on_more()
        await asyncio.Event().wait()
        return []

    def put_back(self, deliveries: Sequence[Delivery]) -> None:
        self.back += deliveries
        self.got_back.set()

    async def acknowledge(self, handles: Sequence[str]) -> list[Settled]:
        await asyncio.sleep(0)
        self.acknowledged += handles
        return [Settled(handle, None) for handle in handles]


class FakeCaller:
    """`post` is the receiver."""

    def __init__(self, post: Callable[[], Any]) -> None:
        self.is_allowed = True
        self._post = post

    async def addresses(self, _: Url) -> list[str]:
        if not self.is_allowed:
            raise AddressRefused("not from here")
        return ["192.0.2.1"]

    async def post(self, *_: Url | Mapping[str, str] | bytes) -> WebhookAnswer:
        return cast("WebhookAnswer", await self._post())


async def never() -> None:
    raise AssertionError("this should not be disabled")


def begin(queues: FakeQueues, caller: FakeCaller) -> Deliveries:
    return Deliveries(
        SUBSCRIPTION, cast("Queues", queues), cast("Caller", caller), lambda *_: never()
    )


def test_one_that_was_not_begun_when_all_end_goes_back() -> None:
    def cancel_calls() -> None:
        for task in asyncio.all_tasks():
            coroutine = task.get_coro()
            if getattr(coroutine, "__name__", "") == "_deliver":
                task.cancel()

    async def run() -> None:
        queues = FakeQueues(on_more=cancel_calls)
        deliveries = begin(queues, FakeCaller(asyncio.Event().wait))
        await queues.asked_for_more.wait()
        await deliveries.close()
        assert queues.back == [DELIVERY]

    asyncio.run(run())


def test_one_that_the_receiver_has_not_answered_goes_back() -> None:
    async def run() -> None:
        called = asyncio.Event()

        async def post() -> WebhookAnswer:
            called.set()
            await asyncio.Event().wait()
            return WebhookAnswer(200)

        queues = FakeQueues()
        deliveries = begin(queues, FakeCaller(post))
        await called.wait()
        await deliveries.close()
        assert (queues.back, queues.acknowledged) == ([DELIVERY], [])

    asyncio.run(run())


def test_what_the_receiver_has_taken_is_acknowledged_before_the_end() -> None:
    async def run() -> None:
        answered = asyncio.Event()

        async def post() -> WebhookAnswer:
            answered.set()
            return WebhookAnswer(200)

        queues = FakeQueues()
        deliveries = begin(queues, FakeCaller(post))
        await answered.wait()
        await deliveries.close()
        assert (queues.back, queues.acknowledged) == ([], ["handle"])

    asyncio.run(run())


def test_one_to_an_address_that_must_not_be_called_goes_back() -> None:
    async def run() -> None:
        async def post() -> WebhookAnswer:
            raise AddressRefused("not from here")

        queues = FakeQueues()
        deliveries = begin(queues, FakeCaller(post))
        await queues.got_back.wait()
        assert deliveries.is_over
        await deliveries.close()
        assert queues.back == [DELIVERY]

    asyncio.run(run())


def test_nothing_is_received_while_the_address_must_not_be_called() -> None:
    async def run() -> None:
        queues = FakeQueues()
        caller = FakeCaller(asyncio.Event().wait)
        caller.is_allowed = False
        deliveries = begin(queues, caller)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not queues.asked.is_set()
        caller.is_allowed = True
        await queues.asked.wait()
        await deliveries.close()

    asyncio.run(run())
