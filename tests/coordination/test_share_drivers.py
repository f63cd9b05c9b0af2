"""The share group driver of a broker: writing, losing and pruning share-partition state."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from kio.static.primitive import i8, i16, i64
from tests.controller.test_topics import creation, topic
from tests.kits.single_node import SingleNode
from tests.kits.world import until

from ottla.coordination.delayed_share_fetch import DelayedShareFetch, ShareFetched, ShareFetchTerms
from ottla.coordination.share_partitions import LedSharePartition
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.acquisition import AcquiredRange, LogBatch
from ottla.groups.share.delivery import Acknowledgement
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareState
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.internal_topics import create_internal_topic
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.delivery_acknowledge import Delivery, DeliveryAcknowledgeType
from ottla.protocol.topics import SHARE_GROUP_STATE_TOPIC
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.runtime.clock import Clock

StartNode = Callable[..., SingleNode]

ACCEPT, RELEASE = (1,), (2,)
GROUP = "g"


@pytest.fixture
def start_node_with() -> Iterator[StartNode]:
    nodes: list[SingleNode] = []

    def start(**config: Any) -> SingleNode:
        node = SingleNode(share_coordinator_state_topic_num_partitions=1, **config)
        nodes.append(node)
        node.call(handle_create_topics, creation(topic("orders", 1, 1)))
        node.append("orders", 0, *range(10))
        node.run(create_internal_topic(node.broker, SHARE_GROUP_STATE_TOPIC))
        node.run(until(lambda: node.broker.share.coordinators.is_served(0)))
        return node

    yield start
    for node in nodes:
        node.close()


@pytest.fixture
def node(start_node_with: StartNode) -> SingleNode:
    node = start_node_with()
    node.run(node.broker.share.persister.initialize(key(node), 1, 0))
    return node


def key(node: SingleNode) -> SharePartitionKey:
    topic_id = node.image.topic_id("orders")
    assert topic_id is not None
    return SharePartitionKey(GROUP, topic_id, 0)


def find(node: SingleNode) -> LedSharePartition:
    return node.run(node.broker.share.partitions.find(GROUP, TopicIdPartition(*key(node)[1:])))


def acquire(
    led: LedSharePartition, member: str, first: int, last: int
) -> tuple[AcquiredRange, ...]:
    batches = [LogBatch(offset, offset) for offset in range(first, last + 1)]
    acquired, _ = led.acquire(member, first, batches, records_max=100, batch_size=500)
    return acquired


def summary(node: SingleNode) -> ShareState:
    return node.run(node.broker.share.persister.read_summary(key(node)))


def test_a_share_partition_is_loaded_once(node: SingleNode) -> None:
    async def both() -> list[LedSharePartition]:
        topic_partition = TopicIdPartition(*key(node)[1:])
        return await asyncio.gather(
            *(node.broker.share.partitions.find(GROUP, topic_partition) for _ in range(2))
        )

    first, second = node.run(both())
    assert first is second


def test_dropped_share_partitions_refuse_and_are_loaded_again(node: SingleNode) -> None:
    led = find(node)
    assert acquire(led, "a", 0, 3) == (AcquiredRange(0, 3, 1),)
    node.run(led.acknowledge("a", [Acknowledgement(0, 1, ACCEPT)]))
    node.broker.share.partitions.drop(key(node))

    with pytest.raises(ApiError) as refused:
        led.fetch_offset()
    assert refused.value.code is ErrorCode.not_leader_or_follower
    again = find(node)
    assert acquire(again, "b", 2, 3) == (AcquiredRange(2, 3, 2),)


def test_a_state_that_was_made_anew_fences_the_one_in_memory(node: SingleNode) -> None:
    led = find(node)
    acquire(led, "a", 0, 3)
    node.run(node.broker.share.persister.initialize(key(node), 2, 5))

    with pytest.raises(ApiError) as refused:
        node.run(led.acknowledge("a", [Acknowledgement(0, 1, ACCEPT)]))

    assert refused.value.code is ErrorCode.not_leader_or_follower
    assert find(node).fetch_offset() == 5


def test_a_share_partition_without_state_is_not_served(node: SingleNode) -> None:
    with pytest.raises(ApiError) as refused:
        node.run(node.broker.share.partitions.find("other", TopicIdPartition(*key(node)[1:])))
    assert refused.value.code is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize(
    ("reset", "offset"),
    [("earliest", 0), ("latest", 10), ("by_duration:PT1H", 10), ("by_duration:P36500D", 0)],
)
def test_where_a_group_begins_is_written_down(
    start_node_with: StartNode, reset: str, offset: int
) -> None:
    node = start_node_with(group_share_auto_offset_reset=reset)
    node.run(node.broker.share.persister.initialize(key(node)._replace(group_id="new"), 1, -1))

    led = node.run(node.broker.share.partitions.find("new", TopicIdPartition(*key(node)[1:])))

    assert led.fetch_offset() == offset
    share_partition = key(node)._replace(group_id="new")
    assert (
        node.run(node.broker.share.persister.read_summary(share_partition)).start_offset == offset
    )


def test_pruning_keeps_the_state(node: SingleNode) -> None:
    led = find(node)
    for offset in range(8):
        acquire(led, "a", offset, offset)
        node.run(led.acknowledge("a", [Acknowledgement(offset, offset, ACCEPT)]))
    acquire(led, "a", 8, 9)
    before = summary(node)
    log = node.partition(SHARE_GROUP_STATE_TOPIC, 0).log
    end_offset = log.log_end_offset

    node.run(node.broker.share.pruning.prune(0, records_min=1))

    assert log.log_start_offset == end_offset
    assert log.log_end_offset == end_offset + 1
    assert summary(node).batches == before.batches
    assert summary(node).start_offset == 8
    node.run(led.acknowledge("a", [Acknowledgement(8, 9, ACCEPT)]))
    assert summary(node).start_offset == 10


def hold(
    node: SingleNode, led: LedSharePartition, first: int, last: int, hold_ms: int = 3_600_000
) -> tuple[AcquiredRange, ...]:
    batches = [LogBatch(offset, offset) for offset in range(first, last + 1)]

    async def held() -> tuple[AcquiredRange, ...]:
        acquired, written = led.acquire(
            "a", first, batches, records_max=100, batch_size=500, hold_ms=hold_ms
        )
        await written
        return acquired

    return node.run(held())


def settle(
    node: SingleNode,
    led: LedSharePartition,
    first: int,
    last: int,
    kind: DeliveryAcknowledgeType,
    **terms: Any,
) -> list[ApiError | None]:
    delivery = Delivery(
        first_offset=i64(first),
        last_offset=i64(last),
        holder="a",
        delivery_count=i16(1),
        type=i8(kind),
        **terms,
    )
    return node.run(led.acknowledge_deliveries([delivery]))


def test_pruning_and_loading_keep_what_is_parked(node: SingleNode) -> None:
    assert hold(node, find(node), 0, 5) == (AcquiredRange(0, 5, 1),)
    settle(node, find(node), 2, 2, DeliveryAcknowledgeType.ACCEPT)
    assert (summary(node).start_offset, summary(node).parked_count) == (6, 5)

    node.run(node.broker.share.pruning.prune(0, records_min=1))
    node.run(node.broker.share.coordinators.at(0).load())
    node.broker.share.partitions.drop(key(node))

    assert (summary(node).start_offset, summary(node).parked_count) == (6, 5)
    led = find(node)
    assert led.due_offsets(10) == []
    assert settle(node, led, 3, 5, DeliveryAcknowledgeType.ACCEPT) == [None]
    assert summary(node).parked_count == 2


def test_state_that_was_made_anew_has_nothing_parked(node: SingleNode) -> None:
    hold(node, find(node), 0, 5)

    node.run(node.broker.share.persister.initialize(key(node), 2, 3))

    assert (summary(node).start_offset, summary(node).parked_count) == (3, 0)


def test_parked_records_that_retention_removed_are_counted(
    node: SingleNode, caplog: pytest.LogCaptureFixture
) -> None:
    led = find(node)
    hold(node, led, 0, 5)
    node.partition("orders", 0).log.delete_records_before(4)

    led.refresh(node.broker.share.config(GROUP))

    assert "4 records of orders-0 that were held or waited" in caplog.text
    node.run(led.acknowledge("b", []))
    assert summary(node).parked_count == 2


TERMS = ShareFetchTerms(
    max_wait_ms=0,
    min_bytes=1,
    max_bytes=1 << 20,
    records_max=4,
    batch_size=None,
    committed_only=False,
    hold_ms=3_600_000,
)


class CountingExecutor(Executor):
    def __init__(self, executor: Executor) -> None:
        self.count = 0
        self._executor = executor

    def submit(self, *arguments: Any, **named: Any) -> Future[Any]:
        self.count += 1
        return self._executor.submit(*arguments, **named)


def fetched_with_reads_in_threads(
    node: SingleNode, terms: ShareFetchTerms = TERMS
) -> tuple[tuple[AcquiredRange, ...], int]:
    """The records acquired by a fetch, and its number of reads in a thread."""
    led, topic_partition = find(node), TopicIdPartition(*key(node)[1:])
    executor = CountingExecutor(node.broker.process.executor)

    async def fetch() -> dict[TopicIdPartition, ShareFetched]:
        loop = asyncio.get_running_loop()
        return await DelayedShareFetch("a", {topic_partition: led}, terms, loop, executor).run()

    return node.run(fetch())[topic_partition].acquired, executor.count


def test_records_in_the_page_cache_are_read_without_a_thread(node: SingleNode) -> None:
    assert fetched_with_reads_in_threads(node) == ((AcquiredRange(0, 3, 1),), 0)


def test_records_on_the_disk_are_read_in_a_thread(node: SingleNode) -> None:
    log = node.partition("orders", 0).log
    node.disk.evict(log.segments[0].path)
    assert fetched_with_reads_in_threads(node) == ((AcquiredRange(0, 3, 1),), 1)


def test_transactions_are_looked_up_in_a_thread(node: SingleNode) -> None:
    terms = dataclasses.replace(TERMS, committed_only=True)
    assert fetched_with_reads_in_threads(node, terms) == ((AcquiredRange(0, 3, 1),), 1)


@pytest.mark.parametrize(("compression", "count"), [(0, 0), (1, 1)])
def test_records_are_decompressed_for_their_times_in_a_thread(
    node: SingleNode, compression: int, count: int
) -> None:
    log = node.partition("orders", 0).log
    log.config = dataclasses.replace(log.config, delivery_delay_enable=True)
    batch = build_batch([Record(timestamp=0, value=b"value")], compression=compression)
    log.append_as_leader(memoryview(batch), read_header(batch), 0, 0)
    log.flush()
    log.high_watermark = log.log_end_offset
    terms = dataclasses.replace(TERMS, records_max=20)
    assert fetched_with_reads_in_threads(node, terms) == ((AcquiredRange(0, 10, 1),), count)


def test_what_is_held_for_one_who_goes_meanwhile_is_put_back_uncounted(
    node: SingleNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    led, topic_partition = find(node), TopicIdPartition(*key(node)[1:])
    acquire_for = led.acquire

    async def fetch(*, goes: bool) -> dict[TopicIdPartition, ShareFetched]:
        fetch = DelayedShareFetch(
            "a",
            {topic_partition: led},
            TERMS,
            asyncio.get_running_loop(),
            node.broker.process.executor,
        )

        def acquire_and_go(
            *arguments: Any, **named: Any
        ) -> tuple[tuple[AcquiredRange, ...], asyncio.Future[Any]]:
            acquired = acquire_for(*arguments, **named)
            if goes:
                fetch.abandon()
            return acquired

        monkeypatch.setattr(led, "acquire", acquire_and_go)
        return await fetch.run()

    assert node.run(fetch(goes=True)) == {}
    assert led.due_offsets(10) == [0, 1, 2, 3]
    assert node.run(fetch(goes=False))[topic_partition].acquired == (AcquiredRange(0, 3, 1),)


def test_whoever_waits_is_woken_when_a_time_comes(node: SingleNode) -> None:
    led = find(node)
    hold(node, led, 0, 5)
    settle(node, led, 1, 1, DeliveryAcknowledgeType.RELEASE, delay_ms=20)

    async def woken() -> None:
        news = asyncio.Event()
        led.wait(news.set)
        while led.due_offsets(10) == []:
            await news.wait()
            news.clear()
        led.stop_waiting(news.set)

    node.run(woken())
    assert led.due_offsets(10) == [1]


class SetClock:
    """A clock that a test sets."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.set_by_ms

    def monotonic_ms(self) -> float:
        return self._clock.monotonic_ms()


@pytest.mark.parametrize("set_by_ms", [-86_400_000, 86_400_000])
def test_locks_last_as_long_when_the_clock_is_set(node: SingleNode, set_by_ms: int) -> None:
    clock = node.broker.share.partitions.clock = SetClock(node.broker.share.partitions.clock)
    led = find(node)
    acquire(led, "a", 0, 1)
    clock.set_by_ms = set_by_ms
    acquire(led, "b", 2, 3)

    runs = {run.member_id: run for run in led.state.runs()}
    assert abs(runs["b"].lock_until_ms - runs["a"].lock_until_ms) < 60_000
    assert runs["a"].lock_until_ms > clock.now_ms()


def lose_records(node: SingleNode, log_end_offset: int) -> None:
    """As an unclean election does; the next fetch is served by a leader that begins."""
    node.broker.share.partitions.drop(key(node))
    log = node.partition("orders", 0).log
    log.truncate_to(log_end_offset)
    log.high_watermark = log_end_offset


def test_a_group_with_key_order_does_not_wait_for_lost_records(
    start_node_with: StartNode,
) -> None:
    node = start_node_with(group_share_record_order="key")
    node.run(node.broker.share.persister.initialize(key(node), 1, 0))
    terms = dataclasses.replace(TERMS, hold_ms=0, records_max=10)
    fetched_with_reads_in_threads(node, terms)
    node.run(find(node).acknowledge("a", [Acknowledgement(0, 7, RELEASE)]))
    lose_records(node, 6)

    acquired, _ = fetched_with_reads_in_threads(node, terms)

    assert acquired == (AcquiredRange(0, 5, 2),)


def test_unconfirmed_records_are_not_lost(node: SingleNode) -> None:
    led = find(node)
    acquire(led, "a", 0, 9)
    node.run(led.acknowledge("a", [Acknowledgement(8, 9, ACCEPT)]))
    before = summary(node)
    node.broker.share.partitions.drop(key(node))
    node.partition("orders", 0).log.high_watermark = 3

    find(node)

    assert summary(node) == before


def test_records_at_the_offsets_of_lost_ones_are_new(node: SingleNode) -> None:
    led = find(node)
    acquire(led, "a", 0, 9)
    node.run(led.acknowledge("a", [Acknowledgement(2, 9, ACCEPT)]))
    lose_records(node, 6)
    find(node)
    node.append("orders", 0, *range(2))
    node.broker.share.partitions.drop(key(node))

    led = find(node)

    assert acquire(led, "b", 0, 9) == (AcquiredRange(0, 1, 2), AcquiredRange(6, 9, 1))


def test_held_records_that_were_lost_are_told(
    node: SingleNode, caplog: pytest.LogCaptureFixture
) -> None:
    hold(node, find(node), 0, 5)
    lose_records(node, 4)

    assert find(node).state.parked_count == 4

    assert "2 records of orders-0 that were held or waited" in caplog.text
    assert summary(node).parked_count == 4
