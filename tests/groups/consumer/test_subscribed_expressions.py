"""Subscriptions to topics by a regular expression."""

from tests.groups.consumer.kit import describe
from tests.groups.kit import START_MS, Catalog, Coordinator

from ottla.groups.consumer import records
from ottla.groups.record import Record
from ottla.protocol.errors import ErrorCode


def test_a_subscribed_expression_follows_the_topics() -> None:
    coordinator = Coordinator(Catalog(**{"orders-eu": 1, "payments": 1, "__consumer_offsets": 1}))

    joined = coordinator.beat("m", regex="orders-.*|__.*")

    assert coordinator.assigned(joined) == {("orders-eu", 0)}
    assert coordinator.last_records[1] == Record(
        records.ConsumerGroupRegularExpressionKey(
            group_id="g", regular_expression="orders-.*|__.*"
        ),
        records.ConsumerGroupRegularExpressionValue(
            topics=("orders-eu",), version=3, timestamp=START_MS
        ),
    )
    coordinator.catalog.create("orders-us", 1)
    assert coordinator.assigned(coordinator.beat("m", 1)) == {("orders-eu", 0), ("orders-us", 0)}


def test_an_empty_expression_means_none() -> None:
    coordinator = Coordinator()

    joined = coordinator.beat("m", topics=("u",), regex="")

    assert coordinator.assigned(joined) == {("u", 0), ("u", 1)}
    assert describe(coordinator).members[0].subscribed_topic_regex == ""


def test_an_expression_can_be_given_up() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", topics=("u",), regex="t")

    coordinator.beat("m", 1, regex="")
    response = coordinator.beat("m", 1, owned={("u", 0), ("u", 1)})

    assert response.member_epoch == 2
    assert {("u", 0), ("u", 1)} == {
        (topic.topic_name, partition)
        for topic in describe(coordinator).members[0].assignment.topic_partitions
        for partition in topic.partitions
    }


def test_a_bad_expression_is_refused() -> None:
    coordinator = Coordinator()

    assert coordinator.refusal(lambda: coordinator.beat("m", regex="(")) is (
        ErrorCode.invalid_regular_expression
    )
