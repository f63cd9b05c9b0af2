"""Pairs that write, delete and read records."""

from functools import partial
from typing import Any

from tests.clients.pairs.pair import (
    Pair,
    Row,
    World,
    add_pairs,
    code_of_second,
    end_seen_by_second,
    fetch,
    list_offsets,
    new_topic,
    offset,
    only_code,
    pair,
    produce,
)
from tests.clients.requests import TIMEOUT
from tests.clients.versions import build_request

from ottla.protocol.errors import ErrorCode
from ottla.records.batch import read_header

DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_LOG_DIRS, DESCRIBE_PRODUCERS = 21, 23, 35, 61
EARLIEST, MAX_TIMESTAMP = -2, -3
WAIT_MS = 300


def delete_records(topic: str, before: int) -> Any:
    partition = {"partition_index": 0, "offset": before}
    topics = ({"name": topic, "partitions": (partition,)},)
    return build_request(DELETE_RECORDS, 2, {"topics": topics, "timeout": TIMEOUT})


def describe_log_dirs(topic: str) -> Any:
    topics = ({"topic": topic, "partitions": (0,)},)
    return build_request(DESCRIBE_LOG_DIRS, 4, {"topics": topics})


def describe_producers(topic: str) -> Any:
    topics = ({"name": topic, "partition_indexes": (0,)},)
    return build_request(DESCRIBE_PRODUCERS, 0, {"topics": topics})


def end_of_epoch(topic: str) -> Any:
    partition = {"partition": 0, "leader_epoch": 0}
    topics = ({"topic": topic, "partitions": (partition,)},)
    return build_request(OFFSET_FOR_LEADER_EPOCH, 4, {"topics": topics})


def records_count(response: Any) -> int | ErrorCode:
    """The base offset of the one fetched batch."""
    (partition,) = response.responses[0].partitions
    if partition.error_code is not ErrorCode.none:
        code: ErrorCode = partition.error_code
        return code
    return read_header(partition.records).records_count if partition.records else 0


def records_seen_by_first(first: Any, _: Any) -> int | ErrorCode:
    return records_count(first)


def produce_two(topic: str, *, acks: int) -> Any:
    return produce(topic, b"a", b"b", acks=acks)


def records_seen_by_second(_: Any, second: Any) -> int | ErrorCode:
    return records_count(second)


def is_on_disk(response: Any) -> bool:
    sizes: list[int] = [
        partition.partition_size
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
    ]
    return sum(sizes) > 0


def producers(response: Any) -> list[int]:
    ((found,),) = (topic.partitions for topic in response.topics)
    return [producer.producer_id for producer in found.active_producers]


for name, acks in (("produce", -1), ("produce_with_acks_1", 1), ("produce_with_acks_0", 0)):
    two = partial(produce_two, acks=acks)
    add_pairs(
        new_topic,
        {
            f"{name}_and_list_offsets": Row(two, list_offsets, end_seen_by_second, 2, acks != 0),
            f"{name}_and_fetch": Row(two, fetch, records_seen_by_second, 2, acks != 0),
        },
    )


@pair
def produce_and_list_offsets_by_timestamp(world: World) -> Pair:
    topic = world.topic()
    return Pair(produce(topic, b"a", b"b"), list_offsets(topic, 1), end_seen_by_second, 0)


@pair
def produce_and_list_offsets_of_max_timestamp(world: World) -> Pair:
    topic = world.topic()
    return Pair(produce(topic), list_offsets(topic, MAX_TIMESTAMP), end_seen_by_second, 0)


@pair
def produce_and_offset_for_leader_epoch(world: World) -> Pair:
    topic = world.topic()

    def end(_: Any, second: Any) -> int:
        found: int = second.topics[0].partitions[0].end_offset
        return found

    return Pair(produce(topic, b"a", b"b"), end_of_epoch(topic), end, 2)


@pair
def produce_and_describe_log_dirs(world: World) -> Pair:
    topic = world.topic()
    second = describe_log_dirs(topic)
    return Pair(produce(topic), second, lambda _, second: is_on_disk(second), True)


@pair
def produce_and_describe_producers(world: World) -> Pair:
    topic = world.topic()
    first = produce(topic, producer_id=4711, producer_epoch=0, base_sequence=0)
    return Pair(first, describe_producers(topic), lambda _, second: producers(second), [4711])


@pair
def produce_and_delete_records(world: World) -> Pair:
    topic = world.topic()
    first = produce(topic, b"a", b"b")
    return Pair(first, delete_records(topic, 2), code_of_second, ErrorCode.none)


@pair
def produce_with_acks_0_and_delete_records(world: World) -> Pair:
    topic = world.topic()
    return Pair(
        produce(topic, b"a", b"b", acks=0),
        delete_records(topic, 2),
        code_of_second,
        ErrorCode.none,
        first_is_answered=False,
    )


@pair
def produce_and_produce(world: World) -> Pair:
    topic = world.topic()
    first = produce(topic, b"a", b"b", producer_id=4711, producer_epoch=0, base_sequence=0)
    second = produce(topic, producer_id=4711, producer_epoch=0, base_sequence=2)

    def offsets(*responses: Any) -> list[int]:
        return [response.responses[0].partition_responses[0].base_offset for response in responses]

    return Pair(first, second, offsets, [0, 2])


@pair
def delete_records_and_list_offsets(world: World) -> Pair:
    topic = world.topic(b"a", b"b")
    return Pair(delete_records(topic, 1), list_offsets(topic, EARLIEST), end_seen_by_second, 1)


@pair
def delete_records_and_fetch(world: World) -> Pair:
    topic = world.topic(b"a", b"b")
    outside = ErrorCode.offset_out_of_range
    return Pair(delete_records(topic, 1), fetch(topic), records_seen_by_second, outside)


@pair
def delete_records_and_produce(world: World) -> Pair:
    topic = world.topic(b"a", b"b")

    def start(_: Any, second: Any) -> int:
        found: int = second.responses[0].partition_responses[0].log_start_offset
        return found

    return Pair(delete_records(topic, 1), produce(topic), start, 1)


@pair
def list_offsets_and_produce(world: World) -> Pair:
    topic = world.topic()
    return Pair(list_offsets(topic), produce(topic), lambda first, _: offset(first), 0)


@pair
def list_offsets_of_max_timestamp_and_produce(world: World) -> Pair:
    topic = world.topic()
    first = list_offsets(topic, MAX_TIMESTAMP)
    return Pair(first, produce(topic), lambda first, _: offset(first), -1)


@pair
def list_offsets_and_delete_records(world: World) -> Pair:
    topic = world.topic(b"a", b"b")
    first = list_offsets(topic, EARLIEST)
    return Pair(first, delete_records(topic, 1), lambda first, _: offset(first), 0)


@pair
def fetch_that_waits_and_produce(world: World) -> Pair:
    topic = world.topic()
    return Pair(fetch(topic, wait_ms=WAIT_MS), produce(topic), records_seen_by_first, 0)


@pair
def fetch_that_waits_and_list_offsets(world: World) -> Pair:
    """Another connection could write in between; here none does."""
    topic = world.topic()
    return Pair(fetch(topic, wait_ms=WAIT_MS), list_offsets(topic), end_seen_by_second, 0)


@pair
def fetch_and_delete_records(world: World) -> Pair:
    topic = world.topic(b"a", b"b")
    return Pair(fetch(topic), delete_records(topic, 2), records_seen_by_first, 2)


@pair
def describe_log_dirs_and_produce(world: World) -> Pair:
    topic = world.topic()
    first = describe_log_dirs(topic)
    return Pair(first, produce(topic), lambda first, _: is_on_disk(first), False)


@pair
def describe_producers_and_produce(world: World) -> Pair:
    topic = world.topic()
    second = produce(topic, producer_id=4711, producer_epoch=0, base_sequence=0)
    return Pair(describe_producers(topic), second, lambda first, _: producers(first), [])


@pair
def delete_records_and_delete_records(world: World) -> Pair:
    topic = world.topic(b"a", b"b")
    return Pair(
        delete_records(topic, 2),
        delete_records(topic, 1),
        lambda _, second: (only_code(second), second.topics[0].partitions[0].low_watermark),
        (ErrorCode.none, 2),
    )
