import pytest
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.controller.test_topics import creation, topic

from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.offset_for_leader_epoch import handle as handle_offset_for_leader_epoch
from ottla.protocol.errors import ErrorCode


@pytest.fixture
def orders(node):
    """Three records of epoch 0, none of epoch 1, two of epoch 2."""
    node.call(handle_create_topics, creation(topic("orders", 1, 1)))
    node.append("orders", 0, 1, 2, 3)
    partition = node.partition("orders", 0)
    partition.become_leader(1, (1,))
    partition.become_leader(2, (1,))
    node.append("orders", 0, 4, 5)
    return node


def ask(node, epoch, current=-1, name="orders"):
    request = OffsetForLeaderEpochRequest(
        topics=(
            OffsetForLeaderTopic(
                topic=name,
                partitions=(
                    OffsetForLeaderPartition(
                        partition=0, leader_epoch=epoch, current_leader_epoch=current
                    ),
                ),
            ),
        )
    )
    response = node.call(handle_offset_for_leader_epoch, request)
    return response.topics[0].partitions[0]


@pytest.mark.parametrize(("epoch", "found"), [(0, (0, 3)), (1, (0, 3)), (2, (2, 5)), (3, (-1, -1))])
def test_an_epoch_ends_where_the_next_one_starts(orders, epoch, found):
    answer = ask(orders, epoch, current=2)
    assert answer.error_code is ErrorCode.none
    assert (answer.leader_epoch, answer.end_offset) == found


@pytest.mark.parametrize(
    ("current", "code"), [(1, ErrorCode.fenced_leader_epoch), (3, ErrorCode.unknown_leader_epoch)]
)
def test_a_client_with_another_leader_epoch_is_told(orders, current, code):
    assert ask(orders, 0, current=current).error_code is code


def test_an_unknown_topic(orders):
    assert ask(orders, 0, name="other").error_code is ErrorCode.unknown_topic_or_partition
