"""Subscriptions to topics by a regular expression."""

from tests.groups.consumer.kit import describe
from tests.groups.kit import START_MS, Catalog, Coordinator

from ottla.groups.consumer import records
from ottla.machine.record import Record
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
    assert coordinator.assigned(coordinator.beat("m", 2)) == {("orders-eu", 0), ("orders-us", 0)}


def test_an_expression_stands_for_topics_that_the_member_may_describe() -> None:
    coordinator = Coordinator(Catalog(**{"orders-eu": 1, "orders-us": 1}))

    joined = coordinator.beat("m", regex="orders-.*", may_describe=lambda name: name == "orders-eu")

    assert coordinator.assigned(joined) == {("orders-eu", 0)}
    # Nothing changed, so nothing is resolved again.
    assert coordinator.assigned(coordinator.beat("m", 2)) in (None, {("orders-eu", 0)})


def test_what_a_member_may_describe_now_is_looked_up_from_time_to_time() -> None:
    catalog = Catalog(**{"orders-eu": 1, "orders-us": 1})
    coordinator = Coordinator(catalog, regex_refresh_interval_ms=20_000)
    coordinator.beat("m", regex="orders-.*", may_describe=lambda name: name == "orders-eu")

    coordinator.advance(20_000)
    assert coordinator.beat("m", 2).member_epoch == 2
    coordinator.advance(1)
    both = coordinator.beat("m", 2)
    assert both.member_epoch == 3
    assert coordinator.assigned(both) == {("orders-eu", 0), ("orders-us", 0)}

    coordinator.advance(20_001)
    less = coordinator.beat("m", 3, may_describe=lambda name: name == "orders-us")
    assert coordinator.assigned(less) == {("orders-us", 0)}


def test_groups_without_expressions_are_not_looked_at_again() -> None:
    coordinator = Coordinator(regex_refresh_interval_ms=20_000)
    coordinator.beat("m")
    coordinator.advance(20_001)
    assert coordinator.beat("m", 2).member_epoch == 2


def test_an_empty_expression_means_none() -> None:
    coordinator = Coordinator()

    joined = coordinator.beat("m", topics=("u",), regex="")

    assert coordinator.assigned(joined) == {("u", 0), ("u", 1)}
    assert describe(coordinator).members[0].subscribed_topic_regex == ""


def test_an_expression_can_be_given_up() -> None:
    coordinator = Coordinator()
    coordinator.beat("m", topics=("u",), regex="t")

    coordinator.beat("m", 2, regex="")
    response = coordinator.beat("m", 2, owned={("u", 0), ("u", 1)})

    assert response.member_epoch == 3
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
