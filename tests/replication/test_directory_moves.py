"""Replicas move between log directories while they are written to, followed and read."""

import asyncio

import pytest
from tests.kits.brokers import BrokerOfCluster, Cluster, run
from tests.kits.world import until
from tests.storage.batches import read_all

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.replication.partition import FlushPolicy

ORDERS = TopicPartition("orders", 0)


async def move(
    broker: BrokerOfCluster, path: str, topic_partition: TopicPartition = ORDERS
) -> None:
    await broker.run(broker.served.directory_moves.request(topic_partition, path))


def path_of(broker: BrokerOfCluster) -> str:
    return broker.log("orders").log_directory.path


async def arrive(broker: BrokerOfCluster, path: str) -> None:
    await until(lambda: path_of(broker) == path and not broker.logs.futures.all)


async def retired(broker: BrokerOfCluster, path: str) -> None:
    """The former directory is out of the way."""
    await until(lambda: "orders-0" not in broker.disk.list(path))


def hold_up_moves(broker: BrokerOfCluster) -> None:
    broker.replicas.throttle.directory_moves.set_rate(1)
    broker.replicas.throttle.directory_moves.spend(1000)


def test_a_move_goes_on_when_its_throttle_is_raised() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1, 2))
        leader = cluster.brokers[1]
        await leader.produce("orders", "one")
        hold_up_moves(leader)
        await move(leader, "/b")
        await asyncio.sleep(2)
        assert path_of(leader) == "/a"
        leader.replicas.throttle.directory_moves.set_rate(1_000_000)
        async with asyncio.timeout(2):
            await arrive(leader, "/b")

    run(test, broker_ids=(1, 2), directories=("/a", "/b"))


@pytest.mark.parametrize("policy", [FlushPolicy.ACK, FlushPolicy.OS])
@pytest.mark.parametrize("mover", [1, 2])
def test_a_leader_and_a_follower_move_while_records_come(policy: FlushPolicy, mover: int) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1, 2))
        leader, broker = cluster.brokers[1], cluster.brokers[mover]
        values = [f"before {number}" for number in range(50)]
        await leader.produce("orders", *values)
        moved: list[TopicPartition] = []
        broker.served.directory_moves.on_moved = moved.append
        for path in ("/b", "/a", "/b"):
            await move(broker, path)
            while path_of(broker) != path:
                values.append(f"{path} {len(values)}")
                await leader.produce("orders", values[-1])
            await retired(broker, "/a" if path == "/b" else "/b")
            values.append(f"after {path}")
            await leader.produce("orders", values[-1])
        assert moved == [ORDERS] * 3
        assert leader.values("orders", committed=True) == values
        follower = cluster.brokers[2]
        await until(lambda: follower.values("orders", committed=True) == values)
        assert read_all(leader.log("orders")) == read_all(follower.log("orders"))

    run(test, broker_ids=(1, 2), policy=policy, directories=("/a", "/b"))


def test_a_leader_is_read_by_its_follower_right_through_a_move() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1, 2))
        leader = cluster.brokers[1]
        partition = leader.partition("orders")
        for number in range(20):
            await leader.produce("orders", f"{number}")
        first = partition.read(0, 1, committed_only=False)
        assert first is not None
        former = partition.log
        await move(leader, "/b")
        await arrive(leader, "/b")
        await retired(leader, "/a")
        offset, found = first.next_offset, 1
        while (part := partition.read(offset, 1, committed_only=False)) is not None:
            offset, found = part.next_offset, found + 1
        assert (offset, found) == (20, 20)
        assert partition.log is not former
        assert first.read()

    run(test, broker_ids=(1, 2), directories=("/a", "/b"))


def test_what_is_refused_and_what_is_called_off() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1,))
        broker = cluster.brokers[1]
        futures = broker.logs.futures

        async def code_of(topic_partition: TopicPartition, path: str) -> ErrorCode:
            with pytest.raises(ApiError) as caught:
                await move(broker, path, topic_partition)
            return caught.value.code

        assert await code_of(ORDERS, "/nowhere") is ErrorCode.log_dir_not_found
        absent = TopicPartition("absent", 0)
        assert await code_of(absent, "/b") is ErrorCode.unknown_topic_or_partition
        await cluster.create("elsewhere", (2,))
        elsewhere = TopicPartition("elsewhere", 0)
        assert await code_of(elsewhere, "/c") is ErrorCode.replica_not_available
        hold_up_moves(broker)
        await move(broker, path_of(broker))
        assert futures.all == {}
        await move(broker, "/b")
        first = futures.all[ORDERS]
        await move(broker, "/b")
        assert futures.all[ORDERS] is first
        await move(broker, "/c")
        assert futures.all[ORDERS] is not first
        await move(broker, "/a")
        assert futures.all == {}
        assert path_of(broker) == "/a"
        broker.logs.log_dirs.online()[2].on_error(OSError(5, "broken"))
        assert await code_of(ORDERS, "/c") is ErrorCode.kafka_storage_error
        assert await code_of(ORDERS, "/b") is ErrorCode.kafka_storage_error

    run(test, broker_ids=(1,), directories=("/a", "/b", "/c"))


def test_a_move_goes_on_after_a_crash() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1,))
        broker = cluster.brokers[1]
        await broker.produce("orders", *map(str, range(100)))
        hold_up_moves(broker)
        await move(broker, "/b")
        await broker.produce("orders", "last")
        assert path_of(broker) == "/a"
        await cluster.crash(1)
        again = await cluster.restart(1)
        await arrive(again, "/b")
        assert again.values("orders") == [*map(str, range(100)), "last"]

    run(test, broker_ids=(1,), directories=("/a", "/b"))


@pytest.mark.parametrize("seed", range(8))
def test_what_was_answered_holds_though_the_power_fails(seed: int) -> None:
    """A started move continues, and a cancelled one does not come back."""

    async def test(cluster: Cluster) -> None:
        await cluster.create("orders", (1,))
        await cluster.create("payments", (1,))
        broker, payments = cluster.brokers[1], TopicPartition("payments", 0)
        await broker.produce("orders", "kept")
        await broker.produce("payments", "kept")
        hold_up_moves(broker)
        source = broker.log("payments").log_directory.path
        await move(broker, "/c")
        await move(broker, "/c", payments)
        await move(broker, source, payments)
        await cluster.crash(1)
        again = await cluster.restart(1)
        await arrive(again, "/c")
        assert again.log("payments").log_directory.path == source
        assert again.values("orders") == again.values("payments") == ["kept"]

    run(test, broker_ids=(1,), directories=("/a", "/b", "/c"), seed=seed)
