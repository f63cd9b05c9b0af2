import pytest
from confluent_kafka import KafkaError

from ottla.cli.connection import describe_error, parse_address
from ottla.cli.errors import UsageError


@pytest.mark.parametrize(
    ("address", "parsed"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("localhost", ("localhost", 9092)),
        ("[::1]:9093", ("::1", 9093)),
        ("[::1]", ("::1", 9092)),
        (" host:1 ", ("host", 1)),
    ],
)
def test_addresses(address: str, parsed: tuple[str, int]) -> None:
    assert parse_address(address) == parsed


@pytest.mark.parametrize("address", ["", ":9092", "host:", "host:port", "host:0", "host:65536"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_address(address)


def test_an_error_names_its_subject_and_what_to_do() -> None:
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert describe_error(error, "orders") == (
        "orders: Unknown topic or partition; `ottla topics list` shows the topics"
    )


def test_the_subject_is_not_named_twice() -> None:
    error = KafkaError(KafkaError.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists.")
    assert describe_error(error, "orders").startswith("Topic 'orders' already exists;")
