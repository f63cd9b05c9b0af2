"""A broker and its controller: the real machine, without a log or a network."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest
from tests.controller.cluster import CLUSTER_ID, Cluster
from tests.log_messages import messages_of

from ottla.controller.features import FEATURES
from ottla.network.endpoints import Endpoint
from ottla.node.registration import BrokerIdentity, Registration
from ottla.protocol.errors import ApiError, ErrorCode

TIMEOUT_S = 20
LISTENERS = (Endpoint("PLAINTEXT", "localhost", 9092),)


class DirectController:
    """Answers at once, using the machine's operations."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.error: ApiError | None = None

    async def call(self, request: object) -> Any:
        if isinstance(request, BrokerHeartbeatRequest):
            self.heartbeats.append(request)
            if self.error is not None:
                raise self.error
        return self.cluster.call(request)


class Kit:
    def __init__(self, brokers: int) -> None:
        self.cluster = Cluster(brokers)
        self.controller = DirectController(self.cluster)
        self.epochs: list[int] = []

    def registration(self, broker_id: int, heartbeat_interval_ms: int = 1) -> Registration:
        controller: Any = self.controller
        return Registration(
            controller=controller,
            identity=BrokerIdentity(
                broker_id, CLUSTER_ID, UUID(int=500), (UUID(int=1),), previous_epoch=-1
            ),
            metadata_offset=lambda: len(self.cluster.records),
            heartbeat_interval_ms=heartbeat_interval_ms,
            on_epoch=self.epochs.append,
        )


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.001)


async def turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


def test_a_broker_registers_with_its_disk_and_what_it_knows() -> None:
    kit = Kit(brokers=0)

    async def run() -> None:
        registration = kit.registration(4)
        await registration.register(LISTENERS, "r")
        await registration.wait_until_unfenced()
        broker = kit.cluster.image.brokers[4]
        assert (broker.rack, broker.log_dirs, broker.fenced) == ("r", (UUID(int=1),), False)
        assert [feature.name for feature in broker.features] == list(FEATURES)
        assert kit.epochs == [registration.epoch] == [broker.broker_epoch]

    asyncio.run(run())


def test_a_new_life_waits_for_the_end_of_the_last_one() -> None:
    kit = Kit(brokers=1)

    async def run() -> None:
        registering = asyncio.ensure_future(kit.registration(1).register(LISTENERS, None))
        await asyncio.sleep(0.01)
        assert not registering.done()
        kit.cluster.expire_session(1)
        await registering

    asyncio.run(run())


def test_a_broker_that_was_forgotten_registers_again() -> None:
    kit = Kit(brokers=0)

    async def run() -> None:
        registration = kit.registration(4)
        await registration.register(LISTENERS, None)
        first = registration.epoch
        alive = asyncio.ensure_future(registration.keep_alive())
        await until(lambda: not kit.cluster.image.brokers[4].fenced)
        del kit.cluster.image.brokers[4]
        await until(lambda: 4 in kit.cluster.image.brokers)
        await until(lambda: not kit.cluster.image.brokers[4].fenced)
        assert registration.epoch > first
        assert kit.epochs == [first, registration.epoch]
        alive.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("turns", range(5))
def test_heartbeats_end_when_they_are_cancelled_in_a_hurry(turns: int) -> None:
    kit = Kit(brokers=0)

    async def run() -> None:
        registration = kit.registration(4, heartbeat_interval_ms=3_600_000)
        await registration.register(LISTENERS, None)
        alive = asyncio.ensure_future(registration.keep_alive())
        await turn(5)
        registration.hurry()
        await turn(turns)
        alive.cancel()
        await asyncio.wait([alive], timeout=TIMEOUT_S)
        assert alive.cancelled()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (ErrorCode.request_timed_out, "a heartbeat of this broker had no answer: nobody there"),
        (
            ErrorCode.unsupported_version,
            "a heartbeat of this broker was refused by the controller: nobody there",
        ),
    ],
)
def test_heartbeats_in_vain_are_told_once_and_by_their_true_cause(
    code: ErrorCode, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    kit = Kit(brokers=0)

    async def run() -> None:
        registration = kit.registration(4)
        await registration.register(LISTENERS, None)
        await registration.wait_until_unfenced()
        kit.controller.error = ApiError(code, "nobody there")
        alive = asyncio.ensure_future(registration.keep_alive())
        seen = len(kit.controller.heartbeats)
        await until(lambda: len(kit.controller.heartbeats) > seen + 5)
        kit.controller.error = None
        await until(lambda: "the controller answers heartbeats again" in caplog.messages)
        alive.cancel()

    caplog.set_level("INFO")
    asyncio.run(run())
    messages = messages_of("ottla.node.registration", caplog)
    assert messages == [line, "the controller answers heartbeats again"]


def test_a_broker_leaves_when_it_may() -> None:
    kit = Kit(brokers=0)

    async def run() -> None:
        registration = kit.registration(4)
        await registration.register(LISTENERS, None)
        await registration.wait_until_unfenced()
        await registration.leave()
        assert kit.controller.heartbeats[-1].want_shut_down
        assert kit.cluster.image.brokers[4].fenced

    asyncio.run(run())


def test_a_broker_that_never_registered_just_stops() -> None:
    kit = Kit(brokers=0)
    asyncio.run(kit.registration(4).leave())
    assert kit.controller.heartbeats == []
