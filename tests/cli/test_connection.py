import dataclasses

import pytest
from confluent_kafka import KafkaError

from ottla.cli.connection import Connection, describe_error
from ottla.cli.errors import UsageError


@pytest.mark.parametrize("server", ["", "host:port", "host:1,", "host:0"])
def test_what_is_no_address_is_a_usage_error(server: str) -> None:
    connection = dataclasses.replace(Connection(), bootstrap_server=server or ",")
    with pytest.raises(UsageError, match="is not of the form HOST:PORT"):
        connection.reach()


def test_an_error_names_its_subject_and_what_to_do() -> None:
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert describe_error(error, "orders") == (
        "orders: Unknown topic or partition; `ottla topics list` shows the topics"
    )


def test_the_subject_is_not_named_twice() -> None:
    error = KafkaError(KafkaError.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists.")
    assert describe_error(error, "orders").startswith("Topic 'orders' already exists;")
