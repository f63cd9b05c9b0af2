import dataclasses
import socket
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from ottla.cli.connection import Connection, describe_error
from ottla.cli.errors import CommandError, UsageError


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


class StartingNode:
    """Answers ApiVersions and closes the connection on anything more; later it serves."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                for correlation_id in (1, 2):
                    if correlation_id == 2 and self.refusals:
                        self.refusals -= 1
                        break
                    if connection.recv(100):
                        answer = correlation_id.to_bytes(4, "big") + bytes(6)
                        connection.sendall(len(answer).to_bytes(4, "big") + answer)


@pytest.fixture
def starting(request: pytest.FixtureRequest) -> Iterator[StartingNode]:
    node = StartingNode(request.param)
    yield node
    node.close()


def connection_to(node: StartingNode) -> Connection:
    host, port = node.address
    return Connection(bootstrap_server=f"{host}:{port}", connect_timeout=60)


@pytest.mark.parametrize("starting", [0, 2], indirect=True)
def test_a_node_that_starts_is_asked_again(starting: StartingNode) -> None:
    assert connection_to(starting).reach() == starting.address
    assert starting.refusals == 0


@pytest.mark.parametrize("starting", [1_000_000], indirect=True)
def test_a_node_that_goes_on_starting_is_told_apart(starting: StartingNode) -> None:
    with pytest.raises(CommandError, match="it starts, and serves nobody yet"):
        connection_to(starting).reach()
