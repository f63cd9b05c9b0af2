"""When, and how, a produce request that waits for its partitions is answered."""

import asyncio

import pytest
from kio.schema.produce.v13.request import PartitionProduceData
from tests.clients.requests import batch
from tests.controller.test_topics import creation, topic
from tests.kits.single_node import Client, SingleNode
from tests.kits.world import until

from ottla.handlers.acknowledgement import Acknowledgement
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader
from ottla.protocol.hot_produce import PartitionResult, TopicResult
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.records.batch import read_header
from ottla.replication.followers import FollowerFetch, Followers
from ottla.replication.partition_leader import ACKS_ALL

PRODUCE = 0
VERSION = 12
LAG_MAX_MS = 600_000


@pytest.fixture
def node(node: SingleNode) -> SingleNode:
    """A node that leads two partitions, each with a silent in-sync follower."""
    node.call(handle_create_topics, creation(topic("orders", 2, 1)))
    for index in (0, 1):
        followers = Followers(1, 0, lambda replica, epoch: True, LAG_MAX_MS)
        followers.update((1, 2), (1, 2), 0, 0)
        node.partition("orders", index).become_leader(0, (1, 2), followers)
    return node


def produce(node: SingleNode, *partitions: int, timeout_ms: int = 60_000) -> Client:
    """Send it on a new connection."""
    request = ProduceRequest(
        transactional_id=None,
        acks=ACKS_ALL,
        timeout=milliseconds(timeout_ms),
        topic_data=(
            TopicProduceData(
                name="orders",
                topic_id=None,
                partition_data=tuple(
                    PartitionProduceData(index=index, records=batch(b"value"))
                    for index in partitions
                ),
            ),
        ),
    )
    client = node.connect()
    client.send(write_request(PRODUCE, VERSION, 7, "client", request))
    node.run(until(lambda: len(node.replicas.delayed_produces) == 1))
    return client


def answer(client: Client) -> dict[int, ErrorCode]:
    """The error code by partition."""
    frame = client.receive()
    assert frame is not None
    assert client.received == b""
    (result,) = read_response(PRODUCE, VERSION, frame)[1].responses
    return {partition.index: partition.error_code for partition in result.partition_responses}


def is_unanswered(node: SingleNode, client: Client) -> bool:
    """Even after everything in flight has arrived, and every log is synced."""
    node.run(asyncio.sleep(1))
    return client.received == b""


def follow(node: SingleNode, index: int) -> None:
    """The follower has the partition's whole log."""
    fetch(node, index, node.log("orders", index).log_end_offset)


def fetch(node: SingleNode, index: int, offset: int) -> None:
    async def hear() -> None:
        node.leader("orders", index).on_follower_fetch(FollowerFetch(2, 1, offset, 0), 0)

    node.run(hear())


def test_it_is_answered_when_every_append_is_safe(node: SingleNode) -> None:
    client = produce(node, 0, 1)
    follow(node, 1)
    assert is_unanswered(node, client)
    assert len(node.replicas.delayed_produces) == 1
    follow(node, 0)
    assert answer(client) == {0: ErrorCode.none, 1: ErrorCode.none}
    assert len(node.replicas.delayed_produces) == 0


def test_a_failed_append_is_told_and_does_not_end_the_wait_for_others(node: SingleNode) -> None:
    client = produce(node, 0, 1)

    async def resign() -> None:
        node.partition("orders", 0).resign(ApiError(ErrorCode.not_leader_or_follower))

    node.run(resign())
    assert is_unanswered(node, client)
    follow(node, 1)
    assert answer(client) == {0: ErrorCode.not_leader_or_follower, 1: ErrorCode.none}


def test_two_batches_for_one_partition_are_awaited_each(node: SingleNode) -> None:
    client = produce(node, 0, 0)
    fetch(node, 0, 1)
    assert is_unanswered(node, client)
    follow(node, 0)
    assert answer(client) == {0: ErrorCode.none}


def test_the_timeout_fails_what_is_awaited_and_later_news_is_ignored(node: SingleNode) -> None:
    client = produce(node, 0, 1, timeout_ms=2_000)
    follow(node, 0)
    assert is_unanswered(node, client)
    assert answer(client) == {0: ErrorCode.none, 1: ErrorCode.request_timed_out}
    assert len(node.replicas.delayed_produces) == 0
    follow(node, 1)
    assert is_unanswered(node, client)


def test_appends_that_became_safe_while_others_were_made_are_answered_at_once(
    node: SingleNode,
) -> None:
    client, leader = node.connect(), node.leader("orders", 0)
    results = [PartitionResult(0)]
    acknowledgement = Acknowledgement(node.broker, [TopicResult("orders", None, results)])
    records = bytearray(batch(b"value"))

    async def append() -> None:
        appended = leader.append(memoryview(records), read_header(records), 0)
        acknowledgement.wait_for(leader, appended, ACKS_ALL, "orders", results)

    async def start() -> None:
        header = RequestHeader(PRODUCE, VERSION, 7, "client", 0)
        acknowledgement.start(client.session, client.session.reply(), header, 60_000, 0)

    node.run(append())
    follow(node, 0)
    node.run(until(lambda: node.log("orders", 0).high_watermark == 1))
    node.run(start())
    assert answer(client) == {0: ErrorCode.none}
