"""A share coordinator on another broker behaves like one in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.types import TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from ottla.coordination.remote_share_coordinator import Exchange, RemoteShareCoordinator
from ottla.coordination.share_persister import SharePersister
from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.state_coordinator import NO_OFFSET, SharePartitionKey, StateWrite
from ottla.network.peers import Peers
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.runtime.other_brokers import OtherBrokers

pytestmark = pytest.mark.process

R = TypeVar("R")
Run = Callable[[Callable[["Remote"], Awaitable[R]]], R]


def exchange_with(peers: Peers, address: Address) -> Exchange:
    """Requests to a broker at this address."""
    end_point = SimpleNamespace(name="PLAINTEXT", host=address.host, port=address.port)
    image: Any = SimpleNamespace(brokers={1: SimpleNamespace(end_points=(end_point,))})
    return partial(OtherBrokers(image, peers, "PLAINTEXT").asking("share state", 10_000), 1)


class Remote:
    """A broker that coordinates a share-partition, seen from another one."""

    def __init__(self, peers: Peers, address: Address) -> None:
        self._exchange = exchange_with(peers, address)
        loop = asyncio.get_running_loop()
        self.coordinator = RemoteShareCoordinator(self._exchange, loop)
        self.persister = SharePersister(lambda _: self.coordinator)

    async def prepare(self) -> SharePartitionKey:
        """A topic, and the topic of its state."""
        name = TopicName(f"topic-{uuid4()}")
        topic = CreatableTopic(
            name=name, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        timeout: i32Timedelta = milliseconds(30_000)
        created = await self._exchange(CreateTopicsRequest(topics=(topic,), timeout=timeout))
        topic_id = created.topics[0].topic_id
        assert isinstance(topic_id, UUID)
        key = SharePartitionKey(f"group-{uuid4()}", topic_id, 0)
        await self._exchange(
            FindCoordinatorRequest(key_type=i8(2), coordinator_keys=(key.coordinator_key,))
        )
        return key


@pytest.fixture
def run(bootstrap: str) -> Run[Any]:
    host, _, port = bootstrap.rpartition(":")

    def run(use: Callable[[Remote], Awaitable[R]]) -> R:
        async def main() -> R:
            peers = Peers(asyncio.get_running_loop(), "node-2", lambda: 0.5)
            try:
                return await use(Remote(peers, Address(host, int(port))))
            finally:
                peers.close()

        return asyncio.run(main())

    return run


def done(first: int, last: int) -> StateBatch:
    return StateBatch(first, last, DeliveryState.ACKNOWLEDGED, 1)


def test_state_is_kept_and_given_back(run: Run[None]) -> None:
    async def use(remote: Remote) -> None:
        key = await remote.prepare()
        await remote.persister.initialize(key, 3, 10)
        available = StateBatch(15, 16, DeliveryState.AVAILABLE, 2)
        write = StateWrite(3, 7, 12, (done(12, 14), available), delivery_complete_count=3)
        await remote.persister.write(key, write)

        state = await remote.persister.read(key, 8)
        assert (state.state_epoch, state.leader_epoch, state.start_offset) == (3, 8, 12)
        assert state.batches == (done(12, 14), available)
        summary = await remote.persister.read_summary(key)
        assert (summary.start_offset, summary.delivery_complete_count) == (12, 3)
        assert (summary.state_epoch, summary.leader_epoch) == (3, 8)

        await remote.persister.delete(key)
        assert (await remote.persister.read_summary(key)).start_offset == NO_OFFSET

    run(use)


def test_refusals_come_back(run: Run[None]) -> None:
    async def use(remote: Remote) -> None:
        key = await remote.prepare()
        await remote.persister.initialize(key, 3, 0)
        await remote.persister.read(key, 8)

        with pytest.raises(ApiError, match="leader epoch 7") as refused:
            await remote.persister.write(key, StateWrite(3, 7, NO_OFFSET, ()))
        assert refused.value.code is ErrorCode.fenced_leader_epoch
        with pytest.raises(ApiError) as refused:
            await remote.persister.read(key._replace(group_id="nobody"), 0)
        assert refused.value.code is ErrorCode.invalid_request

    run(use)


def test_writes_take_effect_in_the_order_of_the_calls(run: Run[None]) -> None:
    async def use(remote: Remote) -> None:
        key = await remote.prepare()
        await remote.persister.initialize(key, 0, 0)
        writes = [remote.persister.write(key, StateWrite(0, 0, offset, ())) for offset in range(50)]
        await asyncio.gather(*writes)

        assert (await remote.persister.read(key, 0)).start_offset == 49

    run(use)


def test_writes_are_counted_from_the_read_on(run: Run[None]) -> None:
    async def use(remote: Remote) -> None:
        key = await remote.prepare()
        await remote.persister.initialize(key, 0, 0)
        await remote.persister.read(key, 0, 5)
        await remote.persister.write(key, StateWrite(0, 0, 1, (), writer=5, sequence=0))

        with pytest.raises(ApiError, match="a write before this one") as refused:
            await remote.persister.write(key, StateWrite(0, 0, 3, (), writer=5, sequence=2))
        assert refused.value.code is ErrorCode.fenced_leader_epoch
        assert (await remote.persister.read(key, 0)).start_offset == 1

    run(use)


def test_a_broker_that_is_gone_is_a_coordinator_that_is_not_available() -> None:
    async def main() -> None:
        peers = Peers(asyncio.get_running_loop(), "node-2", lambda: 0.5)
        nowhere = RemoteShareCoordinator(
            exchange_with(peers, Address("127.0.0.1", 1)), asyncio.get_running_loop()
        )
        key = SharePartitionKey("g", UUID(int=1), 0)
        with pytest.raises(ApiError) as refused:
            await nowhere.write(key, StateWrite(0, 0, NO_OFFSET, ()))
        assert refused.value.code is ErrorCode.coordinator_not_available
        peers.close()

    asyncio.run(main())
