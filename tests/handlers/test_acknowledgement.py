"""When a produce request that waits for its partitions is answered, and with what."""

import pytest
from kio.schema.produce.v13.request import PartitionProduceData
from tests.clients.requests import batch
from tests.controller.test_topics import creation, topic
from tests.handlers.brokers import FakeSession
from tests.replication.roles import leader_of

from ottla.handlers.acknowledgement import Acknowledgement
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.dispatch import make_dispatch
from ottla.handlers.table import API_TABLE
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


@pytest.fixture
def node(start_node):
    node = start_node()
    node.call(handle_create_topics, creation(topic("orders", 2, 1)))
    for index in (0, 1):
        followers = Followers(1, 0, lambda replica, epoch: True, 1000)
        followers.update((1, 2), (1, 2), 0, 0)
        node.replicas.find("orders", index).become_leader(0, (1, 2), followers)
    return node


def produce(node, *partitions, timeout_ms=60_000):
    """Send it; what is answered is in the session."""
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
    session = FakeSession()
    frame = write_request(PRODUCE, VERSION, 7, "client", request)
    make_dispatch(node.broker, API_TABLE)(session, memoryview(bytearray(frame[4:])))
    return session


def answer(session):
    """The error code by partition."""
    (sent,) = session.sent
    (result,) = read_response(PRODUCE, VERSION, memoryview(sent)[4:])[1].responses
    return {one.index: one.error_code for one in result.partition_responses}


def follow(node, index):
    """The follower has all of the partition's log."""
    partition = node.replicas.find("orders", index)
    leader_of(partition).on_follower_fetch(FollowerFetch(2, 1, partition.log.log_end_offset, 0), 0)


def test_it_is_answered_when_every_append_is_safe(node):
    session = produce(node, 0, 1)
    follow(node, 1)
    assert session.sent == []
    assert len(node.replicas.delayed_produces) == 1
    follow(node, 0)
    assert answer(session) == {0: ErrorCode.none, 1: ErrorCode.none}
    assert len(node.replicas.delayed_produces) == 0


def test_a_failed_append_is_told_and_does_not_end_the_wait_for_others(node):
    session = produce(node, 0, 1)
    node.replicas.find("orders", 0).resign(ApiError(ErrorCode.not_leader_or_follower))
    assert session.sent == []
    follow(node, 1)
    assert answer(session) == {0: ErrorCode.not_leader_or_follower, 1: ErrorCode.none}


def test_two_batches_for_one_partition_are_awaited_each(node):
    session = produce(node, 0, 0)
    partition = node.replicas.find("orders", 0)
    leader_of(partition).on_follower_fetch(FollowerFetch(2, 1, 1, 0), 0)
    assert session.sent == []
    follow(node, 0)
    assert answer(session) == {0: ErrorCode.none}


def test_the_timeout_fails_what_is_awaited_and_later_news_is_ignored(node):
    session = produce(node, 0, 1, timeout_ms=100)
    now_ms = node.broker.clock.monotonic_ms()
    follow(node, 0)
    node.replicas.delayed_produces.expire(now_ms - 100)
    assert session.sent == []
    node.replicas.delayed_produces.expire(now_ms + 101)
    follow(node, 1)
    assert answer(session) == {0: ErrorCode.none, 1: ErrorCode.request_timed_out}
    assert len(node.replicas.delayed_produces) == 0


def test_appends_that_became_safe_while_others_were_made_are_answered_at_once(node):
    results = [PartitionResult(0)]
    acknowledgement = Acknowledgement(node.broker, [TopicResult("orders", None, results)])
    partition = node.replicas.find("orders", 0)
    records = bytearray(batch(b"value"))
    leader = leader_of(partition)
    appended = leader.append(memoryview(records), read_header(records), 0)
    acknowledgement.wait_for(leader, appended, ACKS_ALL, "orders", results)
    follow(node, 0)
    session = FakeSession()
    header = RequestHeader(PRODUCE, VERSION, 7, "client", 0)
    acknowledgement.start(session, session, header, 60_000, 0)
    assert answer(session) == {0: ErrorCode.none}
