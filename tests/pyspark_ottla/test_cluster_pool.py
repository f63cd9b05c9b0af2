from collections.abc import Iterator

import pytest

from pyspark_ottla import cluster_pool
from pyspark_ottla.cluster_options import ClusterOptions
from pyspark_ottla.cluster_pool import borrow, close_idle
from pyspark_ottla.source_options import parse_source_options


@pytest.fixture
def options(bootstrap: str) -> Iterator[ClusterOptions]:
    close_idle()
    yield parse_source_options({"kafka.bootstrap.servers": bootstrap, "subscribe": "t"}).cluster
    close_idle()


def test_connections_are_used_again(options: ClusterOptions) -> None:
    with borrow(options) as first:
        first.topics([])
        connection = first.any_broker()
    with borrow(options) as second:
        assert second is first
        assert second.any_broker() is connection


def test_metadata_is_used_again_while_it_is_new(
    options: ClusterOptions, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_pool, "_METADATA_S_MAX", 1e9)
    with borrow(options) as cluster:
        known = cluster.topic(topic)
    with borrow(options) as cluster:
        assert cluster.topic(topic) is known
    monkeypatch.setattr(cluster_pool, "_METADATA_S_MAX", -1)
    with borrow(options) as cluster:
        assert cluster.topic(topic) is not known


def test_two_borrowers_at_once_have_one_each(options: ClusterOptions) -> None:
    with borrow(options) as first, borrow(options) as second:
        assert first is not second


def test_other_options_have_other_connections(options: ClusterOptions, bootstrap: str) -> None:
    other = parse_source_options(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", "kafka.client.id": "other"}
    )
    with borrow(options) as first:
        pass
    with borrow(other.cluster) as second:
        assert second is not first


def test_the_cluster_of_one_who_failed_is_not_used_again(options: ClusterOptions) -> None:
    with pytest.raises(RuntimeError), borrow(options) as first:
        raise RuntimeError
    with borrow(options) as second:
        assert second is not first


def test_what_lay_idle_for_long_is_closed(
    options: ClusterOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with borrow(options) as first:
        pass
    monkeypatch.setattr(cluster_pool, "_IDLE_S_MAX", -1)
    with borrow(options) as second:
        assert second is not first


def test_a_broker_that_closed_a_connection_is_asked_over_a_new_one(options: ClusterOptions) -> None:
    with borrow(options) as cluster:
        cluster.any_broker().close()  # Like after a restart of the broker.
    with borrow(options) as cluster:
        assert cluster.topics([]) == {}
